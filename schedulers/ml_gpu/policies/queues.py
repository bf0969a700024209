"""Policies that serve a queue: whole GPUs to whoever is first, until none fit.

Goal     The baselines that people run today, with heterogeneity known and unknown.
Promise  Nobody overtakes a job that waits for room; a job that cannot run on what is free does not
         hold up the others. Shares are 0 or 1.
Source   Gavel (OSDI 2020), section 4.2 and its release; shortest job first after section 4.2.
"""

import numpy as np

from omega.model.arrays import Index, Score
from schedulers.ml_gpu.problem import NOWHERE, Allocation, JobPairs, Problem, Shares

WORTH_SHARING = 1.5
"""Summed normalised rates above which a waiting job joins a running one (the original's)."""


def fifo_fastest(problem: Problem) -> Allocation:
    """Give each job, in order of arrival, its fastest type that is free; from scratch each time."""
    return _on(problem, _serve(problem, np.arange(problem.jobs)))


def shortest_first(problem: Problem) -> Allocation:
    """Do the same in order of the time that is left on the fastest type."""
    left_s = problem.remaining_steps / problem.rate.max(axis=1)
    return _on(problem, _serve(problem, np.argsort(left_s, kind="stable")))


def fifo(problem: Problem, rng: np.random.Generator) -> Allocation:
    """Give each job, in order of arrival, any type that is free, and let it stay there."""
    free = problem.gpus.copy()
    type_ = np.full(problem.jobs, NOWHERE)
    if problem.runs_on is not None:
        type_[:] = problem.runs_on
        there = type_ != NOWHERE
        np.subtract.at(free, type_[there], problem.size[there])
    for job in np.flatnonzero(type_ == NOWHERE):
        fits = free >= problem.size[job]
        if not fits.any():
            break
        can = np.flatnonzero(fits & (problem.rate[job] > 0))
        if len(can):
            type_[job] = rng.choice(can)
            free[type_[job]] -= problem.size[job]
    return _on(problem, type_)


def fifo_sharing(problem: Problem) -> Allocation:
    """Serve as `fifo_fastest`, then let waiting jobs join running ones of their size."""
    type_ = _serve(problem, np.arange(problem.jobs))
    joined = _join(problem, type_)
    share = np.zeros(problem.rate.shape)
    everyone = type_.copy()
    everyone[joined.first] = type_[joined.second]
    running = np.flatnonzero(everyone != NOWHERE)
    share[running, everyone[running]] = 1.0
    progress = problem.rate * share
    if problem.pairs is not None:
        for one, other in ((joined.first, joined.second), (joined.second, joined.first)):
            rates = problem.pairs.of[problem.kind[one], problem.kind[other], joined.type]
            progress[one, joined.type] = rates
    return Allocation(
        share=share, progress=progress, used=_busy(problem, type_), solves=0, together=joined
    )


def _join(problem: Problem, type_: Index) -> JobPairs:
    """Pair each waiting job, in order, with the running one that it suits best."""
    alone = np.flatnonzero(type_ != NOWHERE)
    pairs: list[tuple[int, int, int]] = []
    for job in np.flatnonzero(type_ == NOWHERE) if problem.pairs is not None else ():
        best = _best_partner(problem, int(job), alone, type_)
        if best is None:
            break
        pairs.append((int(job), best, int(type_[best])))
        alone = alone[alone != best]
    first, second, on = np.array(pairs, np.intp).reshape(-1, 3).T
    return JobPairs(first, second, on, np.ones(len(pairs)))


def _best_partner(problem: Problem, job: int, alone: Index, type_: Index) -> int | None:
    assert problem.pairs is not None
    with_ = alone[problem.size[alone] == problem.size[job]]
    on = type_[with_]
    own = problem.rate[job, on]
    with_, on, own = with_[own > 0], on[own > 0], own[own > 0]
    if not len(with_):
        return None
    mine = problem.pairs.of[problem.kind[job], problem.kind[with_], on] / own
    theirs = problem.pairs.of[problem.kind[with_], problem.kind[job], on]
    gain = mine + theirs / problem.rate[with_, on]
    best = int(np.argmax(gain))
    return int(with_[best]) if gain[best] > WORTH_SHARING else None


def _serve(problem: Problem, order: Index) -> Index:
    """Return the type that each job gets, or NOWHERE."""
    free = problem.gpus.copy()
    by_name = np.argsort(problem.types)
    type_ = np.full(problem.jobs, NOWHERE)
    for job in order:
        fits = free >= problem.size[job]
        if not fits.any():
            break
        rate = np.where(fits, problem.rate[job], 0.0)[by_name]
        if rate.max() > 0:
            type_[job] = by_name[int(np.argmax(rate))]
            free[type_[job]] -= problem.size[job]
    return type_


def _on(problem: Problem, type_: Index) -> Allocation:
    share: Shares = np.zeros(problem.rate.shape)
    running = np.flatnonzero(type_ != NOWHERE)
    share[running, type_[running]] = 1.0
    return Allocation.alone(problem, share, solves=0)


def _busy(problem: Problem, type_: Index) -> Score:
    there = type_ != NOWHERE
    return np.bincount(type_[there], problem.size[there], len(problem.types)).astype(np.float64)
