"""Which parked jobs their quotas would let in now.

Goal     Wake a job that met its quota when enough is left of it, and not before.
Promise  Quotas are read only while some job is known to have met one. Jobs are taken in the order
         given, each after those before it; of an incremental job one task counts, of a gang what it
         lacks.
Source   docs/decisions/0016-quotas.md.
"""

from collections.abc import Sequence

import numpy as np

from omega.framework.patience import Patience
from omega.lifecycle.states import ParkReason
from omega.model.arrays import Amounts
from omega.model.quotas import UNLIMITED, Budget, QuotaScope, cost
from omega.store.base import ParkedJob, Store

_Left = dict[tuple[QuotaScope, str], Amounts]


class Allowances:
    """What is left of quotas, as it was last read."""

    def __init__(self, store: Store, patience: Patience) -> None:
        self._store = store
        self._patiently = patience
        self._left: _Left = {}
        self._watched = False

    def watch(self) -> None:
        """Hear that a job has met its quota."""
        self._watched = True

    def grew(self) -> bool:
        """Say whether more is left of some quota than before, for jobs that wait for that."""
        if not self._watched:
            return False
        before, self._left = self._left, self._read()
        return any(
            whose not in self._left or bool((self._left[whose] > left).any())
            for whose, left in before.items()
        )

    def allowed(self, jobs: Sequence[ParkedJob]) -> list[ParkedJob]:
        """Return the jobs that are not parked for a quota, or would be let in by it."""
        self._watched = any(job.reason is ParkReason.OVER_QUOTA for job in jobs)
        if not self._watched:
            return list(jobs)
        self._left = self._read()
        left = {whose: row.copy() for whose, row in self._left.items()}
        return [job for job in jobs if job.reason is not ParkReason.OVER_QUOTA or _take(left, job)]

    def _read(self) -> _Left:
        uses = self._patiently("quotas", self._store.quotas)
        return {
            (use.quota.scope, use.quota.name): np.array(
                [use.left.get(budget, UNLIMITED) for budget in Budget], np.int64
            )
            for use in uses
        }


def _take(left: _Left, job: ParkedJob) -> bool:
    """Charge what a job needs to its quotas if they cover it; say whether they do."""
    need = _need(job)
    whose = (QuotaScope.TENANT, job.spec.tenant), (QuotaScope.SCHEDULER, job.spec.scheduler)
    rows = [left[subject] for subject in whose if subject in left]
    if any((need > np.maximum(row, 0)).any() for row in rows):
        return False
    for row in rows:
        np.subtract(row, need, out=row)
    return True


def _need(job: ParkedJob) -> Amounts:
    """Return what a job must be let in with, at the least, to get on."""
    ends = np.cumsum([group.tasks for group in job.spec.groups])
    tasks = job.unplaced[: max(1, job.spec.minimum - job.placed)]
    need = np.zeros(len(Budget), np.int64)
    for number in np.searchsorted(ends, tasks, side="right").tolist():
        group = job.spec.groups[number]
        need += cost(group.demand)
        need[Budget.GPU_SLICES] += group.gpus * group.gpu_slices
    need[Budget.JOBS] = job.placed == 0
    return need
