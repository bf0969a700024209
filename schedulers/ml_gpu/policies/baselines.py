"""Baselines from elsewhere: isolated shares, AlloX, and packing in the manner of Gandiva.

Goal     Compare with what others do, on the same jobs.
Promise  AlloX' assignment costs the least possible; started jobs never move. Gandiva's pairs are
         drawn from the random generator that is passed in, and stay as long as they are worth it.
Source   AlloX (EuroSys 2020); Gandiva (OSDI 2018); as Gavel (OSDI 2020), section 7, runs them.
"""

import numpy as np
from scipy.optimize import linear_sum_assignment

from omega.errors import BadInput
from omega.model.arrays import Index
from schedulers.ml_gpu.problem import NOBODY, Allocation, JobPairs, Problem

ENTRIES_MAX = 50_000_000
"""Of AlloX' table, 8 bytes each: about four thousand waiting jobs on three types."""


def isolated(problem: Problem) -> Allocation:
    """Give everyone an equal part of every type."""
    return Allocation.alone(problem, problem.isolated_share, solves=0)


def allox(problem: Problem) -> Allocation:
    """Put waiting jobs in queues, one a free GPU, so that the sum of finish times is smallest.

    A job that is k-th from the end of a queue delays k jobs, itself included, by its own time.
    Only the job at the head of each queue starts. Positions are numbered from the end, and one
    is used only where all GPUs of the type have the one before it: so few need to be looked at.
    Raises BadInput for more jobs than a table of jobs by positions has room for.
    """
    assert (problem.size == 1).all(), "AlloX has no gangs"
    runs_on = np.full(problem.jobs, -1) if problem.runs_on is None else problem.runs_on
    waiting = np.flatnonzero(runs_on < 0)
    gpus = problem.gpus.astype(np.int64)
    free = gpus - np.bincount(runs_on[runs_on >= 0], minlength=len(gpus))
    depth = np.where(free > 0, (len(waiting) - 1) // np.maximum(free, 1) + 1, 0)
    if len(waiting) * int(free @ depth) > ENTRIES_MAX:
        raise BadInput(f"allox weighs each job against each place: {len(waiting):,} are too many")
    type_ = np.repeat(np.arange(len(free)), free * depth)
    place = np.concatenate([np.arange(n * k) for n, k in zip(free, depth, strict=True)])
    gpu, position = place % np.maximum(free[type_], 1), place // np.maximum(free[type_], 1) + 1
    rate = problem.rate[waiting]
    steps = np.repeat(problem.remaining_steps[waiting, np.newaxis], rate.shape[1], axis=1)
    cost = np.divide(steps, rate, out=np.zeros_like(rate), where=rate > 0)[:, type_] * position
    can_run = rate[:, type_] > 0
    # Dearer than any way of serving everybody, so that as many as can are served.
    cost[~can_run] = len(waiting) * cost.max(initial=0.0) + 1.0
    job, column = linear_sum_assignment(cost)
    served = can_run[job, column]
    job, column = job[served], column[served]
    share = np.zeros(problem.rate.shape)
    started = runs_on >= 0
    share[started, runs_on[started]] = 1.0
    heads = _heads(type_[column], gpu[column], position[column])
    share[waiting[job[heads]], type_[column[heads]]] = 1.0
    found = Allocation.alone(problem, share)
    total = float(cost[job, column].sum() + problem.age_s[waiting].sum())
    return Allocation(found.share, found.progress, found.used, assignment_cost=total)


def _heads(type_: Index, gpu: Index, position: Index) -> Index:
    """Return which assignments are at the head of their queues: the farthest from the end."""
    order = np.lexsort((-position, gpu, type_))
    queue = np.stack([type_[order], gpu[order]])
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = (queue[:, 1:] != queue[:, :-1]).any(axis=0)
    return order[is_first]


def gandiva(problem: Problem, rng: np.random.Generator) -> Allocation:
    """Give everyone an equal part; when more is asked for than there is, to random pairs.

    Jobs that were paired last stay together; only the others are drawn. A pair whose normalised
    rates, summed over the types, fall below 1 is broken up.
    """
    if problem.size.sum() <= problem.gpus.sum() or problem.pairs is None:
        return isolated(problem)
    return in_equal_parts(problem, *_paired(problem, rng))


def in_equal_parts(problem: Problem, first: Index, second: Index) -> Allocation:
    """Give each of these pairs, and everyone else, an equal part of every type."""
    assert problem.pairs is not None
    pairs = np.full(problem.jobs, -1)
    pairs[first] = second
    partner = pairs.copy()
    partner[second] = first
    units = np.flatnonzero((partner < 0) | (pairs >= 0))  # a pair counts once, by its first job
    even = problem.gpus / (len(units) * problem.size[units, np.newaxis])
    even = even / np.maximum(1.0, even.sum(axis=1, keepdims=True))
    share = np.zeros(problem.rate.shape)
    share[units] = even
    share[second] = share[first]
    rate = problem.rate.copy()
    rate[first] = problem.pairs.of[problem.kind[first], problem.kind[second]]
    rate[second] = problem.pairs.of[problem.kind[second], problem.kind[first]]
    at, type_ = np.nonzero(share[first])
    return Allocation(
        share=share,
        progress=rate * share,
        used=problem.size[units] @ even,
        solves=0,
        together=JobPairs(first[at], second[at], type_, share[first[at], type_]),
    )


def _paired(problem: Problem, rng: np.random.Generator) -> tuple[Index, Index]:
    """Return the pairs of before, and new ones of the jobs that are in none."""
    partner = np.full(problem.jobs, NOBODY) if problem.partner is None else problem.partner
    kept = np.flatnonzero(partner > np.arange(problem.jobs))  # a pair counts once, by its first
    first, second = _worthwhile(problem, kept, partner[kept])
    lone = np.setdiff1d(np.arange(problem.jobs), np.append(first, second))
    new_first, new_second = _worthwhile(problem, *_drawn(problem, lone, rng))
    return np.append(first, new_first), np.append(second, new_second)


def _drawn(problem: Problem, jobs: Index, rng: np.random.Generator) -> tuple[Index, Index]:
    """Draw pairs of jobs of one size; of each pair, the one that came first is named first."""
    order = rng.permutation(jobs)
    firsts, seconds = [order[:0]], [order[:0]]
    for size in np.unique(problem.size[jobs]):
        same = order[problem.size[order] == size]
        half = len(same) // 2
        firsts.append(same[:half])
        seconds.append(same[half : 2 * half])
    one, other = np.concatenate(firsts), np.concatenate(seconds)
    return np.minimum(one, other), np.maximum(one, other)


def _worthwhile(problem: Problem, first: Index, second: Index) -> tuple[Index, Index]:
    """Return those of the pairs that do as much together as one job alone."""
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = _over(problem, first, second) + _over(problem, second, first)
    keep = gain >= 1
    return first[keep], second[keep]


def _over(
    problem: Problem, one: Index, other: Index
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return what is left of each job's rates beside another, summed over the types."""
    assert problem.pairs is not None
    beside = problem.pairs.of[problem.kind[one], problem.kind[other]]
    ratio = np.where(problem.rate[one] > 0, beside / problem.rate[one], 0.0)
    return np.asarray(ratio.sum(axis=1))
