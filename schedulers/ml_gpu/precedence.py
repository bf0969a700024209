"""Precedence in rounds: who shares GPUs before whom.

Goal     Let the precedence of jobs count for training jobs as it counts for others.
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
"""So much of a GPU's time counts as none: it may be left over by rounding alone."""


def share_by_precedence(
    problem: Problem, precedence: Counts, solve: Solve, rng: np.random.Generator
) -> Shares:
    """Return each job's share of time on each type: (jobs, types).

    `precedence` (jobs,) is that of each job. Jobs of the highest share all GPUs by the policy,
    those of the next one what is left, as if there were no other GPUs, and so on.
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


def is_passed_over(precedence: Counts, is_promised: Mask, can_run: Mask) -> bool:
    """Say whether a job came after shares were last promised, above one that was there then.

    Jobs that cannot run do not count. All are (jobs,).
    """
    waits = can_run & ~is_promised
    return bool(
        waits.any()
        and is_promised.any()
        and precedence[waits].max() > precedence[is_promised].min()
    )


def _kept(problem: Problem, jobs: Index, left: Score) -> Index | None:
    """Return where these jobs run, or NOWHERE for those whose GPUs others are to have."""
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
