"""The policies as a researcher would write them: in a modelling layer, over all jobs.

This is another way to the same optimum: cvxpy and its default solver.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import cvxpy
import numpy as np
from scipy import sparse

from schedulers.ml_gpu.problem import Problem

Model = Callable[[Problem], float]


def _shares(problem: Problem) -> tuple[Any, Any, list[Any]]:
    """Return the shares, the throughputs, and the constraints of all policies."""
    share = cvxpy.Variable(problem.rate.shape, nonneg=True)
    throughput = cvxpy.sum(cvxpy.multiply(problem.rate, share), axis=1)
    keeps = [cvxpy.sum(share, axis=1) <= 1, problem.size @ share <= problem.gpus]
    return share, throughput, keeps


def _solved(objective: Any, keeps: list[Any]) -> float:  # noqa: ANN401 - cvxpy ships no types
    model = cvxpy.Problem(objective, keeps)
    model.solve()
    if model.status != cvxpy.OPTIMAL:
        raise ArithmeticError(f"the modelling layer says {model.status}")
    return float(model.value)


def max_min(problem: Problem) -> float:
    """Return the largest possible least share."""
    _, throughput, keeps = _shares(problem)
    scale = problem.size / problem.weight / problem.proportional
    return _solved(cvxpy.Maximize(cvxpy.min(cvxpy.multiply(scale, throughput))), keeps)


def total(problem: Problem) -> float:
    """Return the largest possible sum of rates."""
    _, throughput, keeps = _shares(problem)
    return _solved(cvxpy.Maximize(cvxpy.sum(throughput)), keeps)


def makespan(problem: Problem) -> float:
    """Return the least makespan: the inverse of the highest rate of all remaining work together."""
    _, throughput, keeps = _shares(problem)
    scale = problem.remaining_steps / problem.proportional
    unit = float(scale.max())
    together = cvxpy.min(cvxpy.multiply(unit / problem.remaining_steps, throughput))
    return unit / _solved(cvxpy.Maximize(together), keeps)


def finish_time(problem: Problem) -> float:
    """Return the least maximal ratio of finish time to that on a fair share: a cone program."""
    _, throughput, keeps = _shares(problem)
    left_s = problem.remaining_steps / problem.proportional
    norm = cvxpy.multiply(1 / problem.proportional, throughput)
    late = (problem.age_s + cvxpy.multiply(left_s, cvxpy.inv_pos(norm))) / problem.fair_s
    return _solved(cvxpy.Minimize(cvxpy.max(late)), keeps)


def max_min_packed(problem: Problem) -> float:
    """Return the same as `max_min` if two jobs may share a GPU: a variable for each pair."""
    assert problem.pairs is not None
    jobs, types = problem.jobs, len(problem.types)
    first, second = np.triu_indices(jobs, 1)
    fits = problem.size[first] == problem.size[second]
    first, second = first[fits], second[fits]
    pair = np.arange(len(first)) + jobs
    rows = np.concatenate([np.arange(jobs), first, second])
    columns = np.concatenate([np.arange(jobs), pair, pair])
    member = sparse.csr_matrix((np.ones(len(rows)), (rows, columns)))
    share = cvxpy.Variable((jobs + len(first), types), nonneg=True)
    scale = problem.size / problem.weight / problem.proportional
    rates: Any = 0
    for type_ in range(types):
        beside = problem.pairs.of[problem.kind[first], problem.kind[second], type_]
        theirs = problem.pairs.of[problem.kind[second], problem.kind[first], type_]
        rate = np.concatenate([problem.rate[:, type_], beside, theirs])
        rates = rates + sparse.csr_matrix((rate, (rows, columns))) @ share[:, type_]
    gpus = np.concatenate([problem.size, problem.size[first]])
    keeps = [member @ cvxpy.sum(share, axis=1) <= 1, gpus @ share <= problem.gpus]
    return _solved(cvxpy.Maximize(cvxpy.min(cvxpy.multiply(scale, rates))), keeps)


MODELS: Final[Mapping[str, Model]] = {
    "max_min_fairness_perf": max_min,
    "max_min_fairness_packed": max_min_packed,
    "finish_time_fairness_perf": finish_time,
    "min_total_duration_perf": makespan,
    "max_sum_throughput_perf": total,
}
"""Functions that return the objective, by the names of the policies."""
