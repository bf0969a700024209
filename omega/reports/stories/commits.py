"""Commits as events: whose they were, and whom they evicted or moved.

Goal     Tell of commits alike, in the stories of jobs and of machines.
Promise  Each eviction that is told is noted, so that runs do not tell it again.
Source   omega.store.stories.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from omega.reports.processes import name_of
from omega.reports.stories.events import Happened, Place, StoryEvent
from omega.reports.stories.runs import Told
from omega.reports.wording import UNKNOWN_MACHINE
from omega.store.inquiries import JobTransaction
from omega.store.stories import EVICTIONS_MAX, RecordedEviction, RecordedVisit


def commit_told(record: JobTransaction | RecordedVisit | RecordedEviction) -> StoryEvent:
    """Return a commit as an event, without its tasks."""
    return StoryEvent(
        what=Happened.PLACED,
        at_ms=record.committed_ms,
        until_ms=record.committed_ms,
        by=name_of(record.scheduler, record.replica),
        transaction=str(record.transaction),
    )


def evictions_told(
    evictions: Sequence[RecordedEviction],
    names: Mapping[int, str],
    evicted: Told,
    *,
    unnamed: str = UNKNOWN_MACHINE,
) -> Iterator[StoryEvent]:
    """Yield each task that commits evicted or moved; `unnamed` is a target without a name."""
    for it in evictions:
        evicted.add((it.job, it.task, it.machine), it.committed_ms)
        place = Place(it.job, it.task, names.get(it.machine, UNKNOWN_MACHINE))
        told = replace(commit_told(it), tasks=1, places=(place,))
        if it.moved_to is None:
            yield replace(told, what=Happened.EVICTED, for_jobs=it.for_jobs)
        else:
            target = names.get(it.moved_to, unnamed)
            yield replace(told, what=Happened.MOVED, detail=f"to {target}")
    if len(evictions) == EVICTIONS_MAX:
        evicted.add(None, evictions[-1].committed_ms)


def evictions_not_told(evictions: Sequence[RecordedEviction]) -> Iterator[str]:
    """Yield that older evictions are not told, if there may be any."""
    if len(evictions) == EVICTIONS_MAX:
        yield f"Of evictions and moves by commits, only the newest {EVICTIONS_MAX:,} are told."
