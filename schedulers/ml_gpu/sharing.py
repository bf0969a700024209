"""The linear program that most policies are variations of.

Goal     Build the sentences that never change once: nobody has more time than there is, no type
         more work than GPUs, everybody at least the rate that a policy asks for.
Promise  Rates are in units of the rate that a job has in a slot of the average cluster, so that
         those of unlike models are of one magnitude. Of many modes only those are in the program
         that can better it; it is as good as with all.
Source   Gavel (OSDI 2020), sections 3.1 and 4; column generation (Gilmore and Gomory, 1961).
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from omega.model.arrays import Counts, Index, Mask, Score
from schedulers.ml_gpu.groups import Groups, modes
from schedulers.ml_gpu.linear_program import TOLERANCE, Entries, LinearProgram, Optimum
from schedulers.ml_gpu.problem import NOBODY, Problem
from schedulers.ml_gpu.throughputs import Rates

MANY: Final = 5_000
"""Modes from which most are left out until they are wanted: a solve takes longer than a search."""


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
        self._types = len(problem.gpus)
        self._mean = problem.proportional[groups.example]
        self._unit = self._mean / groups.count
        self._gpus = problem.size[groups.example[self.modes.first]].astype(np.float64)
        every, many = np.arange(len(groups.count)), len(groups.count)
        is_alone: Mask = np.asarray((self.modes.second == NOBODY) & (self.modes.times == 1))
        self._is_in: Mask = is_alone if len(self.modes) >= MANY else np.ones_like(is_alone)
        """Modes in the program: all, or those of jobs alone and what was found to better it."""
        self._first_in = np.flatnonzero(self._is_in)
        self._added = self._first_in[:0]
        self._level = len(self._first_in)
        """Its column: after the modes that are in from the first, and before those added."""
        self._rate_rows = every.astype(np.int32)
        nothing = np.full(many + self._types, -np.inf)
        self._linear_program = LinearProgram(
            [
                *self._entries(self._first_in),
                (every, np.full(many, self._level), np.ones(many)),
            ],
            columns=self._level + 1,
            lower=np.concatenate([np.zeros(many), nothing]),
            upper=np.concatenate([np.full(many, np.inf), groups.count, problem.gpus]),
        )

    def _entries(self, which: Index) -> list[Entries]:
        """Return the entries of some modes, as columns from 0."""
        ways, many = self.modes, len(self.groups.count)
        first, column = ways.first[which], np.arange(len(which))
        pair = np.flatnonzero(ways.second[which] != NOBODY)
        second = ways.second[which[pair]]
        enough_rate = [
            (first, column, ways.rate[which] / self._mean[first]),
            (second, pair, ways.second_rate[which[pair]] / self._mean[second]),
        ]
        time_suffices = [
            (many + first, column, ways.times[which]),
            (many + second, pair, np.ones(len(pair))),
        ]
        gpus_suffice = [(2 * many + ways.type[which], column, self._gpus[which])]
        return enough_rate + time_suffices + gpus_suffice

    def recount(self, count: Counts) -> None:
        """Change how many jobs the groups have; the next solve starts from where the last stood."""
        many = len(count)
        for group in np.flatnonzero(count != self.groups.count).tolist():
            self._linear_program.set_upper(many + group, float(count[group]))
        self.groups = replace(self.groups, count=count)
        self._unit = self._mean / count

    @property
    def solves(self) -> int:
        """Linear programs solved so far."""
        return self._linear_program.solves

    @property
    def considered(self) -> int:
        """How many of the modes are in the program."""
        return int(np.count_nonzero(self._is_in))

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
        solution = self._solve(np.zeros(len(self.modes)), 1.0)
        if solution is None:
            return None
        return replace(solution, level=solution.level / unit, price=solution.price / unit)

    def spend(self, value: Rates, floor: Score, *, beyond: float = 0.0) -> Solution | None:
        """Maximise the value of all steps done while every job has its floor, in steps/s.

        `value` is that of a step/s of a job of each group on each type. Every floor above 0 is
        raised by `beyond`, in rows' units. None if the floors cannot all be met.
        """
        lower = floor / self._unit
        lower = lower + beyond * (lower > 0)
        found = self._spent(value, lower)
        if found is None and not self._is_in.all():
            # Those that are in may not suffice: look for modes that raise all towards their floors.
            met = self.raise_level(lower * self._unit, np.zeros(len(lower)), most=1.0)
            if met is not None and met.level >= 1 - TOLERANCE:
                found = self._spent(value, lower)
        return found

    def _spent(self, value: Rates, lower: Score) -> Solution | None:
        self._linear_program.set_lower(self._rate_rows, lower)
        self._linear_program.set_range(self._level, 0.0, 0.0)
        return self._solve(self._worth(value), 0.0)

    def _worth(self, value: Rates) -> Score:
        ways = self.modes
        other = value[ways.second, ways.type] * ways.second_rate
        return np.asarray(
            value[ways.first, ways.type] * ways.rate + np.where(ways.second == NOBODY, 0.0, other)
        )

    def _solve(self, worth: Score, level_worth: float) -> Solution | None:
        """Maximise the worth of all modes; None if what is in the program permits nothing."""
        while True:
            said = (worth[self._first_in], [level_worth], worth[self._added])
            found = self._linear_program.maximise(np.concatenate(said))
            if found is None:
                return None
            more = self._wanted(worth, level_worth, found)
            if not len(more):
                break
            self._linear_program.add_columns(self._entries(more), len(more))
            self._added = np.append(self._added, more)
            self._is_in[more] = True
        time = np.zeros(len(self.modes))
        time[self._first_in] = found.value[: self._level]
        time[self._added] = found.value[self._level + 1 :]
        return Solution(
            level=float(found.value[self._level]),
            time=np.maximum(time, 0.0),
            price=-found.price[: len(self._rate_rows)],
        )

    def _wanted(self, worth: Score, level_worth: float, found: Optimum) -> Index:
        """Return modes that are not in and would better it: of each group the best on each type."""
        if self._is_in.all():
            return self._added[:0]
        ways, many = self.modes, len(self.groups.count)
        rate, time = found.price[:many] / self._mean, found.price[many : 2 * many]
        pair = ways.second != NOBODY
        costs = rate[ways.first] * ways.rate + time[ways.first] * ways.times
        costs += np.where(pair, rate[ways.second] * ways.second_rate + time[ways.second], 0.0)
        costs += found.price[2 * many :][ways.type] * self._gpus
        unit = max(float(np.abs(worth).max(initial=0.0)), level_worth)
        gain = np.where(self._is_in, 0.0, worth - costs)
        better = np.flatnonzero(gain > TOLERANCE * unit)
        better = better[np.argsort(-gain[better], kind="stable")]
        best = [
            np.unique(whose[better] * self._types + ways.type[better], return_index=True)[1]
            for whose in (ways.first, ways.second)
        ]
        return np.asarray(better[np.union1d(*best)])
