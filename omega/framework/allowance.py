"""Which parked jobs their quotas would let in now.

Goal     Wake a job that met its quota when enough is left of it, whoever parked it, and not before.
Promise  Jobs are taken in the order given, each after those before it that were let in. Of an
         incremental job one task counts, and only those tasks that would be let in are looked at;
         of a gang what it lacks; all that waits, where a scheduler commits all or nothing.
Source   docs/decisions/0016-quotas.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from omega.framework.effects import Steps, asked
from omega.lifecycle.states import ParkReason
from omega.model.claims import Granularity
from omega.model.jobs import TaskGroup
from omega.model.quotas import BUDGETS, UNLIMITED, Budget, QuotaScope, cost
from omega.store.leases import ParkedJob

Left = Mapping[tuple[QuotaScope, str], Sequence[int]]
"""What is left of quotas, by whom they are for, in the order of `Budget`; overdrawn is negative."""


class Allowances:
    """What is left of all quotas, as it was last read."""

    def __init__(self, granularity: Granularity) -> None:
        self._granularity = granularity
        self._left: Left = {}
        self._met = False

    def note(self) -> None:
        """Hear that a job has met its quota: by now, there may be enough left again."""
        self._met = True

    def grew(self) -> Steps[bool]:
        """Read what is left; say whether any of it is more than before, or not yet looked at."""
        before = self._left
        self._left = yield from self._read()
        met, self._met = self._met, False
        return met or any(
            whose not in self._left or not _covers(left, self._left[whose])
            for whose, left in before.items()
        )

    def admission(self) -> "Admission":
        """Return what is left, to let jobs in."""
        return Admission(self._left, self._granularity)

    def _read(self) -> Steps[Left]:
        uses = yield from asked("quotas", lambda store: store.quotas())
        return {
            (use.quota.scope, use.quota.name): [use.left.get(b, UNLIMITED) for b in Budget]
            for use in uses
        }


class Admission:
    """What would be left of quotas while jobs are let in, one after the other."""

    def __init__(self, left: Left, granularity: Granularity = Granularity.INCREMENTAL) -> None:
        self._all_or_nothing = granularity is Granularity.ALL_OR_NOTHING
        self._left = {whose: [max(0, most) for most in row] for whose, row in left.items()}

    def within(self, job: ParkedJob) -> ParkedJob | None:
        """Return a job with those of its tasks that its quotas would let in; None without any.

        Jobs that did not meet a quota are let in whole.
        """
        rows = self._rows(job)
        if not rows:
            return job
        left = [min(budget) for budget in zip(*rows, strict=True)]
        if self._together(job) > 1:
            return job if _covers(left, self._need(job)) else None
        groups = job.spec.groups
        allowed = [_covers(left, _needs(job, [(group, 1)])) for group in groups]
        if all(allowed):
            return job
        inside = job.unplaced[np.repeat(allowed, [group.tasks for group in groups])[job.unplaced]]
        return replace(job, unplaced=inside) if len(inside) else None

    def let_in(self, job: ParkedJob) -> None:
        """Charge a job for what it must be let in with."""
        if rows := self._rows(job):
            need = self._need(job)
            for row in rows:
                row[:] = [left - more for left, more in zip(row, need, strict=True)]

    def _rows(self, job: ParkedJob) -> list[list[int]]:
        """Return what is left of the quotas that hold a job back."""
        if job.reason is not ParkReason.OVER_QUOTA:
            return []
        whose = (QuotaScope.TENANT, job.spec.tenant), (QuotaScope.SCHEDULER, job.spec.scheduler)
        return [self._left[subject] for subject in whose if subject in self._left]

    def _together(self, job: ParkedJob) -> int:
        """Return how many tasks of a job must be let in at once."""
        return len(job.unplaced) if self._all_or_nothing else max(1, job.spec.minimum - job.placed)

    def _need(self, job: ParkedJob) -> list[int]:
        """Return what a job must be let in with, at the least, to get on."""
        groups = job.spec.groups
        ends = np.cumsum([group.tasks for group in groups])
        before = np.searchsorted(job.unplaced[: self._together(job)], ends)
        return _needs(job, zip(groups, np.diff(before, prepend=0).tolist(), strict=True))


def _covers(left: Sequence[int], need: Sequence[int]) -> bool:
    return all(most >= more for most, more in zip(left, need, strict=True))


def _needs(job: ParkedJob, tasks: Iterable[tuple[TaskGroup, int]]) -> list[int]:
    """Return what a job's next tasks are charged at, told by group and number."""
    need = [0] * BUDGETS
    for group, number in tasks:
        for budget, amount in enumerate(_cost_of(group)):
            need[budget] += number * amount
    need[Budget.JOBS] = int(not job.running)
    return need


@lru_cache(maxsize=1_024)
def _cost_of(group: TaskGroup) -> tuple[int, ...]:
    """Return what a task of a group is charged at; wherever its devices are."""
    amounts = cost(group.demand)
    amounts[Budget.GPU_SLICES] += group.gpus * group.gpu_slices
    return tuple(amounts.tolist())
