"""Fairness: the share of each tenant beside the one that is fair, and why they differ.

Goal     Tell an operator whether the order of the queue does what it is for.
Promise  A share is the dominant share: of the resource of which it is largest, as a fraction of the
         present capacity of the machines that take claims. The fair share is exact for tasks that
         could be divided and moved. It is of the resource of which all of a tenant's tasks, running
         and waiting, need the largest share. A gap within `CLOSE` of the cell counts as none.
Source   Choosy (EuroSys 2013), section 4; DRF (NSDI 2011), section 4;
         docs/decisions/0058-the-order-of-the-queue.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

import numpy as np

from omega.cell.view import View
from omega.lifecycle.states import ParkReason
from omega.model.arrays import Amounts, Counts, Score
from omega.model.lanes import QueueOrder, task_demand
from omega.ordering.cmmf import LaneDemands, fair_shares, pooled
from omega.ordering.fair import by_resource, dominant_shares
from omega.ordering.tenants import TenantNodes, TenantTree
from omega.placement.feasibility import matching
from omega.store.holdings import RESOURCES
from omega.store.lanes import UnfinishedTasks
from omega.store.protocols import ReaderStore
from omega.store.watching import QueueLine

CLOSE: Final = 0.02
"""A gap of at most this fraction of the cell counts as none: tasks cannot be divided."""


class ShareState(Enum):
    """How a tenant's share compares with the fair one, and why; the first that applies."""

    ABOVE = "has more than is fair, which others would get if its tasks ended"
    ALL = "has all that it asks for"
    FAIR = "has what is fair"
    UNORDERED = (
        "has less than is fair: no scheduler of its jobs leases in a fair order (--set order=drf)"
    )
    BELOW = "has less than is fair, until it finds room"


@dataclass(frozen=True)
class TenantShare:
    """What one tenant has, and what is fair; shares are fractions of the cell, not weighted."""

    name: str
    parents: tuple[str, ...]
    """The tenants above it, from the top down."""
    weight: int
    used: tuple[int, ...]
    """What its tasks use of each of RESOURCES."""
    share: float
    fair_share: float
    waiting: int
    """Tasks that have no place; an estimate for jobs with several groups."""
    state: ShareState

    @property
    def gap(self) -> float:
        """By how much it has more than is fair; negative if it has less."""
        return self.share - self.fair_share


@dataclass(frozen=True)
class FairnessReport:
    """All tenants that have tasks, those furthest below their fair share first."""

    tenants: Sequence[TenantShare]
    orders: Mapping[str, QueueOrder]
    """By kind of scheduler; kinds of which no replica has reported lately are left out."""

    @classmethod
    def read(cls, store: ReaderStore) -> "FairnessReport":
        """Read everything once; the parts are read one after the other, and may differ in time."""
        tree, orders = TenantTree(store.tenants()), store.queue_orders()
        asked = store.unfinished_tasks()
        view = View(store.snapshot())
        nodes = tree.nodes(sorted({it.tenant for it in asked}))
        capacity = by_resource(np.where(view.open[:, np.newaxis], view.capacity, 0))
        whole = capacity.sum(axis=0)
        summed = _Sums.of(asked, nodes)
        share = dominant_shares(summed.used, whole)
        fair = _fair_shares(asked, view, capacity, nodes)
        waits_for = _kinds_waited_for(store.queue())
        rows = [
            TenantShare(
                name=name,
                parents=tree.path(name)[:-1],
                weight=tree.weight(name),
                used=tuple(summed.used[at].tolist()),
                share=float(share[at]),
                fair_share=float(fair[at]),
                waiting=int(summed.waiting[at]),
                state=_state_of(
                    float(share[at] - fair[at]),
                    int(summed.waiting[at]),
                    is_ordered=_is_ordered(waits_for.get(name, orders), orders),
                ),
            )
            for at, name in enumerate(nodes.names)
        ]
        rows.sort(key=lambda row: (row.gap, row.name))
        return cls(rows, orders)

    def rows(self) -> list[dict[str, object]]:
        """Return the tenants as JSON types."""
        return [
            {
                "tenant": it.name,
                "parents": list(it.parents),
                "weight": it.weight,
                "used": {of.column: amount for of, amount in zip(RESOURCES, it.used, strict=True)},
                "share": it.share,
                "fair_share": it.fair_share,
                "gap": it.gap,
                "waiting": it.waiting,
                "state": it.state.name.lower(),
            }
            for it in self.tenants
        ]

    def summary(self) -> dict[str, object]:
        """Return the furthest from what is fair, and the orders."""
        gaps = [abs(it.gap) for it in self.tenants]
        return {
            "tenants": len(self.tenants),
            "largest_gap": max(gaps, default=0.0),
            "orders": {kind: order.value for kind, order in self.orders.items()},
        }


@dataclass(frozen=True, eq=False)
class _Sums:
    """What each tenant has and waits for."""

    used: Amounts
    """(tenants, resources)"""
    waiting: Counts
    """(tenants,) tasks."""

    @classmethod
    def of(cls, asked: Sequence[UnfinishedTasks], nodes: TenantNodes) -> "_Sums":
        used = np.zeros((len(nodes.names), len(RESOURCES)), dtype=np.int64)
        waiting = np.zeros(len(nodes.names), dtype=np.int64)
        for each in asked:
            at = nodes.position[each.tenant]
            used[at] += each.running * task_demand(each.shape)
            waiting[at] += each.waiting
        return cls(used, waiting)


def _fair_shares(
    asked: Sequence[UnfinishedTasks], view: View, capacity: Amounts, nodes: TenantNodes
) -> Score:
    """Return the fair share of each tenant: (tenants,)."""
    if not asked:
        return np.zeros(0)
    may_use = np.array([matching(view, each.shape) for each in asked])
    machines, may_use = pooled(capacity, may_use)
    lanes = LaneDemands(
        tenant=np.array([nodes.position[each.tenant] for each in asked], dtype=np.intp),
        demand=np.array([task_demand(each.shape) for each in asked]),
        tasks=np.array([each.running + each.waiting for each in asked], dtype=np.float64),
        may_use=may_use,
    )
    return fair_shares(lanes, machines, nodes).share


def _kinds_waited_for(queue: Sequence[QueueLine]) -> dict[str, set[str]]:
    """Return for which kinds of scheduler jobs of each tenant wait, but for those that are held."""
    kinds: dict[str, set[str]] = {}
    for line in queue:
        if line.unplaced and line.park_reason is not ParkReason.HELD:
            kinds.setdefault(line.tenant, set()).add(line.scheduler)
    return kinds


def _is_ordered(kinds: Iterable[str], orders: Mapping[str, QueueOrder]) -> bool:
    """Return whether any of these kinds leases in a fair order."""
    return any(kind in orders and orders[kind].is_fair for kind in kinds)


def _state_of(gap: float, waiting: int, *, is_ordered: bool) -> ShareState:
    if gap > CLOSE:
        return ShareState.ABOVE
    if not waiting:
        return ShareState.ALL
    if gap >= -CLOSE:
        return ShareState.FAIR
    return ShareState.BELOW if is_ordered else ShareState.UNORDERED
