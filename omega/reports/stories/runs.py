"""Runs as events: what the history of runs tells besides the records of commits.

Goal     Tell how tasks ended, and also what commits did whose records are gone or not searched.
Promise  A run that a commit began or ended is told with that commit, once. A task's end is told
         with how its program ended, if an agent reported it.
Source   omega.store.stories.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from omega.reports.stories.events import COMMIT_MS_MAX, Happened, Place, StoryEvent
from omega.reports.wording import UNKNOWN_MACHINE
from omega.store.stories import PastRun, RunEnd

NOT_SEARCHED: Final = "by a commit that is not among those told here"
HAPPENED: Final = {
    RunEnd.ENDED: Happened.ENDED,
    RunEnd.EVICTED: Happened.EVICTED,
    RunEnd.LOST: Happened.LOST,
}

Where = tuple[int, int, int]
"""A job, a task and a machine."""


@dataclass(frozen=True)
class Told:
    """What the records of commits tell already."""

    _at_ms: dict[Where | None, list[int]] = field(default_factory=lambda: defaultdict(list))

    def add(self, where: Where | None, committed_ms: int) -> None:
        """Note a commit; None stands for all places, where some of them are not told."""
        self._at_ms[where].append(committed_ms)

    def has(self, where: Where, at_ms: int) -> bool:
        """Return whether one of the commits was recorded when this began or ended."""
        return any(_is_recorded(sorted(self._at_ms.get(key, ())), at_ms) for key in (where, None))


def _is_recorded(commits_ms: Sequence[int], at_ms: int) -> bool:
    # Both times are of one clock and cut to milliseconds.
    place = bisect_left(commits_ms, at_ms - 1)
    return place < len(commits_ms) and commits_ms[place] - at_ms <= COMMIT_MS_MAX


def runs_told(
    runs: Sequence[PastRun],
    names: Mapping[int, str],
    *,
    begun: Told,
    evicted: Told,
    how: Mapping[tuple[int, int, int], str],
) -> Iterator[StoryEvent]:
    """Yield an event for each begin and end that the records of commits do not tell.

    `how` says how programs ended, by job, task and start.
    """
    for run in runs:
        where = (run.job, run.task, run.machine)
        place = Place(run.job, run.task, names.get(run.machine, UNKNOWN_MACHINE))
        if not begun.has(where, run.started_ms):
            yield StoryEvent(
                what=Happened.PLACED,
                at_ms=run.started_ms,
                until_ms=run.started_ms,
                tasks=1,
                places=(place,),
                detail=NOT_SEARCHED,
            )
        if run.ended_ms is None or run.end is None:
            continue
        is_evicted = run.end is RunEnd.EVICTED
        if is_evicted and evicted.has(where, run.ended_ms):
            continue
        yield StoryEvent(
            what=HAPPENED[run.end],
            at_ms=run.ended_ms,
            until_ms=run.ended_ms,
            tasks=1,
            places=(place,),
            detail=NOT_SEARCHED if is_evicted else how.get((run.job, run.task, run.started_ms), ""),
        )
