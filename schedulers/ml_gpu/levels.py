"""Precedence and weights in rounds: who shares GPUs before whom, and in which proportion.

Goal     Let the precedence of jobs, and the weights of jobs and tenants, count for training jobs as
         they count for others.
Promise  Jobs of a lower precedence share what those of higher ones leave. Where all have one
         precedence, a policy is asked once, for all jobs on all GPUs. Arrays in, arrays out.
Source   Gavel (OSDI 2020), sections 4.1 and 4.3, for weights and hierarchies; precedence as in
         Omega (EuroSys 2013), section 3.4; docs/decisions/0061-weights-in-rounds.md.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

import numpy as np

from omega.model.arrays import Counts, Index, Mask, Score
from omega.model.jobs import LeasedJob
from omega.ordering.tenants import ROOT, Tenant, TenantTree
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


def job_weights(jobs: Sequence[LeasedJob], tenants: Sequence[Tenant]) -> Score:
    """Return the weight of each job: its own times that of its tenant, which is 1 if not set."""
    tree = TenantTree(tenants)
    return np.array([_own(job) * tree.weight(job.spec.tenant) for job in jobs], dtype=np.float64)


def own_weights(jobs: Sequence[LeasedJob]) -> Score:
    """Return the weight that each job was submitted with."""
    return np.array([_own(job) for job in jobs], dtype=np.float64)


def tenant_parts(names: Sequence[str], tenants: Sequence[Tenant]) -> Score:
    """Return each tenant's part of the cell, if all of these have work: (tenants,), of sum 1.

    Tenants with one parent divide the parent's part by their weights. Jobs that name a parent
    itself count as one more child, of the weight 1.
    """
    nodes = TenantTree(tenants).nodes(names)
    part = np.zeros(len(nodes.end))
    part[ROOT] = 1.0
    for node, children in enumerate(nodes.children):  # a parent comes before its children
        if len(children):
            weight = nodes.weight[children]
            part[children] = part[node] * weight / weight.sum()
    return np.asarray(part[nodes.leaf])


def digest_of(tenants: Sequence[Tenant]) -> str:
    """Return a text that changes with the weights and parents of tenants."""
    told = sorted((it.name, it.weight, it.parent or "") for it in tenants)
    return sha256(repr(told).encode()).hexdigest()[:16]


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


def _own(job: LeasedJob) -> int:
    return 1 if job.spec.work is None else job.spec.work.weight
