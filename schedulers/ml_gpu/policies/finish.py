"""Policies about when jobs end: finish-time fairness and the makespan.

Goal     Let nobody end much later than on an equal part of the cluster; or let all end soonest.
Promise  The greatest rho, or the last end, is the smallest possible to 1e-6; then no GPU idles that
         could do more.
Source   Gavel (OSDI 2020), sections 4.2 (Themis' rho) and 4.4; the method: policies/needs.py.
"""

from dataclasses import replace

import numpy as np

from omega.model.arrays import Score
from schedulers.ml_gpu.policies.needs import Need, highest
from schedulers.ml_gpu.problem import Allocation, Problem


def finish_time_fairness(problem: Problem) -> Allocation:
    """Minimise max_i rho_i, rho_i = (t_i + rem_i / thr_i) / (time on a fair share of its own).

    Weights do not enter: a job's fair share is an equal part.
    """
    alone_s = problem.remaining_steps / _fastest(problem)
    bound = -((problem.age_s + alone_s) / problem.fair_s).max()

    def need(level: float) -> tuple[Score, Score]:
        # No less than alone at any level up to the bound; old jobs' ages may round it away.
        left_s = np.maximum(-level * problem.fair_s - problem.age_s, alone_s)
        left_s[alone_s == 0] = np.inf  # nothing left to do, whenever it is to be done
        needs = problem.remaining_steps / left_s
        return needs, needs * (problem.fair_s / left_s)

    return _best(problem, need, float(bound))


def makespan(problem: Problem) -> Allocation:
    """Minimise max_i rem_i / thr_i."""
    alone_s = (problem.remaining_steps / _fastest(problem)).max()
    needs = problem.remaining_steps / max(float(alone_s), 1e-300)

    def need(level: float) -> tuple[Score, Score]:
        return needs * level, needs

    return _best(problem, need, 1.0)


def _best(problem: Problem, need: Need, bound: float) -> Allocation:
    """Find the highest level; without sharing GPUs first, for that may reach the bound already."""
    alone = highest(replace(problem, pairs=None), need, bound)
    if problem.pairs is None or alone.level >= bound - 1e-9 * abs(bound):
        return alone.allocation
    return highest(problem, need, bound).allocation


def _fastest(problem: Problem) -> Score:
    """Return the highest rate of each job on any type, with or without somebody beside it."""
    fastest = problem.table.max(axis=1)
    if problem.pairs is not None:
        present = np.unique(problem.kind)
        beside = problem.pairs.of[:, present].max(axis=(1, 2))
        fastest = np.maximum(fastest, beside)
    return np.asarray(fastest[problem.kind])
