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
        self._kept = exp(-1 / memory_jobs)
        self._row: dict[Constraints, int] = {}
        self._amounts = np.zeros((SETS_MAX, RESOURCES))

    def count(self, job: LeasedJob) -> None:
        """Add all tasks of a job."""
        self._amounts *= self._kept
        self.counted(job.spec.groups)

    def counted(self, groups: Iterable[TaskGroup]) -> "DemandTally":
        """Add all tasks of these groups, and return this tally."""
        for group in groups:
            self._amounts[self._row_of(frozenset(group.constraints))] += group.tasks * task_demand(
                group
            )
        return self

    def demand(self, *, share_min: float = SHARE_MIN) -> Demand:
        """Return what counts now."""
        if len(self._row) < 2:  # noqa: PLR2004 - two can be told apart
            return NO_DEMAND
        counts = self._shares() >= share_min
        constraints = tuple(each for each, row in self._row.items() if counts[row])
        if len(constraints) < 2:  # noqa: PLR2004
            return NO_DEMAND
        return Demand(constraints, self._amounts[[self._row[each] for each in constraints]])

    def _row_of(self, constraints: Constraints) -> int:
        row = self._row.get(constraints)
        if row is None:
            row = len(self._row)
            if row == SETS_MAX:
                least = int(self._shares().argmin())
                (out,) = (each for each, at in self._row.items() if at == least)
                row = self._row.pop(out)
                self._amounts[row] = 0.0
            self._row[constraints] = row
        return row

    def _shares(self) -> Score:
        """Return the largest share of each row in any resource."""
        total = self._amounts.sum(axis=0)
        return np.asarray((self._amounts / np.maximum(total, 1e-9)).max(axis=1))
