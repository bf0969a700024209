"""The fold over evictions: who lost tasks to whom, and how long jobs then lacked tasks.

Goal     Measure what preemption costs those that make way.
Promise  An event takes constant time. A job that is evicted again before it is whole has waited
         once: from the first eviction to the end of the attempt after which none of its tasks
         lacked a place. Tasks that were lost with machines are no evictions.
Source   docs/decisions/0036-preemption.md; docs/decisions/0005-events.md.
"""

from collections import Counter, defaultdict
from collections.abc import Callable

from omega.clock import Clock
from omega.events import Event, JobAttempted, TasksEvicted


class EvictionFold:
    """A sink for the events of all schedulers of a cell."""

    def __init__(
        self, clock: Clock, workload_of: Callable[[int], str], is_whole: Callable[[int], bool]
    ) -> None:
        """`is_whole` says of a job whether none of its tasks lacks a place now."""
        self._clock = clock
        self._workload_of = workload_of
        self._is_whole = is_whole
        self._tasks: Counter[tuple[str, str]] = Counter()
        """Evicted tasks by (workload that lost them, workload for which they had to go)."""
        self._jobs: defaultdict[str, set[int]] = defaultdict(set)
        self._since_s: dict[int, float] = {}
        """By job that is not whole since an eviction: when that was."""
        self._waits_s: defaultdict[str, list[float]] = defaultdict(list)

    def __call__(self, event: Event) -> None:
        """Count one event."""
        if isinstance(event, TasksEvicted):
            loser = self._workload_of(event.job)
            self._tasks[loser, self._workload_of(event.evictor)] += event.tasks
            self._jobs[loser].add(event.job)
            self._since_s.setdefault(event.job, self._clock.now())
        elif isinstance(event, JobAttempted):
            job = event.job
            if job in self._since_s and self._is_whole(job):
                waited_s = self._clock.now() - self._since_s.pop(job)
                self._waits_s[self._workload_of(job)].append(waited_s)

    def tasks(self, loser: str, evictor: str | None = None) -> int:
        """Return how many tasks a workload lost to another, or to all together."""
        return sum(
            tasks
            for (lost, won), tasks in self._tasks.items()
            if lost == loser and evictor in (None, won)
        )

    def jobs(self, loser: str) -> int:
        """Return how many jobs of a workload lost tasks."""
        return len(self._jobs[loser])

    def waits_s(self, loser: str) -> list[float]:
        """Return how long jobs of a workload were not whole, in order of their ends."""
        return list(self._waits_s[loser])

    def not_whole(self, loser: str) -> int:
        """Return how many evicted jobs of a workload still lack tasks."""
        return len(self._jobs[loser] & self._since_s.keys())
