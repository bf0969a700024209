"""Reclaiming: which running tasks may be evicted for a tenant below its fair share.

Goal     Bring a tenant up to its share where tasks run for long, and take from no tenant what its
         own share gives it.
Promise  Two tenants are compared where their paths in the tree of tenants part. When the job's
         tasks are placed and all that may be evicted is, its tenant has there no larger a weighted
         dominant share than the other. So the other cannot reclaim in turn, and nobody is evicted
         for a difference that evictions cannot make smaller. Only tasks that yield to the job's
         precedence are named, never those of its own tenant. A gang may go as a whole or not at
         all; its size is estimated by its largest task that was read. No I/O; arrays in, arrays
         out.
Source   Fair sharing with preemption as in Kueue, which compares shares after the evictions, and in
         YARN; dominant shares: DRF (NSDI 2011); docs/decisions/0063-reclaim.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from omega.model.arrays import Amounts, Ids, Index, Mask, Score, integers
from omega.model.jobs import LeasedJob
from omega.model.lanes import demand_left
from omega.model.occupants import Occupants
from omega.ordering.fair import by_resource, dominant_shares
from omega.ordering.tenants import ROOT, TenantNodes


@dataclass(frozen=True, eq=False)
class Shares:
    """What tenants use of a cell."""

    nodes: TenantNodes
    use: Amounts
    """(tenants, resources) by the positions of `nodes.names`."""
    capacity: Amounts
    """(resources,) of the machines that take claims."""

    @cached_property
    def used(self) -> Amounts:
        """What is used below each node: (nodes, resources)."""
        return self.nodes.summed(self.use)

    @cached_property
    def whole(self) -> Amounts:
        """The capacity times each node's weight: (nodes, resources)."""
        return self.capacity * self.nodes.weight[:, np.newaxis]

    def path(self, tenant: str) -> list[int]:
        """Return the nodes from below the root down to a tenant's jobs."""
        path = [int(self.nodes.leaf[self.nodes.position[tenant]])]
        while (above := int(self.nodes.parent[path[-1]])) != ROOT:
            path.append(above)
        return path[::-1]


def is_below(shares: Shares, job: LeasedJob) -> bool:
    """Return whether the job's tenant would still have a smaller share than another one.

    On some level of the tree, with one more task, or with as many as its gang lacks.
    """
    mine = shares.path(job.spec.tenant)
    task = demand_left(job) // len(job.unplaced)
    least = task * max(1, job.lacking)
    for parent, node in zip((ROOT, *mine), mine, strict=False):
        others = shares.nodes.children[parent]
        others = others[others != node]
        share = dominant_shares(shares.used[[node]] + least, shares.whole[[node]])
        if (dominant_shares(shares.used[others], shares.whole[others]) > share).any():
            return True
    return False


def reclaimable(
    shares: Shares, job: LeasedJob, occupants: Occupants, free: Amounts
) -> tuple[int, Mask]:
    """Return how many unplaced tasks of a job may be placed by evictions, and which tasks may go.

    `free` (resources,) is what is free on the machines of the occupants. The result's mask is
    (tasks,) of the occupants. The number is the largest for which what may go, together with what
    is free, suffices; (0, none) if not even as many as the job's gang lacks.
    """
    victims = _Victims(shares, job, occupants)
    task = demand_left(job) // len(job.unplaced)
    fewest, tasks = 0, len(job.unplaced)
    while fewest < tasks:
        middle = (fewest + tasks + 1) // 2
        supply = free + victims.amounts[victims.may_go(task * middle)].sum(axis=0)
        if (supply >= task * middle).all():
            fewest = middle
        else:
            tasks = middle - 1
    may_go = np.zeros(len(occupants), dtype=np.bool_)
    if tasks < max(1, job.lacking):
        return 0, may_go
    may_go[victims.at[victims.may_go(task * tasks)]] = True
    return tasks, may_go


class _Victims:
    """Tasks that yield to a job, in the order in which they would be evicted."""

    def __init__(self, shares: Shares, job: LeasedJob, occupants: Occupants) -> None:
        of = np.searchsorted(occupants.about, occupants.job)
        mine, other = _partings(shares, job.spec.tenant, occupants.tenant)
        yields = (occupants.yields_to <= job.spec.precedence) & (occupants.about != job.id)
        at = np.flatnonzero((yields & (other != ROOT))[of])
        of = of[at]
        is_gang = occupants.minimum[of] > 0
        keys = (
            -occupants.task[at],
            -occupants.job[at],
            -occupants.started_ms[at],
            occupants.precedence[of],
            np.where(is_gang, occupants.running[of], 0),
            other[of],
        )
        order = np.lexsort(keys)
        self.at: Index = at[order]
        """Their positions in the occupants; single tasks come before gangs, small gangs first."""
        self.amounts = by_resource(occupants.amounts[self.at])
        """(tasks, resources)"""
        of, is_gang = of[order], is_gang[order]
        self._shares = shares
        self._mine: Index = mine[of]
        """(tasks,) the node that the share of its node below the same parent is compared with."""
        self._left = _left(shares, other[of], _lost(occupants, of, is_gang, self.amounts))

    def may_go(self, demand: Amounts) -> Mask:
        """Return which may go if the job's tenant is given this much: (tasks,)."""
        used, whole = self._shares.used[self._mine], self._shares.whole[self._mine]
        return np.asarray(self._left >= dominant_shares(used + demand, whole))


def _lost(occupants: Occupants, of: Index, is_gang: Mask, amounts: Amounts) -> Amounts:
    """Return what goes with each task: (tasks, resources); all of a gang goes with its first."""
    lost = amounts.copy()
    lost[is_gang] = 0
    for number in np.unique(of[is_gang]).tolist():
        its = np.flatnonzero(of == number)
        lost[its[0]] = amounts[its].max(axis=0) * int(occupants.running[number])
    return lost


def _left(shares: Shares, node: Index, lost: Amounts) -> Score:
    """Return the share that each task's node has left when it and those before it are gone.

    `node` (tasks,) ascends.
    """
    gone = lost.cumsum(axis=0)
    first = np.searchsorted(node, node)
    before = np.where((first > 0)[:, np.newaxis], gone[first - 1], 0)
    return dominant_shares(shares.used[node] - (gone - before), shares.whole[node])


def _partings(shares: Shares, mine: str, tenants: Sequence[str]) -> tuple[Index, Index]:
    """Return where the paths of a tenant and others part: the nodes of both, by other tenant.

    They are ROOT for the tenant itself and for tenants that nothing is known of.
    """
    path = shares.path(mine)
    known: dict[str, tuple[int, int]] = {mine: (ROOT, ROOT)}
    for tenant in set(tenants) - {mine}:
        known[tenant] = (ROOT, ROOT)
        if tenant in shares.nodes.position:
            pairs = zip(path, shares.path(tenant), strict=False)
            known[tenant] = next((a, b) for a, b in pairs if a != b)
    nodes: Ids = integers([known[tenant] for tenant in tenants]).reshape(-1, 2)
    return nodes[:, 0].astype(np.intp), nodes[:, 1].astype(np.intp)
