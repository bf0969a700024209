"""The operations of a store for schedulers that lease in a fair order of the whole queue.

Goal     Let a scheduler decide from which lanes it leases, without reading the queue.
Promise  In Postgres a read of the lanes costs one search of an index per lane, however long the
         queue is; of a lane whose first jobs are delayed, it reads past these. What tenants use is
         a sum over the allocations, which schedulers share; commits write nothing for it.
Source   docs/decisions/0058-the-order-of-the-queue.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from omega.model.jobs import TaskGroup
from omega.model.lanes import Lane, QueueOrder
from omega.ordering.tenants import Tenant
from omega.store.holdings import ResourceAmounts


@dataclass(frozen=True)
class LaneHead:
    """The job that is first in a lane, of those that may be leased now."""

    scheduler: str
    lane: Lane
    job: int
    precedence: int
    demand: ResourceAmounts
    """What its unplaced tasks need together. If its groups differ and some tasks have places, it is
    an estimate: the demand of all tasks, times the fraction that is unplaced, rounded down."""
    tasks: int
    """How many these are."""


@dataclass(frozen=True)
class TenantUse:
    """What tenants use, and their weights and parents."""

    used: Mapping[str, ResourceAmounts]
    """By tenant; those without running tasks are left out."""
    tenants: Sequence[Tenant]
    """Those that were set, by name."""
    age_ms: int = 0
    """How long ago the use was summed up."""


@dataclass(frozen=True)
class AnotherOrder:
    """The order that other replicas of a kind have agreed on, if it is not the one asked for."""

    order: QueueOrder
    held_by: str
    """The replica that agreed last, as kind/replica."""


class LaneStore(Protocol):
    """The reads of a fair order, and the agreement of replicas on one."""

    def lanes(self, scheduler: str) -> list[LaneHead]:
        """Return the heads of the lanes of a kind, and of all kinds that have a fair order.

        They are by kind, tenant and class, and at most `LIMITS.lanes_max` of each kind; a lane
        without a job that may be leased now is left out.
        """
        ...

    def tenant_use(self, *, age_ms_max: int) -> TenantUse:
        """Return what each tenant uses: the last sum, or a new one if that is `age_ms_max` old.

        In Postgres the last sum serves for at least twenty times as long as it took to make, and
        for ten times longer while another transaction makes the next one.
        With `age_ms_max` 0 the sum is made now. Raises BadInput if it is not within 0 and
        `LIMITS.window_ms_max`.
        """
        ...

    def agree_on_order(
        self, scheduler: str, replica: str, order: QueueOrder, *, lease_ms: int
    ) -> AnotherOrder | None:
        """Agree on the order of a kind until `lease_ms` from now; None if it is agreed.

        An agreement lasts `LIMITS.order_ms_max` at most.
        If replicas have agreed on another order that has not run out, return that one; nothing
        changes. In Postgres a call during which others agree on orders answers by what is on
        record, and may leave the agreement as it was.
        """
        ...

    def lease_reclaim(self, scheduler: str, replica: str, *, holder: UUID, lease_ms: int) -> bool:
        """Lease the right to reclaim for tenants, which one process of the cell has at a time.

        Return whether the holder has it until `lease_ms` from now, `LIMITS.reclaim_ms_max` at most.
        Its holder may renew it. In Postgres a call during which another one runs is refused.
        """
        ...


@dataclass(frozen=True)
class UnfinishedTasks:
    """How many tasks of one tenant and one shape run, and how many have no place."""

    tenant: str
    shape: TaskGroup
    """What each task needs: a group of one task, without duration and program."""
    running: int
    waiting: int
    """Those without a place; an estimate for jobs with several groups."""


class TenantReader(Protocol):
    """The tenants that were set, the orders of queues, and the tasks of each tenant."""

    def tenants(self) -> list[Tenant]:
        """Return the tenants that were set, by name."""
        ...

    def queue_orders(self) -> dict[str, QueueOrder]:
        """Return the orders on which replicas have agreed and that have not run out, by kind."""
        ...

    def sum_use(self) -> dict[str, ResourceAmounts]:
        """Return what the running tasks of each tenant use now, of each of RESOURCES."""
        ...

    def unfinished_tasks(self) -> list[UnfinishedTasks]:
        """Return the tasks of all jobs that have not ended, by tenant and shape, most tasks first.

        Of a job with several groups it is assumed that the same fraction of each has no place.
        There are at most `LIMITS.lanes_max` rows: those of most tasks.
        """
        ...
