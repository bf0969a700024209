"""The order of the queue in Postgres: lanes, tenants, and the agreement of replicas.

Goal     Pass the calls of a fair order to their functions in Postgres.
Promise  A read of lanes has at most `LIMITS.lanes_max` rows for each kind. A tenant with which the
         tenants would be no tree is refused here, in a sentence that names the field, and by the
         function.
Source   docs/decisions/0058-the-order-of-the-queue.md; functions/lanes.sql.
"""

from uuid import UUID

from omega.model.lanes import Lane, QueueOrder
from omega.model.wire import shape_from_wire
from omega.ordering.tenants import Tenant, TenantTree
from omega.store.holdings import RESOURCES, ResourceAmounts
from omega.store.lanes import AnotherOrder, LaneHead, TenantUse, UnfinishedTasks
from omega.store.postgres.connection import Link
from omega.store.postgres.json_text import decoded


class PostgresLanes:
    """What a fair order reads, and the tenants that the owner sets."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def lanes(self, scheduler: str) -> list[LaneHead]:
        """Return the heads of the lanes of a kind, and of all kinds that have a fair order."""
        rows = self._link.call(
            "SELECT scheduler, tenant, lane_class, id, precedence, demand, tasks"
            " FROM omega.read_lanes(%s)",
            (scheduler,),
        )
        return [
            LaneHead(kind, Lane(tenant, of_class), job, precedence, tuple(demand.tolist()), tasks)
            for kind, tenant, of_class, job, precedence, demand, tasks in rows
        ]

    def tenant_use(self, *, age_ms_max: int) -> TenantUse:
        """Return what each tenant uses: the last sum if it is young enough, or a new one."""
        rows = self._link.call(
            "SELECT age_ms, tenant, used, weight, parent FROM omega.read_tenant_use(%s)",
            (age_ms_max,),
        )
        (age_ms, *_), *of_tenants = rows
        return TenantUse(
            used={
                name: tuple(used.tolist()) for _, name, used, *_ in of_tenants if used is not None
            },
            tenants=[
                Tenant(name, weight, parent)
                for _, name, _, weight, parent in sorted(of_tenants, key=lambda row: str(row[1]))
                if weight is not None
            ],
            age_ms=age_ms,
        )

    def agree_on_order(
        self, scheduler: str, replica: str, order: QueueOrder, *, lease_ms: int
    ) -> AnotherOrder | None:
        """Agree on the order of a kind for `lease_ms`, or return another that is held."""
        ((granted, held_by, held_as),) = self._link.call(
            "SELECT granted, held_by, held_as FROM omega.agree_on_order(%s, %s, %s, %s)",
            (scheduler, replica, order.value, lease_ms),
        )
        return None if granted else AnotherOrder(QueueOrder(held_as), held_by)

    def lease_reclaim(self, scheduler: str, replica: str, *, holder: UUID, lease_ms: int) -> bool:
        """Lease the right to reclaim for tenants; return whether the holder has it."""
        ((granted,),) = self._link.call(
            "SELECT omega.lease_reclaim(%s, %s, %s, %s)", (holder, scheduler, replica, lease_ms)
        )
        return bool(granted)

    def tenants(self) -> list[Tenant]:
        """Return the tenants that were set, by name."""
        rows = self._link.call(
            'SELECT name, weight, parent FROM omega.tenant ORDER BY name COLLATE "C"'
        )
        return [Tenant(*row) for row in rows]

    def queue_orders(self) -> dict[str, QueueOrder]:
        """Return the orders on which replicas have agreed and that have not run out, by kind."""
        rows = self._link.call(
            "SELECT scheduler, name FROM omega.queue_order WHERE expires_at > clock_timestamp()"
            " ORDER BY scheduler"
        )
        return {kind: QueueOrder(name) for kind, name in rows}

    def sum_use(self) -> dict[str, ResourceAmounts]:
        """Return what the running tasks of each tenant use now, of each of RESOURCES."""
        ((names, used),) = self._link.call("SELECT tenants, used FROM omega.sum_tenant_use()")
        rows = used.reshape(-1, len(RESOURCES)).tolist()
        return {name: tuple(row) for name, row in zip(names, rows, strict=True)}

    def unfinished_tasks(self) -> list[UnfinishedTasks]:
        """Return the tasks of all jobs that have not ended, by tenant and shape."""
        rows = self._link.call(
            "SELECT tenant, shape, running, waiting FROM omega.read_unfinished_tasks()"
        )
        return [
            UnfinishedTasks(tenant, shape_from_wire(decoded(shape)), running, waiting)
            for tenant, shape, running, waiting in rows
        ]

    def set_tenant(self, tenant: Tenant) -> None:
        """Set a tenant's weight and parent."""
        others = [each for each in self.tenants() if each.name != tenant.name]
        TenantTree([*others, tenant])  # raises BadInput that names the field
        self._link.call(
            "SELECT omega.set_tenant(%s, %s, %s)", (tenant.name, tenant.weight, tenant.parent)
        )

    def remove_tenant(self, name: str) -> bool:
        """Forget a tenant's weight and parent; return False if none were set."""
        ((removed,),) = self._link.call("SELECT omega.remove_tenant(%s)", (name,))
        return bool(removed)
