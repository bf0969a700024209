"""Policies in which each job needs a rate of its own: grouped by what can be met alike.

Goal     Let makespan, finish-time fairness and deadlines cost as many variables as the cluster is
         varied, though no two jobs need the same.
Promise  Exact. The times that meet a need, {x >= 0, sum x <= 1, rate x >= need}, are linear in
         the need between two neighbouring rates of the job's kind: jobs of one kind in one such
         interval merge into their mean, and a solution for the mean splits into one for each.
Source   docs/decisions/0025-policies-on-groups.md; Gavel (OSDI 2020), sections 4.2 and 4.4.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from omega.errors import InvariantBroken
from omega.model.arrays import Score
from schedulers.ml_gpu.groups import Groups, allocation
from schedulers.ml_gpu.linear_program import TOLERANCE
from schedulers.ml_gpu.policies.vertices import divided, intervals
from schedulers.ml_gpu.problem import Allocation, Problem, fair_value
from schedulers.ml_gpu.sharing import SharingProgram
from schedulers.ml_gpu.throughputs import Rates

CLOSE = 1e-11
"""Relative step of Newton's method at which the level has been found."""
SLACKS = (1e-10, 1e-9, 1e-8, 1e-7, 5e-7)
"""Parts of the level given up, one after the other, until its needs can be met to rounding."""
STEPS_MAX = 100

Need = Callable[[float], tuple[Score, Score]]
"""From a level to each job's need in steps/s and its slope; the need is convex in the level."""


@dataclass(frozen=True, eq=False)
class HighestLevel:
    """The highest level whose needs can all be met, and how."""

    level: float
    allocation: Allocation


def highest(problem: Problem, need: Need, bound: float) -> HighestLevel:
    """Find the highest level that can be met, from one that no job alone could pass.

    Newton's method from above: needs are convex, so their tangents ask for less than they do, and
    merging jobs asks for less than each does. So every step stays above the highest level, and
    stands still only on it.
    """
    level, solves = bound, 0
    sharing = None
    for _ in range(STEPS_MAX):
        needs, slopes = need(level)
        groups = _alike(problem, needs)
        sharing = _program(problem, groups, sharing)
        before, slope = sharing.solves, groups.mean(slopes)
        found = sharing.raise_level(slope, groups.mean(needs) - slope * level, bound)
        solves += sharing.solves - before
        if found is None:
            raise InvariantBroken("needs that sink with the level cannot be met at any")
        if found.level >= level - CLOSE * abs(level):
            break
        level = found.level
    else:
        raise InvariantBroken(f"the highest level was not found in {STEPS_MAX} steps")
    for slack in SLACKS:
        needs = need(level - slack * abs(level))[0]
        met = meet(problem, needs, solves=solves, begun=sharing)
        if met is not None:
            return HighestLevel(level, met)
    raise InvariantBroken("needs that can be met together could not be divided")


def meet(
    problem: Problem,
    needs: Score,
    value: Rates | None = None,
    *,
    solves: int = 0,
    begun: SharingProgram | None = None,
) -> Allocation | None:
    """Meet every job's need, in the way whose steps are worth most; None if there is none.

    `value` is what a step/s of each job on each type is worth, alike for jobs of a kind; the sum
    of all normalised rates if not given. `begun` is a program of the problem, which is gone on with
    if it has the same groups.
    """
    value = fair_value(problem) if value is None else value
    groups = _alike(problem, needs)
    if problem.pairs is None:
        share = divided(problem, groups, needs, value)
        return None if share is None else Allocation.alone(problem, share, solves=solves + 1)
    sharing = _program(problem, groups, begun)
    # A need smaller than what the solver overlooks must not be met by nothing.
    found = sharing.spend(value[groups.example], groups.mean(needs), beyond=2 * TOLERANCE)
    if found is None:
        return None
    return allocation(problem, groups, sharing.modes, found.time, solves=solves + 1)


def _program(problem: Problem, groups: Groups, begun: SharingProgram | None) -> SharingProgram:
    """Return a program of these groups: the one that is there already, or a new one."""
    if begun is not None and np.array_equal(begun.groups.of, groups.of):
        return begun
    return SharingProgram(problem, groups)


def _alike(problem: Problem, needs: Score) -> Groups:
    """Group jobs whose needs are met alike; when jobs share GPUs, only those of equal need."""
    if problem.pairs is None:
        return Groups.by(problem.kind, intervals(problem, needs))
    return Groups.by(problem.kind, needs)
