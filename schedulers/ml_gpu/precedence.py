"""Precedence in rounds: who shares GPUs before whom.

Goal     Give GPUs to training jobs in the order of their precedence. The cell's `precedence_gap`,
         which evictions between kinds of schedulers keep, does not count here.
Promise  Jobs of a lower precedence share what those of higher ones leave. Where all have one
         precedence, a policy is asked once, for all jobs on all GPUs. Arrays in, arrays out.
Source   Omega (EuroSys 2013), section 3.4; docs/decisions/0061-weights-in-rounds.md.
"""

from typing import Final

import numpy as np

from omega.model.arrays import Counts, Index, Mask, Score
from schedulers.ml_gpu.policies.named import Solve
from schedulers.ml_gpu.problem import NOWHERE, Problem, Shares

NEARLY_NOTHING: Final = 1e-6
"""A share of a GPU's time below this counts as zero: rounding alone may leave as much."""


def share_by_precedence(
    problem: Problem, precedence: Counts, solve: Solve, rng: np.random.Generator
) -> Shares:
    """Return each job's share of time on each type: (jobs, types).

    `precedence` (jobs,) is that of each job. Jobs of the highest precedence share all GPUs by the
    policy, those of the next one what is left, as if there were no other GPUs, and so on.
    """
    from_the_highest = np.unique(precedence)[::-1]
    if len(from_the_highest) <= 1:
        return solve(problem, rng).share
    share, left = np.zeros(problem.rate.shape), problem.gpus.astype(np.float64)
    for value in from_the_highest.tolist():
        can_run = (problem.rate[:, left > 0] > 0).any(axis=1)
        jobs = np.flatnonzero((precedence == value) & can_run)
        if not len(jobs):
            continue
        asked = problem.only(jobs, left, runs_on=_kept(problem, jobs, left))
        share[jobs] = solve(asked, rng).share
        left -= problem.size[jobs] @ share[jobs]
        left[left < NEARLY_NOTHING] = 0.0
    return share


def outranks_promised(precedence: Counts, is_promised: Mask, can_run: Mask) -> bool:
    """Return whether a newcomer has a higher precedence than a job that is promised a share.

    Shares that a policy has computed are *promised*: they hold for some rounds. A job that has come
    since waits for the next promise, unless this is true. All jobs that were there count, even with
    a share of 0; a newcomer that cannot run now does not. `precedence`, `is_promised` (whether it
    was there) and `can_run` are (jobs,).
    """
    waits = can_run & ~is_promised
    return bool(
        waits.any()
        and is_promised.any()
        and precedence[waits].max() > precedence[is_promised].min()
    )


def _kept(problem: Problem, jobs: Index, left: Score) -> Index | None:
    """Return the type on which each of these jobs may stay; NOWHERE if it has too few GPUs left.

    Jobs of a higher precedence have theirs first, then these jobs in order. None if the problem
    does not say where jobs run.
    """
    if problem.runs_on is None:
        return None
    runs_on, free = problem.runs_on[jobs].copy(), left.copy()
    for job, type_ in enumerate(runs_on.tolist()):
        if type_ == NOWHERE:
            continue
        if free[type_] + NEARLY_NOTHING < problem.size[jobs[job]]:
            runs_on[job] = NOWHERE
        else:
            free[type_] -= problem.size[jobs[job]]
    return runs_on
