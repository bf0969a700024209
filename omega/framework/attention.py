"""Attention: the part of a scheduler's time that its work on each tenant's jobs took lately.

Goal     Keep a tenant whose jobs ask for almost nothing from having a scheduler for itself.
Promise  The time from one note to the next is divided among the jobs of the second: each job and
         each of its tasks counts as one. Time that is over for `WINDOW_S` does not count any more.
         All amounts are whole microseconds.
Source   DRF (NSDI 2011): the scheduler's own time is one more resource;
         docs/decisions/0058-the-order-of-the-queue.md.
"""

from collections import Counter, deque
from collections.abc import Sequence
from typing import Final, TypeVar

from omega.clock import Clock
from omega.model.arrays import Counts, integers
from omega.model.jobs import LeasedJob

_Tasks = TypeVar("_Tasks", int, Counts)
WINDOW_S: Final = 2.0
WHOLE_US: Final = int(WINDOW_S * 1_000_000)
"""All the attention that there is, in microseconds."""


class Attention:
    """What was spent on the jobs of each tenant in the last `WINDOW_S`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since_s = clock.now()
        self._notes: deque[tuple[float, Counter[str], int]] = deque()
        """When jobs were done with, microseconds by tenant, and how many jobs and tasks it was."""
        self._spent = Counter[str]()
        """The sums over these notes ..."""
        self._units = 0
        """... and of jobs and tasks."""

    def begin(self) -> None:
        """Work on jobs begins."""
        self._since_s = self._clock.now()

    def note(self, jobs: Sequence[LeasedJob]) -> None:
        """Work on these jobs is done; it began with the last call of `begin` or `note`."""
        now_s = self._clock.now()
        took_us, self._since_s = round((now_s - self._since_s) * 1_000_000), now_s
        units = Counter[str]()
        for job in jobs:
            units[job.spec.tenant] += _units(job.spec.tasks)
        together = units.total()
        spent = Counter({whose: took_us * part // together for whose, part in units.items()})
        self._notes.append((now_s, spent, together))
        self._spent.update(spent)
        self._units += together
        self._forget(now_s)

    def spent_us(self, tenants: Sequence[str]) -> Counts:
        """Return what was spent on each tenant's jobs: (tenants,)."""
        self._forget(self._clock.now())
        return integers([self._spent.get(tenant, 0) for tenant in tenants])

    def expected_us(self, tasks: Counts) -> Counts:
        """Return what jobs of so many tasks each take, as far as is known: (jobs,)."""
        self._forget(self._clock.now())
        return self._spent.total() * _units(tasks) // max(1, self._units)

    def _forget(self, now_s: float) -> None:
        while self._notes and self._notes[0][0] <= now_s - WINDOW_S:
            _, spent, units = self._notes.popleft()
            self._spent -= spent  # tenants without any are dropped
            self._units -= units


def _units(tasks: _Tasks) -> _Tasks:
    return 1 + tasks
