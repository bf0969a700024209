"""Policies about the sum of all work: throughput, and throughput for its cost.

Goal     Get the most out of a cluster, or out of a budget, while deadlines hold.
Promise  The sum is the greatest possible. Deadlines that cannot all be met are held earliest first,
         as far as they can be held together; one that the job would miss with all GPUs to itself
         is not.
Source   Gavel (OSDI 2020), section 4.2; the original drops all deadlines when one cannot be met.
"""

import numpy as np

from omega.errors import InvariantBroken
from omega.model.arrays import Score
from schedulers.ml_gpu.policies.needs import meet
from schedulers.ml_gpu.problem import Allocation, Problem
from schedulers.ml_gpu.throughputs import Rates


def total(problem: Problem) -> Allocation:
    """Maximise the sum of all rates; steps of unlike models count alike, as in the original."""
    return _most(problem, np.ones(problem.rate.shape))


def total_per_cost(problem: Problem) -> Allocation:
    """Maximise the sum of all rates, each divided by what an hour of its type costs."""
    assert problem.cost_per_hour is not None, "asked for what it costs without prices"
    return _most(problem, np.tile(1 / problem.cost_per_hour, (problem.jobs, 1)))


def _most(problem: Problem, value: Rates) -> Allocation:
    needs = _held(problem)
    found = meet(problem, needs, value)
    if found is not None:
        return found
    wanted = np.flatnonzero(needs)
    assert problem.due_s is not None
    wanted = wanted[np.argsort(problem.due_s[wanted], kind="stable")]
    held, solves, best = 0, 1, None
    step = 1 << len(wanted).bit_length()
    while step := step // 2:
        if held + step > len(wanted):
            continue
        some = np.zeros(problem.jobs)
        some[wanted[: held + step]] = needs[wanted[: held + step]]
        found = meet(problem, some, value, solves=solves)
        solves += 1
        if found is not None:
            held, best = held + step, found
    best = best or meet(problem, np.zeros(problem.jobs), value, solves=solves)
    if best is None:
        raise InvariantBroken("a policy that asks for no rate was told that there is none")
    return best


def _held(problem: Problem) -> Score:
    """Return the rate that each job's deadline asks for, 0 where nothing could meet it."""
    if problem.due_s is None:
        return np.zeros(problem.jobs)
    never = np.where(problem.remaining_steps > 0, np.inf, 0.0)
    needs = np.divide(problem.remaining_steps, problem.due_s, out=never, where=problem.due_s > 0)
    return np.where(needs <= _by_itself(problem), needs, 0.0)


def _by_itself(problem: Problem) -> Score:
    """Return the steps/s of each job if nobody else were there: its fastest types by turns.

    On a type with fewer GPUs than its gang a job can only have part of its time.
    """
    fastest = np.argsort(-problem.rate, axis=1, kind="stable")
    part = problem.gpus[fastest] / problem.size[:, np.newaxis]
    time = np.diff(np.minimum(part.cumsum(axis=1), 1.0), axis=1, prepend=0.0)
    return np.asarray((time * np.take_along_axis(problem.rate, fastest, axis=1)).sum(axis=1))
