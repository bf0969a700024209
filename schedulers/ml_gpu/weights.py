"""Weights in rounds: in which proportion jobs and tenants share.

Goal     Give GPU time in proportion to the weights of jobs and tenants.
Promise  Policies without entities get the weight of a job times that of its tenant. Policies with
         entities get the fractions of tenants, which sum up to 1, and the weights of jobs alone.
Source   Gavel (OSDI 2020), sections 4.1 and 4.3; docs/decisions/0061-weights-in-rounds.md.
"""

from collections.abc import Sequence
from hashlib import sha256

import numpy as np

from omega.model.arrays import Score
from omega.model.jobs import LeasedJob
from omega.ordering.tenants import ROOT, Tenant, TenantTree


def job_weights(jobs: Sequence[LeasedJob], tenants: Sequence[Tenant]) -> Score:
    """Return the weight of each job, times that of its tenant; each of the two is 1 if not set.

    Weights of a tenant's parents do not count.
    """
    tree = TenantTree(tenants)
    return np.array([_own(job) * tree.weight(job.spec.tenant) for job in jobs], dtype=np.float64)


def own_weights(jobs: Sequence[LeasedJob]) -> Score:
    """Return the weight that each job was submitted with."""
    return np.array([_own(job) for job in jobs], dtype=np.float64)


def tenant_fractions(names: Sequence[str], tenants: Sequence[Tenant]) -> Score:
    """Return the fraction that is due to each tenant of `names` if these have jobs: (names,).

    The sum is 1. Tenants with one parent divide the parent's fraction by their weights. Jobs that
    name a parent itself count as one more child, of the weight 1.
    """
    nodes = TenantTree(tenants).nodes(names)
    fraction = np.zeros(len(nodes.end))
    fraction[ROOT] = 1.0
    for node, children in enumerate(nodes.children):  # a parent comes before its children
        if len(children):
            weight = nodes.weight[children]
            fraction[children] = fraction[node] * weight / weight.sum()
    return np.asarray(fraction[nodes.leaf])


def digest_of(tenants: Sequence[Tenant]) -> str:
    """Return a text that changes with the weights and parents of tenants."""
    told = sorted((it.name, it.weight, it.parent or "") for it in tenants)
    return sha256(repr(told).encode()).hexdigest()[:16]


def _own(job: LeasedJob) -> int:
    return 1 if job.spec.work is None else job.spec.work.weight
