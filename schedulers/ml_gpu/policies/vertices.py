"""Vertices: the few ways to meet a need exactly that all others are mixtures of.

Goal     Turn what a group may do on average into what each of its jobs is to do.
Promise  Every job gets time that meets its own need, and together they use what the group had.
Source   Minkowski sums of polytopes whose right-hand side alone differs, linear between changes of
         basis: docs/decisions/0025-policies-on-groups.md.
"""

from dataclasses import dataclass

import numpy as np

from omega.model.arrays import Index, Score
from schedulers.ml_gpu.groups import Groups
from schedulers.ml_gpu.linear_program import LinearProgram
from schedulers.ml_gpu.problem import Problem, Shares
from schedulers.ml_gpu.throughputs import Rates


def intervals(problem: Problem, needs: Score) -> Index:
    """Return how many of its types are too slow for each job's need by themselves."""
    return np.asarray((problem.rate < needs[:, np.newaxis]).sum(axis=1))


def divided(problem: Problem, groups: Groups, needs: Score, value: Rates) -> Shares | None:
    """Return every job's share such that all needs are met and the value is highest, or None."""
    mean = groups.mean(needs)
    vertices = _vertices(problem.rate[groups.example], needs[groups.example])
    if len(np.unique(vertices.group)) < len(groups.count):
        return None  # somebody needs more than its fastest type gives
    average = vertices.at(mean)
    gpus = (groups.count * problem.size[groups.example])[vertices.group]
    worth = (value * problem.rate)[groups.example][vertices.group] * average
    many, columns = len(groups.count), len(vertices.group)
    column, type_ = np.nonzero(average)
    linear_program = LinearProgram(
        [
            (vertices.group, np.arange(columns), np.ones(columns)),
            (many + type_, column, (gpus[:, np.newaxis] * average)[column, type_]),
        ],
        columns=columns,
        lower=np.append(np.ones(many), np.full(len(problem.gpus), -np.inf)),
        upper=np.append(np.ones(many), problem.gpus),
    )
    found = linear_program.maximise(worth.sum(axis=1) * groups.count[vertices.group])
    if found is None:
        return None
    fixed = _summed(vertices.group, found.value[:, np.newaxis] * vertices.fixed, many)
    each = _summed(vertices.group, found.value[:, np.newaxis] * vertices.each, many)
    share = fixed[groups.of] + each[groups.of] * needs[:, np.newaxis]
    return np.asarray(np.maximum(share, 0.0))


@dataclass(frozen=True, eq=False)
class _Vertices:
    """Shares `fixed + each x need`: (vertices, types)."""

    group: Index
    fixed: Shares
    each: Shares

    def at(self, need: Score) -> Shares:
        """Return the shares for these needs, one a group."""
        return np.asarray(self.fixed + self.each * need[self.group, np.newaxis])


def _vertices(rate: Rates, need: Score) -> _Vertices:
    """Return the vertices of each group: rates of (groups, types), a need of each.

    Just enough time on a type fast enough; all of the time on it; or all of the time, divided
    between one too slow and one fast enough so that the need is just met.
    """
    is_fast = (rate >= need[:, np.newaxis]) & (rate > 0)
    is_slow = ~is_fast & (rate > 0)
    types = rate.shape[1]
    parts = []
    for fast in range(types):
        group = np.flatnonzero(is_fast[:, fast])
        nothing = np.zeros((len(group), types))
        enough, whole = nothing.copy(), nothing.copy()
        enough[:, fast] = 1 / rate[group, fast]
        whole[:, fast] = 1.0
        parts += [(group, nothing, enough), (group, whole, nothing)]
        for slow in range(types):
            group = np.flatnonzero(is_fast[:, fast] & is_slow[:, slow])
            fixed, each = np.zeros((2, len(group), types))
            gap = rate[group, fast] - rate[group, slow]
            each[:, fast], fixed[:, fast] = 1 / gap, -rate[group, slow] / gap
            each[:, slow], fixed[:, slow] = -each[:, fast], 1 - fixed[:, fast]
            parts.append((group, fixed, each))
    return _Vertices(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _summed(group: Index, rows: Shares, groups: int) -> Shares:
    total = np.zeros((groups, rows.shape[1]))
    np.add.at(total, group, rows)
    return total
