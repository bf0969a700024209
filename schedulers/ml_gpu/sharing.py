"""The linear program that most policies are variations of.

Goal     Build the sentences that never change once: nobody has more time than there is, no type
         more work than GPUs, everybody at least the rate that a policy asks for.
Promise  Rates are in units of the rate that a job has in a slot of the average cluster, so that
         those of unlike models are of one magnitude.
Source   Gavel (OSDI 2020), sections 3.1 and 4.
"""

from dataclasses import dataclass, replace

import numpy as np

from omega.model.arrays import Counts, Score
from schedulers.ml_gpu.groups import Groups, modes
from schedulers.ml_gpu.linear_program import LinearProgram
from schedulers.ml_gpu.problem import NOBODY, Problem
from schedulers.ml_gpu.throughputs import Rates


@dataclass(frozen=True, eq=False)
class Solution:
    """An optimum."""

    level: float
    """The variable that all rates are held against."""
    time: Score
    """Total time of each mode."""
    price: Score
    """For each group, how much the level would rise if it asked for one unit less."""


class SharingProgram:
    """Times of modes, and a level: the rate of each group >= slope x level + floor."""

    def __init__(self, problem: Problem, groups: Groups) -> None:
        self.groups = groups
        self.modes = modes(problem, groups)
        self._mean = problem.proportional[groups.example]
        self._unit = self._mean / groups.count
        every, many = np.arange(len(groups.count)), len(groups.count)
        self._level = len(self.modes)
        self._rate_rows = every.astype(np.int32)
        ways = self.modes
        first, column = ways.first, np.arange(len(ways))
        pair = np.flatnonzero(ways.second != NOBODY)
        second = ways.second[pair]
        gpus = problem.size[groups.example[first]].astype(np.float64)
        enough_rate = [
            (first, column, ways.rate / self._mean[first]),
            (second, pair, ways.second_rate[pair] / self._mean[second]),
            (every, np.full(many, self._level), np.ones(many)),
        ]
        time_suffices = [
            (many + first, column, ways.times),
            (many + second, pair, np.ones(len(pair))),
        ]
        gpus_suffice = [(2 * many + ways.type, column, gpus)]
        nothing = np.full(many + len(problem.gpus), -np.inf)
        self._linear_program = LinearProgram(
            enough_rate + time_suffices + gpus_suffice,
            columns=len(ways) + 1,
            lower=np.concatenate([np.zeros(many), nothing]),
            upper=np.concatenate([np.full(many, np.inf), groups.count, problem.gpus]),
        )

    def recount(self, count: Counts) -> None:
        """Change how many jobs the groups have; the next solve starts from where the last stood."""
        many = len(count)
        for group in np.flatnonzero(count != self.groups.count).tolist():
            self._linear_program.set_upper(many + group, float(count[group]))
        self.groups = replace(self.groups, count=count)
        self._unit = self._mean / count

    @property
    def solves(self) -> int:
        """Linear programmes solved so far."""
        return self._linear_program.solves

    def raise_level(self, slope: Score, floor: Score, most: float = np.inf) -> Solution | None:
        """Maximise the level, up to `most`; slope and floor are steps/s of one job of each group.

        None if there is none, which can only be where a floor comes with a slope of 0.
        """
        # The solver sees a level whose steepest row has slope one: whatever the level's own unit
        # is, rows mean as much to its tolerance as they do without it.
        unit = float((slope / self._unit).max()) or 1.0
        self._linear_program.set_entries(self._rate_rows, self._level, -slope / self._unit / unit)
        self._linear_program.set_lower(self._rate_rows, floor / self._unit)
        self._linear_program.set_range(self._level, -np.inf, most * unit)
        worth = np.zeros(len(self.modes) + 1)
        worth[self._level] = 1.0
        solution = self._solve(worth)
        if solution is None:
            return None
        return replace(solution, level=solution.level / unit, price=solution.price / unit)

    def spend(self, value: Rates, floor: Score, *, beyond: float = 0.0) -> Solution | None:
        """Maximise the value of all steps done while every job has its floor, in steps/s.

        `value` is that of a step/s of a job of each group on each type. Every floor above 0 is
        raised by `beyond`, in rows' units. None if the floors cannot all be met.
        """
        lower = floor / self._unit
        self._linear_program.set_lower(self._rate_rows, lower + beyond * (lower > 0))
        self._linear_program.set_range(self._level, 0.0, 0.0)
        return self._solve(np.append(self._worth(value), 0.0))

    def _worth(self, value: Rates) -> Score:
        ways = self.modes
        other = value[ways.second, ways.type] * ways.second_rate
        return np.asarray(
            value[ways.first, ways.type] * ways.rate + np.where(ways.second == NOBODY, 0.0, other)
        )

    def _solve(self, worth: Score) -> Solution | None:
        found = self._linear_program.maximise(worth)
        if found is None:
            return None
        return Solution(
            level=float(found.value[self._level]),
            time=np.maximum(found.value[: self._level], 0.0),
            price=-found.price[: len(self._rate_rows)],
        )
