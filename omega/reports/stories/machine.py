"""The story of a machine: who placed there, who was refused, and what ended there.

Goal     Tell with whom schedulers competed for a machine, and what became of its tasks.
Promise  Told from records alone; what is not on record is said, and nothing is guessed.
Source   omega.store.stories; docs/decisions/0052-the-page.md on who refused whom.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from omega.model.outcomes import Verdict
from omega.reports.conflicts import BY_OTHERS
from omega.reports.processes import name_of
from omega.reports.stories.events import (
    PLACES_TOLD_MAX,
    Conflict,
    Happened,
    Place,
    Story,
    StoryEvent,
    conflict_words,
    how_many,
    in_time,
    jobs_words,
    not_searched,
)
from omega.reports.stories.runs import Told, runs_told
from omega.store.protocols import ReaderStore
from omega.store.stories import EVICTIONS_MAX, VISITS_MAX, MachineRecords, RecordedVisit

STATES: Final = "When its state or its size changed, and when an agent held it, is not on record."
VISITS: Final = f"Of commits that named it, only the newest {VISITS_MAX:,} are told."


def machine_story(store: ReaderStore, machine: int, name: str) -> Story:
    """Read the story of a machine."""
    return told_story(store.machine_records(machine), machine, name)


def told_story(records: MachineRecords, machine: int, name: str) -> Story:
    """Return the story that the records of a machine tell."""
    begun, evicted = Told(), Told()
    events: list[StoryEvent] = []
    taken: RecordedVisit | None = None
    for visit in reversed(records.visits):
        events += _visit(visit, name, taken)
        granted = [it for it in _claims(visit) if it[2] is Verdict.ACCEPTED]
        for job, task, _ in granted:
            begun.add((job, task, machine), visit.committed_ms)
        taken = visit if granted else taken
    events += _evictions(records, name, evicted)
    events += runs_told(records.runs, {machine: name}, begun=begun, evicted=evicted, how={})
    cut = (VISITS,) if len(records.visits) == VISITS_MAX else ()
    searched = not_searched(records.searched, are_all_runs=records.are_all_runs)
    return Story(
        tuple(replace(it, told=_words(it)) for it in in_time(events)),
        records.searched,
        (*searched, *cut, STATES),
    )


def _claims(visit: RecordedVisit) -> Iterator[tuple[int, int, Verdict]]:
    return zip(visit.jobs, visit.tasks, visit.verdicts, strict=True)


def _visit(visit: RecordedVisit, name: str, taken: RecordedVisit | None) -> Iterator[StoryEvent]:
    """Yield what a transaction was granted on the machine, and what it was refused.

    `taken` is the one that was granted a claim there last before.
    """
    common = StoryEvent(
        what=Happened.PLACED,
        at_ms=visit.committed_ms,
        until_ms=visit.committed_ms,
        by=name_of(visit.scheduler, visit.replica),
        transaction=str(visit.transaction),
    )
    granted = sorted(
        Place(job, task, name)
        for job, task, verdict in _claims(visit)
        if verdict is Verdict.ACCEPTED
    )
    if granted:
        yield replace(common, tasks=len(granted), places=tuple(granted[:PLACES_TOLD_MAX]))
    refused = Counter(verdict for verdict in visit.verdicts if verdict is not Verdict.ACCEPTED)
    if refused:
        places = sorted(
            Place(job, task, name)
            for job, task, verdict in _claims(visit)
            if verdict is not Verdict.ACCEPTED
        )
        yield replace(
            common,
            what=Happened.REFUSED,
            tasks=len(places),
            places=tuple(places[:PLACES_TOLD_MAX]),
            conflicts=tuple(
                Conflict(verdict.name.lower(), claims, *_rival(verdict, taken))
                for verdict, claims in refused.most_common()
            ),
        )


def _rival(verdict: Verdict, taken: RecordedVisit | None) -> tuple[str | None, int | None]:
    """Return who caused a refusal, and the last job for which it was granted a claim."""
    if verdict not in BY_OTHERS or taken is None:
        return None, None
    jobs = [job for job, _, verdict in _claims(taken) if verdict is Verdict.ACCEPTED]
    return name_of(taken.scheduler, taken.replica), jobs[-1]


def _evictions(records: MachineRecords, name: str, evicted: Told) -> Iterator[StoryEvent]:
    for it in records.evictions:
        evicted.add((it.job, it.task, it.machine), it.committed_ms)
        yield StoryEvent(
            what=Happened.EVICTED if it.moved_to is None else Happened.MOVED,
            at_ms=it.committed_ms,
            until_ms=it.committed_ms,
            by=name_of(it.scheduler, it.replica),
            transaction=str(it.transaction),
            tasks=1,
            places=(Place(it.job, it.task, name),),
            for_jobs=it.for_jobs if it.moved_to is None else (),
            detail="" if it.moved_to is None else "to another machine",
        )
    if len(records.evictions) == EVICTIONS_MAX:
        evicted.add(None, records.evictions[-1].committed_ms)


def _words(event: StoryEvent) -> str:
    """Return what happened in words, but when and by whom."""
    groups: dict[str, list[int]] = {}
    for place in event.places:
        groups.setdefault(f"of job {place.job}", []).append(place.task)
    said = how_many(event, groups)
    if event.what is Happened.REFUSED:
        return f"{said}: {conflict_words(event)}"
    if event.for_jobs:
        said += f", for {jobs_words(event.for_jobs)}"
    return f"{said}: {event.detail}" if event.detail else said
