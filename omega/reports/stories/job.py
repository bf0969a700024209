"""The story of a job: from its submission to its end, from what is on record.

Goal     Tell who tried to place it, who was in the way, who evicted it, and how its tasks ended.
Promise  Told from records alone; what is not on record is said, and nothing is guessed.
Source   omega.store.stories; docs/decisions/0054-why-a-job-waits.md.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Final
from uuid import UUID

from omega.lifecycle.states import FINAL
from omega.model.exits import PastExit
from omega.model.outcomes import Verdict
from omega.reports.conflicts import BY_OTHERS
from omega.reports.exits import in_words
from omega.reports.processes import name_of
from omega.reports.stories.commits import commit_told, evictions_not_told, evictions_told
from omega.reports.stories.events import (
    Conflict,
    Happened,
    Place,
    Story,
    StoryEvent,
    conflict_words,
    in_time,
    not_searched,
    task_words,
)
from omega.reports.stories.runs import Told, runs_told
from omega.reports.wording import UNKNOWN_MACHINE, duration, things
from omega.store.inquiries import JobTransaction, RecordedClaim
from omega.store.protocols import ReaderStore
from omega.store.status import JobStatus
from omega.store.stories import JobRecords

LEASES: Final = (
    "Leases are on record only where a commit followed; holds, releases and parkings are not."
)


def job_story(store: ReaderStore, job: JobStatus, exits: Sequence[PastExit]) -> Story:
    """Read the story of a job, of which these exits are on record."""
    return told_story(store.job_records(job.id), job, exits)


def told_story(records: JobRecords, job: JobStatus, exits: Sequence[PastExit]) -> Story:
    """Return the story that the records of a job tell."""
    names = records.names
    begun, evicted = Told(), Told()
    events = [*_status(job)]
    moved = {(it.transaction, it.task) for it in records.evictions if it.moved_to is not None}
    for transaction in records.transactions:
        events += _transaction(transaction, job.id, names, begun, moved)
    events += evictions_told(records.evictions, names, evicted)
    how = {(job.id, it.task, it.started_ms): in_words(it.exit) for it in exits}
    events += runs_told(records.runs, names, begun=begun, evicted=evicted, how=how)
    searched = not_searched(records.searched, are_all_runs=records.are_all_runs)
    return Story(
        tuple(replace(it, told=_words(it, job)) for it in in_time(events)),
        records.searched,
        (*searched, *evictions_not_told(records.evictions), LEASES),
    )


def _status(job: JobStatus) -> Iterator[StoryEvent]:
    """Yield what the job's own row tells."""

    def at(what: Happened, ms: int) -> StoryEvent:
        return StoryEvent(what=what, at_ms=ms, until_ms=ms)

    yield at(Happened.SUBMITTED, job.submitted_ms)
    if job.first_leased_ms is not None:
        yield at(Happened.LEASED, job.first_leased_ms)
    if job.finished_ms is not None and job.state in FINAL:
        yield at(Happened.FINISHED, job.finished_ms)


def _transaction(
    transaction: JobTransaction,
    job: int,
    names: Mapping[int, str],
    begun: Told,
    moved: Set[tuple[UUID, int]],
) -> Iterator[StoryEvent]:
    """Yield what a transaction granted the job, but for moves, and what it refused."""
    common = commit_told(transaction)
    granted = [it for it in transaction.claims if it.verdict is Verdict.ACCEPTED]
    for claim in granted:
        begun.add((job, claim.task, claim.machine), transaction.committed_ms)
    if len(granted) < transaction.granted:
        begun.add(None, transaction.committed_ms)
    came = transaction.granted - sum(it == transaction.transaction for it, _ in moved)
    if came:
        places = sorted(
            Place(job, it.task, names.get(it.machine, UNKNOWN_MACHINE))
            for it in granted
            if (transaction.transaction, it.task) not in moved
        )
        yield replace(common, tasks=came, places=tuple(places))
    if transaction.refused:
        yield replace(
            common,
            what=Happened.REFUSED,
            tasks=transaction.refused,
            conflicts=_conflicts(transaction),
        )


def _conflicts(transaction: JobTransaction) -> tuple[Conflict, ...]:
    """Return why claims were refused and who had taken the machines, the most claims first."""
    refused = [it for it in transaction.claims if it.verdict is not Verdict.ACCEPTED]
    counted = Counter((it.verdict, *_rival(it)) for it in refused)
    return tuple(
        Conflict(verdict.name.lower(), claims, taken_by, taken_for)
        for (verdict, taken_by, taken_for), claims in counted.most_common()
    )


def _rival(claim: RecordedClaim) -> tuple[str | None, int | None]:
    """Return who caused a refusal, and for which job."""
    if claim.verdict not in BY_OTHERS or claim.taken_by is None:
        return None, None
    return name_of(claim.taken_by.scheduler, claim.taken_by.replica), claim.taken_by.job


def _words(event: StoryEvent, job: JobStatus) -> str:
    """Return what happened in words, but when and by whom."""
    match event.what:
        case Happened.SUBMITTED:
            return f"{things(job.tasks, 'task')}, for {job.scheduler}"
        case Happened.LEASED:
            waited_s = (event.at_ms - job.submitted_ms) / 1_000
            return f"for the first time, {duration(waited_s)} after it was submitted"
        case Happened.FINISHED:
            return job.state.value
        case Happened.REFUSED:
            return f"{things(event.tasks, 'claim')}: {conflict_words(event)}"
    return task_words(event, lambda place: f"on {place.machine}")
