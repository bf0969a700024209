"""Weights in rounds: in which proportion jobs and tenants share.

Goal     Let the weights of jobs and of tenants count for training jobs as they count for others.
Promise  The weight of a job is its own times that of its tenant. The parts of tenants sum up to 1.
Source   Gavel (OSDI 2020), sections 4.1 and 4.3; docs/decisions/0061-weights-in-rounds.md.
"""

from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from omega.model.arrays import Score
from omega.model.jobs import LeasedJob
from omega.ordering.tenants import ROOT, Tenant, TenantTree


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


def _own(job: LeasedJob) -> int:
    return 1 if job.spec.work is None else job.spec.work.weight
