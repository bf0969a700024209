"""Passes leases, the calls of a fair order and those for tenants on to another store.

Goal     Let wrappers of a store change one operation and keep the others.
Promise  Each call is passed on unchanged.
Source   docs/decisions/0058-the-order-of-the-queue.md.
"""

from collections.abc import Mapping
from uuid import UUID

from omega.model.jobs import LeasedJob
from omega.model.lanes import Lane, QueueOrder
from omega.ordering.tenants import Tenant
from omega.store.holdings import ResourceAmounts
from omega.store.lanes import AnotherOrder, LaneHead, TenantUse, UnfinishedTasks
from omega.store.protocols import Store


class LanesPassThrough:
    """The part of `PassThrough` for lanes and tenants."""

    _store: Store

    def lanes(self, scheduler: str) -> list[LaneHead]:
        """Pass on."""
        return self._store.lanes(scheduler)

    def tenant_use(self, *, age_ms_max: int) -> TenantUse:
        """Pass on."""
        return self._store.tenant_use(age_ms_max=age_ms_max)

    def agree_on_order(
        self, scheduler: str, replica: str, order: QueueOrder, *, lease_ms: int
    ) -> AnotherOrder | None:
        """Pass on."""
        return self._store.agree_on_order(scheduler, replica, order, lease_ms=lease_ms)

    def lease_reclaim(self, scheduler: str, replica: str, *, holder: UUID, lease_ms: int) -> bool:
        """Pass on."""
        return self._store.lease_reclaim(scheduler, replica, holder=holder, lease_ms=lease_ms)

    def tenants(self) -> list[Tenant]:
        """Pass on."""
        return self._store.tenants()

    def queue_orders(self) -> dict[str, QueueOrder]:
        """Pass on."""
        return self._store.queue_orders()

    def sum_use(self) -> dict[str, ResourceAmounts]:
        """Pass on."""
        return self._store.sum_use()

    def unfinished_tasks(self) -> list[UnfinishedTasks]:
        """Pass on."""
        return self._store.unfinished_tasks()

    def set_tenant(self, tenant: Tenant) -> None:
        """Pass on."""
        self._store.set_tenant(tenant)

    def remove_tenant(self, name: str) -> bool:
        """Pass on."""
        return self._store.remove_tenant(name)

    def lease(
        self,
        scheduler: str,
        *,
        holder: str,
        jobs_max: int,
        lease_ms: int,
        lanes: Mapping[Lane, int] | None = None,
        by_key: bool = False,
    ) -> list[LeasedJob]:
        """Pass on."""
        return self._store.lease(
            scheduler,
            holder=holder,
            jobs_max=jobs_max,
            lease_ms=lease_ms,
            lanes=lanes,
            by_key=by_key,
        )
