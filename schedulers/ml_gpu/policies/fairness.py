"""Max-min fairness: nobody's weighted rate could be higher without a lower one's becoming lower.

Goal     Give everyone as much as an equal part of the cluster would, counted in work done.
Promise  The least level is the greatest possible, and no GPU idles that could do more on top of it;
         water filling raises the second least as far as it goes, then the third, and so on.
Source   Gavel (OSDI 2020), sections 4.1 and 4.3; progressive filling by duals, not by a MILP, is
         ours: docs/decisions/0025-policies-on-groups.md.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from omega.errors import InvariantBroken
from omega.model.arrays import Index, Score
from schedulers.ml_gpu.groups import Groups, allocation
from schedulers.ml_gpu.problem import Allocation, Problem, fair_value
from schedulers.ml_gpu.sharing import SharingProgram, Solution

SLACKS = (1e-9, 1e-8, 1e-7)
"""Parts of floors given up, one after the other, until they can be built upon: levels are only
found as exactly, and of low ones the solver's tolerance is a greater part."""
PRICED = 1e-7
"""Dual from which a group counts as what holds the level down; all of them sum to one."""


def max_min(problem: Problem) -> Allocation:
    """Maximise min_i s_i norm_i / w_i, then the sum of all s_i norm_i above that."""
    return MaxMin()(problem)


class MaxMin:
    """Max-min fairness of jobs that come and go: `max_min`, solved from where it last stood.

    As long as the same groups are there, one job more or less changes a limit and a coefficient
    for its group, and the optimum is mostly a few pivots away. Pays where many kinds of jobs are.
    """

    def __init__(self) -> None:
        self._told: tuple[bytes, ...] = ()
        self._sharing: SharingProgram | None = None

    def __call__(self, problem: Problem) -> Allocation:
        """Return the allocation; which of several optima it is may depend on those before."""
        groups = Groups.by(problem.kind, problem.weight)
        sharing, before = self._sharing_of(problem, groups)
        one = groups.example
        slope = problem.proportional[one] * problem.weight[one] / problem.size[one]
        least = _raised(sharing, slope, np.zeros(len(slope)))
        value, floor = fair_value(problem)[one], slope * least.level
        tops = (sharing.spend(value, floor * (1 - slack)) for slack in SLACKS)
        best = next((top for top in tops if top is not None), least)
        solves = sharing.solves - before
        return allocation(problem, groups, sharing.modes, best.time, solves=solves)

    def _sharing_of(self, problem: Problem, groups: Groups) -> tuple[SharingProgram, int]:
        """Return the program of these groups, and how often it was solved before."""
        one = groups.example
        beside = () if problem.pairs is None else (problem.pairs.of.tobytes(),)
        # A group of one has no pair with itself, so that a second member is another program.
        alone = groups.count == 1 if beside else groups.count < 0
        about = (problem.table, problem.gang, problem.gpus, problem.kind[one], problem.weight[one])
        told = (*(array.tobytes() for array in about), alone.tobytes(), *beside)
        if self._sharing is None or told != self._told:
            self._sharing, self._told = SharingProgram(problem, groups), told
            return self._sharing, 0
        self._sharing.recount(groups.count)
        return self._sharing, self._sharing.solves


def water_filling(problem: Problem) -> Allocation:
    """Raise all levels together; whoever can rise no further stays, the others go on."""
    return _fill(problem, np.zeros(problem.jobs, np.intp), np.ones(1), np.zeros(1, np.bool_))


def hierarchical(problem: Problem) -> Allocation:
    """Do the same between entities by weight, and within each fairly or in order of arrival."""
    return _fill(problem, problem.entity_of, problem.entity_weight, problem.entity_is_fifo)


def _fill(
    problem: Problem, entity: Index, entity_weight: Score, is_fifo: NDArray[np.bool_]
) -> Allocation:
    itself = np.where(is_fifo[entity], np.arange(problem.jobs), -1)
    groups = Groups.by(problem.kind, problem.weight, entity, itself)
    sharing = SharingProgram(problem, groups)
    one = groups.example
    parts = _Parts(groups, problem.weight[one], entity[one], entity_weight, is_fifo)
    level = np.zeros(len(one))
    rising = np.ones(len(one), np.bool_)
    while rising.any():
        speed = parts.of(rising) / problem.size[one]
        unit = problem.proportional[one]
        found = _raised(sharing, speed * unit, level * unit)
        level += max(found.level, 0.0) * speed
        price = found.price * groups.count * speed
        held = rising & (price > PRICED * price.sum())
        if not held.any():
            raise InvariantBroken("water filling found nobody who holds the level down")
        rising &= ~held
    return allocation(problem, groups, sharing.modes, found.time, solves=sharing.solves)


def _raised(sharing: SharingProgram, slope: Score, floor: Score) -> Solution:
    """Raise the level over floors that were found to be possible."""
    for slack in SLACKS:
        found = sharing.raise_level(slope, floor * (1 - slack))
        if found is not None:
            return found
    raise InvariantBroken("rates that jobs were found to have cannot be met")


@dataclass(frozen=True, eq=False)
class _Parts:
    """What each job still rising weighs: its entity's weight, divided within the entity."""

    groups: Groups
    weight: Score
    """Of a job of each group."""
    entity: Index
    """Of each group."""
    entity_weight: Score
    is_fifo: NDArray[np.bool_]

    def of(self, rising: NDArray[np.bool_]) -> Score:
        """Return the weight of a job of each group, 0 where it waits or has stopped."""
        weight = np.where(rising, self.weight, 0.0)
        if len(self.entity_weight) == 1 and not self.is_fifo[0]:
            return weight
        total = np.bincount(self.entity, weight * self.groups.count, len(self.entity_weight))
        total = np.where(total > 0, total, 1.0)
        fair = self.entity_weight[self.entity] * weight / total[self.entity]
        return np.where(self.is_fifo[self.entity], self._first(rising), fair)

    def _first(self, rising: NDArray[np.bool_]) -> Score:
        """Give all of an entity's weight to its first job still rising, a group of its own."""
        waiting = np.flatnonzero(rising & self.is_fifo[self.entity])
        waiting = waiting[np.argsort(self.groups.example[waiting])]
        entity, at = np.unique(self.entity[waiting], return_index=True)
        part = np.zeros(len(rising))
        part[waiting[at]] = self.entity_weight[entity]
        return part
