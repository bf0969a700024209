"""Fair order: the next job is one of the tenant with the smallest weighted dominant share.

Goal     Keep a tenant with ten thousand jobs from holding up everybody else.
Promise  The next job is one of the tenant with the smallest weighted dominant share at that moment.
         It is found from the root of the tree down: on each level, of the children that have a job
         which may go, the one with the smallest share, all below it counted. Equal shares go by
         name. Within a tenant the lane goes whose head has the higher precedence, then the lower
         id. Shares are of capacity, not of what is free, and a resource without capacity counts for
         nothing. They are floats: while capacity times weight is below 2**53, equal shares compare
         equal, and a larger one never as smaller. The same input gives the same order.
Source   DRF: Ghodsi et al., Dominant Resource Fairness (NSDI 2011). Choosy: Ghodsi et al., Max-Min
         Fair Sharing for Datacenter Jobs with Constraints (EuroSys 2013), where only lanes whose
         jobs can use what is free are eligible. In the tree, DRF is applied on each level. That has
         a known weakness: a parent whose children want different resources counts as having the
         largest of its shares, for all of them (Bhattacharya et al., SoCC 2013, section 3).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heapreplace
from operator import add, truediv

import numpy as np

from omega.model.arrays import Amounts, Counts, Ids, Index, Mask, Score
from omega.model.jobs import LeasedJob
from omega.model.lanes import demand_left
from omega.model.resources import DEVICES
from omega.ordering.tenants import ROOT, TenantNodes

Heap = list[tuple[float, int]]
"""Weighted shares and the nodes that have them, as heapq keeps them; the smallest is first."""


@dataclass(frozen=True, eq=False)
class Lanes:
    """Lanes that have pending jobs: the queues of one tenant and one class each.

    All jobs of a lane count as if they asked for what its head asks for. A caller that knows more
    of a lane than its head may give it several rows, one for each run of equal jobs.
    """

    tenant: Index
    """(lanes,) the position of each lane's tenant in `TenantNodes.names`."""
    pending: Counts
    """(lanes,) how many jobs of each lane may go."""
    demand: Amounts
    """(lanes, resources) what the unplaced tasks of the job at the head of each lane need."""
    precedence: Counts
    """(lanes,) that of the job at the head."""
    head: Ids
    """(lanes,) the id of the job at the head."""


@dataclass(frozen=True, eq=False)
class FairOrder:
    """The jobs that go next."""

    lane: Index
    """(jobs,) the lane of each job, in the order in which the jobs go."""
    count: Counts
    """(lanes,) how many of these jobs are of each lane."""


def fair_order(
    lanes: Lanes,
    nodes: TenantNodes,
    use: Amounts,
    capacity: Amounts,
    wanted: int,
    *,
    eligible: Mask | None = None,
) -> FairOrder:
    """Return the next `wanted` jobs, or as many as there are.

    `use` (tenants, resources) is what each of `nodes.names` uses, and `capacity` (resources,) what
    the cell has. Lanes, use and capacity have the same resources. `eligible` (lanes,) says which
    lanes' jobs may go, as in Choosy those that can use what is free; without it, all may.
    """
    assert use.shape == (len(nodes.names), len(capacity))
    may_go = lanes.pending > 0 if eligible is None else eligible & (lanes.pending > 0)
    queues = _Queues(lanes, np.flatnonzero(may_go), nodes.leaf)
    pending = np.bincount(lanes.tenant, lanes.pending * may_go, minlength=len(nodes.names))
    filling = _Filling(
        nodes=nodes,
        pending=nodes.summed(pending.astype(np.int64)),
        used=nodes.summed(use),
        whole=_or_infinite(capacity) * nodes.weight[:, np.newaxis],
        wanted=wanted,
    )
    order: list[int] = []
    for _ in range(filling.jobs):
        path = filling.poorest()
        order.append(queues.pop(path[-1]))
        filling.charge(path, lanes.demand[order[-1]].tolist())
    return FairOrder(
        np.array(order, dtype=np.intp), np.bincount(order, minlength=len(lanes.pending))
    )


def fair_jobs(
    jobs: Sequence[LeasedJob], nodes: TenantNodes, use: Amounts, capacity: Amounts
) -> list[LeasedJob]:
    """Return leased jobs in fair order, to be placed in it.

    `use` and `capacity` are as for `fair_order`, with the columns of `by_resource`.
    """
    lanes = Lanes(
        tenant=np.array([nodes.position[job.spec.tenant] for job in jobs], dtype=np.intp),
        pending=np.ones(len(jobs), dtype=np.int64),
        demand=np.array([demand_left(job) for job in jobs], dtype=np.int64).reshape(
            -1, len(capacity)
        ),
        precedence=np.array([job.spec.precedence for job in jobs], dtype=np.int64),
        head=np.array([job.id for job in jobs], dtype=np.int64),
    )
    return [jobs[at] for at in fair_order(lanes, nodes, use, capacity, len(jobs)).lane]


