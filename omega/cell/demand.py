"""Demand by constraints: what the tasks of late asked for, and which machines they may use.

Goal     Let placement know what other tasks need, so that it leaves them the machines that they
         must have.
Promise  A frozen value, the same after the same jobs. A set of constraints with too small a share
         is left out, and so is all of it while there is one set only: machines are then not told
         apart. Constant memory and time for each job.
Source   Sharma et al. (SoCC 2011): tasks with constraints wait longest, for machines that others
         could have left alone.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import compress
from math import exp
from typing import Final

import numpy as np

from omega.model.arrays import Score, freeze
from omega.model.jobs import Constraint, LeasedJob, TaskGroup
from omega.model.lanes import task_demand

Constraints = frozenset[Constraint]
RESOURCES: Final = len(task_demand(TaskGroup(tasks=1)))
MEMORY_JOBS: Final = 2_000
"""The number of jobs after which a job has 1/e of the weight of a new one."""
SHARE_MIN: Final = 0.002
"""The share of all that is asked for of some resource from which on a set of constraints counts.
What one job asks for is less, once so many jobs are known that shares mean something."""
SETS_MAX: Final = 64
"""How many sets of constraints are remembered."""
WEIGHT_MAX: Final = 1e9
"""The weight of a new job at which all weights are divided by it."""


@dataclass(frozen=True, eq=False)
class Demand:
    """What tasks ask for, by their constraints; only proportions count."""

    constraints: tuple[Constraints, ...]
    """Distinct sets; the empty one is that of tasks that may use any machine."""
    amounts: Score
    """What the tasks with each set ask for together: (sets, resources), as of `task_demand`."""

    def __post_init__(self) -> None:
        assert self.amounts.shape == (len(self.constraints), RESOURCES)
        freeze(self.amounts)

    @property
    def tells_apart(self) -> bool:
        """Whether some tasks have other constraints than others."""
        return len(self.constraints) > 1

    @classmethod
    def of(cls, groups: Iterable[TaskGroup]) -> "Demand":
        """Return what all tasks of these groups ask for."""
        return DemandTally(memory_jobs=np.inf).counted(groups).demand(share_min=0.0)


NO_DEMAND: Final = Demand((), np.zeros((0, RESOURCES)))


class DemandTally:
    """Adds up what jobs ask for; the weight of a job decays with the number of jobs after it."""

    def __init__(self, *, memory_jobs: float = MEMORY_JOBS) -> None:
        self._growth = exp(1 / memory_jobs)
        self._weight = 1.0
        """Of the newest job: it grows, so that the older ones need not be touched."""
        self._sums: dict[Constraints, list[float]] = {}

    def count(self, job: LeasedJob) -> None:
        """Add all tasks of a job."""
        self._weight *= self._growth
        if self._weight > WEIGHT_MAX:
            for sums in self._sums.values():
                sums[:] = [amount / self._weight for amount in sums]
            self._weight = 1.0
        self.counted(job.spec.groups)

    def counted(self, groups: Iterable[TaskGroup]) -> "DemandTally":
        """Add all tasks of these groups, and return this tally."""
        for group in groups:
            sums = self._sums_of(frozenset(group.constraints))
            tasks = group.tasks * self._weight
            sums[0] += tasks * group.cpu_milli
            sums[1] += tasks * group.memory_mib
            sums[2] += tasks * group.disk_mib
            sums[3] += tasks * group.gpus * group.gpu_slices
        return self

    def demand(self, *, share_min: float = SHARE_MIN) -> Demand:
        """Return what counts now."""
        if len(self._sums) < 2:  # noqa: PLR2004 - two can be told apart
            return NO_DEMAND
        amounts = np.array(list(self._sums.values())) / self._weight
        counts = _shares(amounts) >= share_min
        if np.count_nonzero(counts) < 2:  # noqa: PLR2004
            return NO_DEMAND
        return Demand(tuple(compress(self._sums, counts.tolist())), amounts[counts])

    def _sums_of(self, constraints: Constraints) -> list[float]:
        sums = self._sums.get(constraints)
        if sums is None:
            if len(self._sums) == SETS_MAX:
                least = int(_shares(np.array(list(self._sums.values()))).argmin())
                del self._sums[list(self._sums)[least]]
            sums = self._sums[constraints] = [0.0] * RESOURCES
        return sums


def _shares(amounts: Score) -> Score:
    """Return the largest share of each row in any resource."""
    return np.asarray((amounts / np.maximum(amounts.sum(axis=0), 1e-9)).max(axis=1))
