"""The operations of a store for schedulers that lease in a fair order of the whole queue.

Goal     Let a scheduler decide from which lanes it leases, without reading the queue.
Promise  A read of the lanes costs one search of an index a lane, however long the queue is. What
         tenants use is a sum over the allocations that schedulers share; commits write nothing for
         it.
Source   docs/decisions/0058-the-order-of-the-queue.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from omega.model.jobs import TaskGroup
from omega.model.lanes import Lane, QueueOrder
from omega.ordering.tenants import Tenant
from omega.store.holdings import Amounts


@dataclass(frozen=True)
class LaneHead:
    """The job that is first in a lane, of those that may be leased now."""

    scheduler: str
    lane: Lane
    job: int
    precedence: int
    demand: Amounts
    """What its unplaced tasks need: about, if its groups differ and some tasks have places."""
    tasks: int
    """How many these are."""


@dataclass(frozen=True)
class TenantUse:
    """What tenants use, and what the owner has said of tenants."""

    used: Mapping[str, Amounts]
    """By tenant; those without running tasks are left out."""
    tenants: Sequence[Tenant]
    age_ms: int = 0
    """How long ago the use was summed up."""


@dataclass(frozen=True)
class AnotherOrder:
    """Another replica has the kind under another order."""

    order: QueueOrder
    held_by: str
    """The replica, as kind/replica."""


class LaneStore(Protocol):
    """The reads of a fair order, and the agreement of replicas on one."""

    def lanes(self, scheduler: str) -> list[LaneHead]:
        """Return the heads of the lanes of a kind, and of all kinds that have a fair order.

        They are by kind, tenant and class, and at most `LIMITS.lanes_max` of each kind; a lane
        without a job that may be leased now is left out.
        """
        ...

    def tenant_use(self, *, age_ms_max: int) -> TenantUse:
        """Return what each tenant uses, as a sum that is younger than that, or is made now.

        In Postgres it may be twenty times as old as it took to make it, unless `age_ms_max` is 0.
        """
        ...

    def agree_on_order(
        self, scheduler: str, replica: str, order: QueueOrder, *, lease_ms: int
    ) -> AnotherOrder | None:
        """Have the order of a kind for so long; return who has another one, if anybody does.

        Raises StoreUnavailable if other calls run all the while.
        """
        ...


@dataclass(frozen=True)
class UnfinishedTasks:
    """How many tasks of one tenant and one shape run, and how many wait."""

    tenant: str
    shape: TaskGroup
    """What each task needs; its number of tasks, duration and program mean nothing."""
    running: int
    waiting: int
    """Those without a place: about, of jobs with several groups."""


class TenantReader(Protocol):
    """The tenants that the owner has set, and what they ask for."""

    def tenants(self) -> list[Tenant]:
        """Return their weights and parents, by name."""
        ...

    def queue_orders(self) -> dict[str, QueueOrder]:
        """Return the orders that kinds of scheduler have agreed on, by kind."""
        ...

    def unfinished_tasks(self) -> list[UnfinishedTasks]:
        """Return the tasks of all jobs that have not ended, by tenant and shape.

        Of a job with several groups it is assumed that the same part of each has no place. There
        are at most `LIMITS.lanes_max` rows: those of most tasks.
        """
        ...