def dominant_shares(use: Amounts, capacity: Amounts) -> Score:
    """Return the largest share that each row has of any resource: (rows, resources) to (rows,).

    `capacity` is (resources,), or (rows, resources) if it differs by row, as with weights.
    """
    return np.asarray((use / _or_infinite(capacity)).max(axis=1, initial=0.0))


def by_resource(rows: Amounts) -> Amounts:
    """Return amounts by resource, all GPUs being one: (..., kinds) to (..., resources).

    The resources are those of `task_demand`.
    """
    devices = rows[..., DEVICES].sum(axis=-1, keepdims=True)
    return np.concatenate((rows[..., : DEVICES.start], devices), axis=-1)


def _or_infinite(capacity: Amounts) -> Score:
    """Return the capacity, infinite where there is none: use of what the cell lacks is no share."""
    return np.where(capacity > 0, capacity, np.inf)


class _Queues:
    """For each node that has jobs, its lanes in the order in which they are served."""

    def __init__(self, lanes: Lanes, open_lanes: Index, leaf: Index) -> None:
        node = leaf[lanes.tenant[open_lanes]]
        order = np.argsort(node, kind="stable")
        self._lanes, self._lane, self._node = lanes, open_lanes[order], node[order]
        self._queues: dict[int, list[list[int]]] = {}

    def pop(self, node: int) -> int:
        """Take a job from the first lane of a node that has one left; return the lane."""
        if node not in self._queues:
            self._queues[node] = self._queue(node)
        queue = self._queues[node]
        first = queue[-1]
        first[1] -= 1
        if not first[1]:
            queue.pop()
        return first[0]

    def _queue(self, node: int) -> list[list[int]]:
        """Return the lanes of a node and how many jobs each has; the first to go is the last."""
        lanes = self._lanes
        lower, upper = np.searchsorted(self._node, (node, node + 1))
        mine = self._lane[lower:upper]
        mine = mine[np.lexsort((-lanes.head[mine], lanes.precedence[mine]))]
        return [
            list(each) for each in zip(mine.tolist(), lanes.pending[mine].tolist(), strict=True)
        ]


@dataclass(eq=False)
class _Filling:
    """Progressive filling: what each node has while jobs go, one after another.

    The shares of all nodes are computed once, as arrays. After that only the nodes above a job
    change. These are the first of their heaps, and are kept as lists of Python numbers, since numpy
    takes longer for a few numbers.
    """

    nodes: TenantNodes
    pending: Counts
    """(nodes,)"""
    used: Amounts
    """(nodes, resources)"""
    whole: Score
    """(nodes, resources) the capacity times the node's weight; infinite where there is none."""
    wanted: int

    def __post_init__(self) -> None:
        self.jobs = min(self.wanted, int(self.pending[ROOT]))
        """How many jobs the order will have."""
        self._share = (self.used / self.whole).max(axis=1, initial=0.0)
        self._heaps: dict[int, Heap] = {}
        self._rows: dict[int, tuple[list[int], list[float]]] = {}
        self._left: dict[int, int] = {}

    def poorest(self) -> list[int]:
        """Return the nodes from below the root down to the one whose job goes next.

        On each level that is the node with the smallest weighted dominant share.
        """
        path: list[int] = []
        node = ROOT
        while len(self.nodes.children[node]):
            if node not in self._heaps:
                self._heaps[node] = self._heap(self.nodes.children[node])
            node = self._heaps[node][0][1]
            path.append(node)
        return path

    def charge(self, path: Sequence[int], demand: Sequence[int]) -> None:
        """Count a job for the nodes of its path."""
        for parent, node in zip((ROOT, *path), path, strict=False):
            if node not in self._rows:
                self._rows[node] = (self.used[node].tolist(), self.whole[node].tolist())
                self._left[node] = int(self.pending[node])
            used, whole = self._rows[node]
            used[:] = map(add, used, demand)
            self._left[node] -= 1
            if self._left[node]:
                share = max(map(truediv, used, whole), default=0.0)
                heapreplace(self._heaps[parent], (share, node))
            else:
                heappop(self._heaps[parent])

    def _heap(self, children: Index) -> Heap:
        """Return a heap of the children that have jobs: at most `wanted`, those of smallest shares.

        No other child can be reached: shares only grow, and each job raises one child of the heap.
        """
        waiting = children[self.pending[children] > 0]
        share = self._share[waiting]
        order = np.argsort(share, kind="stable")[: self.wanted]
        return list(zip(share[order].tolist(), waiting[order].tolist(), strict=True))
