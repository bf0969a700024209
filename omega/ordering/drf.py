"""Dominant resource fairness: the tenant with the lowest dominant share goes next.

Goal     Prevent one tenant with many jobs from taking all the room.
Promise  The next job is one of the tenant whose dominant share is lowest at that moment; within a
         tenant the order stays. Ties are broken by the tenant's number, so the same input gives the
         same order. Shares are of capacity, not of what is free.
Source   Ghodsi et al., Dominant Resource Fairness (NSDI 2011).
"""

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heapreplace

import numpy as np

from omega.model.arrays import Amounts, Index
from omega.model.jobs import LeasedJob
from omega.model.resources import DEVICES, Kind


def dominant_share(usage: Amounts, capacity: Amounts) -> float:
    """Return the largest of a tenant's shares of the capacity, over all resources.

    `usage` and `capacity` are (resources,); resources without capacity are left out.
    """
    has = capacity > 0
    return float((usage[has] / capacity[has]).max(initial=0.0))


def by_dominant_share(tenant: Index, demand: Amounts, usage: Amounts, capacity: Amounts) -> Index:
    """Return the order in which jobs are served, as positions: (jobs,).

    `tenant` (jobs,) is the number of each job's tenant, `demand` (jobs, resources) what each job
    asks for, `usage` (tenants, resources) what each tenant uses at first, and `capacity`
    (resources,) that of the cell. The resources may be any, the same in all three.
    """
    queues = {int(who): np.flatnonzero(tenant == who)[::-1].tolist() for who in np.unique(tenant)}
    used = {who: usage[who].copy() for who in queues}
    shares = [(dominant_share(used[who], capacity), who) for who in queues]
    heapify(shares)
    order = []
    while shares:
        who = shares[0][1]
        job = queues[who].pop()
        order.append(job)
        used[who] += demand[job]
        if queues[who]:
            heapreplace(shares, (dominant_share(used[who], capacity), who))
        else:
            heappop(shares)
    return np.array(order, dtype=np.intp)


def drf(
    jobs: Sequence[LeasedJob], *, usage: Mapping[str, Amounts], capacity: Amounts
) -> list[LeasedJob]:
    """Return the jobs in the order of dominant resource fairness over their tenants.

    `usage` is what each tenant has now, as one row of amounts (a tenant not named has nothing);
    `capacity` is the sum over the cell's machines, as one row of amounts.
    """
    tenants = sorted({job.spec.tenant for job in jobs})
    number = {tenant: at for at, tenant in enumerate(tenants)}
    nothing = np.zeros_like(capacity)
    order = by_dominant_share(
        np.array([number[job.spec.tenant] for job in jobs], dtype=np.intp),
        np.array([_demand(job) for job in jobs], dtype=np.int64),
        np.array([one_gpu_kind(usage.get(tenant, nothing)) for tenant in tenants]),
        one_gpu_kind(capacity),
    )
    return [jobs[at] for at in order]


def one_gpu_kind(row: Amounts) -> Amounts:
    """Return a row of amounts with the device slots added up into one GPU column."""
    return np.append(row[: Kind.GPU_0], row[DEVICES].sum())


def _demand(job: LeasedJob) -> Amounts:
    total = np.zeros(Kind.GPU_0 + 1, dtype=np.int64)
    for number, group in enumerate(job.spec.groups):
        a_task = np.append(group.demand[: Kind.GPU_0], group.gpus * group.gpu_slices)
        total += len(job.unplaced_in(number)) * a_task
    return total
