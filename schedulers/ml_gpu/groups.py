"""Groups of jobs that a policy cannot tell apart, and the ways in which they may spend time.

Goal     Make a linear program as small as the cluster is varied, however many jobs there are.
Promise  Exact: where jobs of a group differ in number alone, an optimum exists in which they get
         equal shares, for the average over all exchanges of two of them is feasible and as good.
         A pair that is worse than taking turns is left out; no optimum needs it.
Source   Gavel (OSDI 2020), section 3.1, space sharing; the grouping is ours:
         docs/decisions/0025-policies-on-groups.md.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from omega.model.arrays import Counts, Index, Score
from schedulers.ml_gpu.problem import NOBODY, Allocation, JobPairs, Problem, Shares


@dataclass(frozen=True, eq=False)
class Groups:
    """A partition of the jobs."""

    of: Index
    """Group of each job."""
    count: Counts
    """Jobs in each group."""
    example: Index
    """One job of each group, the first."""

    @classmethod
    def by(cls, *columns: NDArray[np.generic]) -> "Groups":
        """Group the jobs that agree in all columns."""
        of = np.zeros(len(columns[0]), np.intp)
        for column in columns:
            if len(column) and (column == column[0]).all():
                continue
            value = np.unique(column, return_inverse=True)[1]
            of = of * (int(value.max()) + 1) + value
            of = np.unique(of, return_inverse=True)[1]
        count = np.bincount(of).astype(np.int64)
        example = np.empty(len(count), np.intp)
        example[of[::-1]] = np.arange(len(of))[::-1]
        return cls(of, count, example)

    def mean(self, values: Score) -> Score:
        """Return the mean over each group."""
        return np.asarray(np.bincount(self.of, values, len(self.count)) / self.count)


@dataclass(frozen=True, eq=False)
class TimeVariables:
    """Ways of spending time: a group alone on a type, or with another on the same GPUs.

    A variable counts the total time that the pairs (or jobs) of a mode have. Two jobs of one
    group together spend twice the time: `times` is 2 and there is no second group.
    """

    first: Index
    second: Index
    """The other group, or NOBODY."""
    type: Index
    times: Score
    rate: Score
    """Steps/s that the first group makes of it."""
    second_rate: Score

    def __len__(self) -> int:
        return len(self.first)

    @classmethod
    def joined(cls, parts: Iterable["TimeVariables"]) -> "TimeVariables":
        """Join several lists of modes."""
        columns = zip(
            *((p.first, p.second, p.type, p.times, p.rate, p.second_rate) for p in parts),
            strict=True,
        )
        return cls(*(np.concatenate(column) for column in columns))


def modes(problem: Problem, groups: Groups) -> TimeVariables:
    """Return every way in which the groups can spend time on GPUs."""
    kind = problem.kind[groups.example]
    group, type_ = np.nonzero(problem.table[kind] > 0)
    nobody = np.full(len(group), NOBODY)
    ones, zeros = np.ones(len(group)), np.zeros(len(group))
    alone = TimeVariables(group, nobody, type_, ones, problem.table[kind[group], type_], zeros)
    if problem.pairs is None:
        return alone
    return TimeVariables.joined([alone, *_pairs(problem, groups, kind)])


def _pairs(problem: Problem, groups: Groups, kind: Index) -> Iterable[TimeVariables]:
    assert problem.pairs is not None
    first, second = np.triu_indices(len(kind))
    fits = problem.gang[kind[first]] == problem.gang[kind[second]]
    fits &= (first != second) | (groups.count[first] > 1)
    first, second = first[fits], second[fits]
    for type_ in range(len(problem.types)):
        mine = problem.pairs.of[kind[first], kind[second], type_]
        theirs = problem.pairs.of[kind[second], kind[first], type_]
        with np.errstate(divide="ignore", invalid="ignore"):
            turns = (
                mine / problem.table[kind[first], type_]
                + theirs / problem.table[kind[second], type_]
            )
        worth = turns > 1  # else the two do as well by taking turns, and spend less time
        same = first == second
        two, one = worth & ~same, worth & same
        yield TimeVariables(
            first[two],
            second[two],
            np.full(two.sum(), type_),
            np.ones(two.sum()),
            mine[two],
            theirs[two],
        )
        yield TimeVariables(
            first[one],
            np.full(one.sum(), NOBODY),
            np.full(one.sum(), type_),
            np.full(one.sum(), 2.0),
            mine[one] + theirs[one],
            np.zeros(one.sum()),
        )


def allocation(
    problem: Problem, groups: Groups, ways: TimeVariables, time: Score, *, solves: int
) -> Allocation:
    """Return what it means for each job that each mode has so much time in total."""
    shape = (len(groups.count), len(problem.types))
    share, progress = np.zeros(shape), np.zeros(shape)
    pair = ways.second != NOBODY
    each = time / groups.count[ways.first]
    np.add.at(share, (ways.first, ways.type), each * ways.times)
    np.add.at(progress, (ways.first, ways.type), each * ways.rate)
    other = time[pair] / groups.count[ways.second[pair]]
    np.add.at(share, (ways.second[pair], ways.type[pair]), other)
    np.add.at(progress, (ways.second[pair], ways.type[pair]), other * ways.second_rate[pair])
    used = np.zeros(len(problem.types))
    size = problem.size[groups.example[ways.first]]
    np.add.at(used, ways.type, size * time)
    is_shared = pair | (ways.times > 1)
    return Allocation(
        share=_whole(share)[groups.of],
        progress=progress[groups.of],
        used=used,
        solves=solves,
        together=_who(groups, ways, time, is_shared) if is_shared.any() else None,
    )


def _whole(share: Shares) -> Shares:
    """Take back what rounding has given a group beyond all of its time."""
    return np.asarray(share / np.maximum(1.0, share.sum(axis=1, keepdims=True)))


def _who(
    groups: Groups, ways: TimeVariables, time: Score, is_shared: NDArray[np.bool_]
) -> JobPairs:
    """Pair jobs so that each of a group has an equal part of each of its modes."""
    order = np.argsort(groups.of, kind="stable")
    members = np.split(order, np.cumsum(groups.count)[:-1])
    parts = []
    for way in np.flatnonzero(is_shared & (time > 0)):
        mine = members[ways.first[way]]
        if ways.second[way] == NOBODY:
            first, second, part = _round_table(mine)
        else:
            first, second, part = _side_by_side(mine, members[ways.second[way]])
        parts.append((first, second, np.full(len(first), ways.type[way]), part * time[way]))
    if not parts:
        nobody = np.zeros(0, np.intp)
        return JobPairs(nobody, nobody, nobody, np.zeros(0))
    return JobPairs(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _round_table(jobs: Index) -> tuple[Index, Index, Score]:
    """Pair each job with its neighbour: two are one pair, more are as many pairs as jobs."""
    if len(jobs) == 2:  # noqa: PLR2004 - a pair
        return jobs[:1], jobs[1:], np.ones(1)
    return jobs, np.roll(jobs, -1), np.full(len(jobs), 1 / len(jobs))


def _side_by_side(mine: Index, theirs: Index) -> tuple[Index, Index, Score]:
    """Lay both groups out over one unit of time and pair whoever meets."""
    edges = np.union1d(
        np.arange(len(mine) + 1) * len(theirs), np.arange(len(theirs) + 1) * len(mine)
    )
    starts = edges[:-1]
    part = np.diff(edges) / (len(mine) * len(theirs))
    return mine[starts // len(theirs)], theirs[starts // len(mine)], part
