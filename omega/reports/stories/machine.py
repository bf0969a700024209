"""The story of a machine: who placed there, who was refused, and what ended there.

Goal     Tell with whom schedulers competed for a machine, and what became of its tasks.
Promise  Told from records alone; what is not on record is said, and nothing is guessed.
Source   omega.store.stories; docs/decisions/0052-the-page.md on who refused whom.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from omega.model.outcomes import Verdict
from omega.reports.conflicts import BY_OTHERS
from omega.reports.processes import name_of
from omega.reports.stories.commits import commit_told, evictions_not_told, evictions_told
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
    not_searched,
    task_words,
)
from omega.reports.stories.runs import Told, runs_told
from omega.store.protocols import ReaderStore
from omega.store.stories import VISIT_CLAIMS_MAX, VISITS_MAX, MachineRecords, RecordedVisit

STATES: Final = "When its state or its size changed, and when an agent held it, is not on record."


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
    names = {machine: name}
    events += evictions_told(records.evictions, names, evicted, unnamed="another machine")
    events += runs_told(records.runs, names, begun=begun, evicted=evicted, how={})
    searched = not_searched(records.searched, are_all_runs=records.are_all_runs)
    return Story(
        tuple(replace(it, told=_words(it)) for it in in_time(events)),
        records.searched,
        (*searched, *_cut(records.visits), *evictions_not_told(records.evictions), STATES),
    )


def _cut(visits: Sequence[RecordedVisit]) -> Iterator[str]:
    """Yield that older visits are not told, if there may be any."""
    claims = sum(len(visit.tasks) for visit in visits)
    if len(visits) == VISITS_MAX or claims >= VISIT_CLAIMS_MAX:
        yield f"Of commits that named it, only the newest {len(visits):,} are told."


def _claims(visit: RecordedVisit) -> Iterator[tuple[int, int, Verdict]]:
    return zip(visit.jobs, visit.tasks, visit.verdicts, strict=True)


def _visit(visit: RecordedVisit, name: str, taken: RecordedVisit | None) -> Iterator[StoryEvent]:
    """Yield what a transaction was granted on the machine, and what it was refused.

    `taken` is the one that was granted a claim there last before.
    """
    common = commit_told(visit)
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


def _words(event: StoryEvent) -> str:
    """Return what happened in words, but when and by whom."""
    if event.what is Happened.REFUSED:
        return f"{how_many(event, _whose)}: {conflict_words(event)}"
    return task_words(event, _whose)


def _whose(place: Place) -> str:
    return f"of job {place.job}"
