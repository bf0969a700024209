"""Where a tenant stands in a fair order: its share, and whose jobs come before its own.

Goal     Say in one line why jobs of others go first under a fair order.
Promise  Shares are weighted dominant shares of the machines that take claims, compared level by
         level of the tree of tenants, as schedulers compare them. A tenant is before another if
         jobs of it wait for a kind with a fair order, and its share, or that of a parent of it, is
         smaller than the other's on the level where they part; equal shares go by name. What this
         leaves out are leases of the last moments, and a scheduler's own time.
Source   omega/ordering/fair.py; docs/decisions/0058-the-order-of-the-queue.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from omega.cell.view import View
from omega.lifecycle.states import ParkReason
from omega.model.arrays import Score
from omega.model.lanes import QueueOrder
from omega.ordering.fair import by_resource, dominant_shares
from omega.ordering.tenants import ROOT, TenantNodes, TenantTree
from omega.reports.printable import short
from omega.reports.wording import things
from omega.store.holdings import RESOURCES
from omega.store.protocols import ReaderStore

TOLD: Final = 3
"""Tenants before it that a sentence names; documents have all."""


@dataclass(frozen=True)
class ShareHeld:
    """The share of one tenant."""

    tenant: str
    weight: int
    share: float
    """Of the cell, not weighted."""

    def __str__(self) -> str:
        weighted = f" of weight {self.weight:,}" if self.weight != 1 else ""
        return f"{short(self.tenant)} with {self.share:.1%}{weighted}"


@dataclass(frozen=True)
class FairPosition:
    """The position of a job's tenant in the order of its kind."""

    order: QueueOrder
    own: ShareHeld
    before: Sequence[ShareHeld]
    """The tenants whose jobs go first, in the order of the tree."""
    is_passed_over: bool
    """Whether the job finds no room now, so that jobs behind it are tried."""

    @property
    def named_before(self) -> str:
        """The tenants whose jobs go first, in words; empty if there are none."""
        named = ", ".join(map(str, self.before[:TOLD]))
        more = len(self.before) - TOLD
        return named if more <= 0 else f"{named} and {things(more, 'tenant')} more"

    def __str__(self) -> str:
        ahead = f"before it {self.named_before}" if self.before else "no tenant that waits has less"
        over = "; it finds no room now and is passed over" if self.is_passed_over else ""
        return f"by share ({self.order.value}): {self.own} of the cell; {ahead}{over}"

    def row(self) -> dict[str, object]:
        """Return it as JSON types."""
        return {
            "order": self.order.value,
            **_row(self.own),
            "before": [_row(it) for it in self.before],
            "passed_over": self.is_passed_over,
        }


def read_fair_position(
    store: ReaderStore, view: View, order: QueueOrder, tenant: str, *, has_room: bool
) -> FairPosition:
    """Return the position of a tenant among those whose jobs wait for kinds with a fair order."""
    orders = store.queue_orders()
    waiting = {
        line.tenant
        for line in store.queue()
        if line.scheduler in orders
        and orders[line.scheduler].is_fair
        and line.unplaced
        and line.park_reason is not ParkReason.HELD
    } - {tenant}
    tree, used = TenantTree(store.tenants()), store.sum_use()
    names = sorted(waiting.union(used, {tenant}))
    nodes = tree.nodes(names)
    nothing = (0,) * len(RESOURCES)
    use = np.array([used.get(name, nothing) for name in names], dtype=np.int64)
    capacity = by_resource(view.open_room().capacity.sum(axis=0))
    share = dominant_shares(use, capacity)
    weighted = dominant_shares(nodes.summed(use), capacity) / nodes.weight
    at = nodes.position

    def held_by(name: str) -> ShareHeld:
        return ShareHeld(name, tree.weight(name), float(share[at[name]]))

    before = [
        held_by(name)
        for name in sorted(waiting)
        if _is_before(nodes, weighted, at[name], at[tenant])
    ]
    return FairPosition(order, held_by(tenant), before, is_passed_over=not has_room)


def _is_before(nodes: TenantNodes, weighted: Score, one: int, other: int) -> bool:
    """Return whether jobs of one tenant go before those of another."""
    first, second = (_path(nodes, int(nodes.leaf[at])) for at in (one, other))
    parting = next((a, b) for a, b in zip(first, second, strict=False) if a != b)
    return (float(weighted[parting[0]]), parting[0]) < (float(weighted[parting[1]]), parting[1])


def _path(nodes: TenantNodes, node: int) -> list[int]:
    """Return the nodes from below the root down to one."""
    path: list[int] = []
    while node != ROOT:
        path.append(node)
        node = int(nodes.parent[node])
    return path[::-1]


def _row(held: ShareHeld) -> dict[str, object]:
    return {"tenant": held.tenant, "weight": held.weight, "share": held.share}
