"""Which parked jobs the quotas would admit now.

Goal     Wake a job that was parked over its quota as soon as enough is left of the quota, whichever
         replica parked it, and not before.
Promise  Jobs are admitted in the order given, and each is charged before the next is considered.
         An incremental job needs quota for one task, a gang for the tasks that it lacks, and a job
         of an all-or-nothing scheduler for all its unplaced tasks.
Source   docs/decisions/0016-quotas.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from omega.framework.effects import Effects, called
from omega.lifecycle.states import ParkReason
from omega.model.claims import Granularity
from omega.model.jobs import TaskGroup
from omega.model.quotas import BUDGETS, UNLIMITED, Budget, QuotaScope, cost
from omega.store.leases import ParkedJob

Left = Mapping[tuple[QuotaScope, str], Sequence[int]]
"""What is left of each quota, by its scope and name, in the order of `Budget`; may be negative."""


class QuotasLeft:
    """What is left of all quotas, as last read from the store."""

    def __init__(self, granularity: Granularity) -> None:
        self._granularity = granularity
        self._left: Left = {}
        self._met = False

    def note(self) -> None:
        """Record that a quota refused a job: enough of it may be left by the next check."""
        self._met = True

    def grew(self) -> Effects[bool]:
        """Read what is left of all quotas; return whether parked jobs should be looked at.

        That is so if a quota was removed, if more is left of one than at the last read, or if
        `note` was called since.
        """
        before = self._left
        self._left = yield from self._read()
        met, self._met = self._met, False
        return met or any(
            whose not in self._left or not _covers(left, self._left[whose])
            for whose, left in before.items()
        )

    def admission(self) -> "QuotaAdmission":
        """Return an `QuotaAdmission` that starts from what is left."""
        return QuotaAdmission(self._left, self._granularity)

    def _read(self) -> Effects[Left]:
        uses = yield from called("quotas", lambda store: store.quotas())
        return {
            (use.quota.scope, use.quota.name): [use.left.get(b, UNLIMITED) for b in Budget]
            for use in uses
        }


class QuotaAdmission:
    """What would be left of the quotas as jobs are admitted one after the other."""

    def __init__(self, left: Left, granularity: Granularity = Granularity.INCREMENTAL) -> None:
        self._all_or_nothing = granularity is Granularity.ALL_OR_NOTHING
        self._left = {whose: [max(0, most) for most in row] for whose, row in left.items()}

    def within(self, job: ParkedJob) -> ParkedJob | None:
        """Return a job with only the unplaced tasks that its quotas would admit; None without any.

        Jobs that are parked for another reason than a quota are returned unchanged.
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

    def admit(self, job: ParkedJob) -> None:
        """Charge a job's quotas for the least that the job needs in order to progress."""
        if rows := self._rows(job):
            need = self._need(job)
            for row in rows:
                row[:] = [left - more for left, more in zip(row, need, strict=True)]

    def _rows(self, job: ParkedJob) -> list[list[int]]:
        """Return what is left of the quotas of a job that is parked over its quota, else []."""
        if job.reason is not ParkReason.OVER_QUOTA:
            return []
        whose = (QuotaScope.TENANT, job.spec.tenant), (QuotaScope.SCHEDULER, job.spec.scheduler)
        return [self._left[subject] for subject in whose if subject in self._left]

    def _together(self, job: ParkedJob) -> int:
        """Return how many tasks of a job must be admitted at once."""
        return len(job.unplaced) if self._all_or_nothing else max(1, job.spec.minimum - job.placed)

    def _need(self, job: ParkedJob) -> list[int]:
        """Return the least that a job needs in order to progress, in the order of `Budget`."""
        groups = job.spec.groups
        ends = np.cumsum([group.tasks for group in groups])
        before = np.searchsorted(job.unplaced[: self._together(job)], ends)
        return _needs(job, zip(groups, np.diff(before, prepend=0).tolist(), strict=True))


def _covers(left: Sequence[int], need: Sequence[int]) -> bool:
    return all(most >= more for most, more in zip(left, need, strict=True))


def _needs(job: ParkedJob, tasks: Iterable[tuple[TaskGroup, int]]) -> list[int]:
    """Return what (group, number of tasks) pairs of a job are charged, in the order of `Budget`."""
    need = [0] * BUDGETS
    for group, number in tasks:
        for budget, amount in enumerate(_cost_of(group)):
            need[budget] += number * amount
    need[Budget.JOBS] = int(not job.running)
    return need


@lru_cache(maxsize=1_024)
def _cost_of(group: TaskGroup) -> tuple[int, ...]:
    """Return what one task of a group is charged, whichever device slots it will get."""
    amounts = cost(group.demand)
    amounts[Budget.GPU_SLICES] += group.gpus * group.gpu_slices
    return tuple(amounts.tolist())
