"""The order of the queue in a memory store: lanes, tenants, and the agreement of replicas.

Goal     Answer the calls of a fair order as the Postgres store does, for simulations and tests.
Promise  A sum of what tenants use is kept until a call asks for a younger one.
Source   docs/decisions/0058-the-order-of-the-queue.md; functions/lanes.sql.
"""

from collections import Counter
from dataclasses import dataclass, replace
from uuid import UUID

import numpy as np

from omega.errors import BadInput
from omega.limits import LIMITS
from omega.model.jobs import TaskGroup
from omega.model.lanes import Lane, QueueOrder, job_demand
from omega.model.quotas import cost
from omega.ordering.tenants import Tenant, TenantTree
from omega.store.holdings import RESOURCES, ResourceAmounts
from omega.store.lanes import AnotherOrder, LaneHead, TenantUse, UnfinishedTasks
from omega.store.memory.job_records import JobRecord
from omega.store.memory.jobs import milliseconds
from omega.store.memory.pipelines import MemoryPipelines


@dataclass(frozen=True)
class _Agreement:
    """The order of a kind, the replica that agreed last, and when the agreement runs out."""

    order: QueueOrder
    replica: str
    ends_s: float


class MemoryLanes(MemoryPipelines):
    """What a fair order reads. `_tenants` and `_agreements` are empty at first."""

    _tenants: dict[str, Tenant]
    _agreements: dict[str, _Agreement]
    _use: tuple[float, dict[str, ResourceAmounts]] | None = None
    """When use was summed up last, in seconds of the clock, and what each tenant used."""
    _reclaim: tuple[UUID, float] | None = None
    """Who holds the right to reclaim, and until when."""

    def lanes(self, scheduler: str) -> list[LaneHead]:
        """Return the heads of the lanes of a kind, and of all kinds that have a fair order."""
        fair = {kind for kind, order in self.queue_orders().items() if order.is_fair}
        now_s = self._clock.now()
        return [
            _head(kind, lane, job)
            for kind in sorted(fair | {scheduler})
            for lane, job in self._queues[kind].heads(now_s)[: LIMITS.lanes_max]
        ]

    def tenant_use(self, *, age_ms_max: int) -> TenantUse:
        """Return what each tenant uses: the last sum if it is young enough, or a new one."""
        if not 0 <= age_ms_max <= LIMITS.window_ms_max:
            raise BadInput(f"bad length of time: {age_ms_max} ms")
        now_s = self._clock.now()
        if self._use is None or not 0 <= now_s - self._use[0] < age_ms_max / 1_000:
            self._use = (now_s, self.sum_use())
        return TenantUse(self._use[1], self.tenants(), milliseconds(now_s - self._use[0]))

    def agree_on_order(
        self, scheduler: str, replica: str, order: QueueOrder, *, lease_ms: int
    ) -> AnotherOrder | None:
        """Agree on the order of a kind for `lease_ms`, or return another that is held."""
        now_s = self._clock.now()
        held = self._agreements.get(scheduler)
        ends_s = now_s + min(lease_ms, LIMITS.order_ms_max) / 1_000
        if held is not None and held.ends_s > now_s:
            if held.order is not order:
                return AnotherOrder(held.order, f"{scheduler}/{held.replica}")
            ends_s = max(ends_s, held.ends_s)
        self._agreements[scheduler] = _Agreement(order, replica, ends_s)
        self._note_order(scheduler, order)
        return None

    def lease_reclaim(self, scheduler: str, replica: str, *, holder: UUID, lease_ms: int) -> bool:
        """Lease the right to reclaim for tenants; return whether the holder has it."""
        del scheduler, replica
        now_s = self._clock.now()
        held_by, ends_s = self._reclaim or (holder, now_s)
        if held_by != holder and ends_s > now_s:
            return False
        self._reclaim = (holder, now_s + min(lease_ms, LIMITS.reclaim_ms_max) / 1_000)
        return True

    def tenants(self) -> list[Tenant]:
        """Return the tenants that were set, by name."""
        return [self._tenants[name] for name in sorted(self._tenants)]

    def queue_orders(self) -> dict[str, QueueOrder]:
        """Return the orders on which replicas have agreed and that have not run out, by kind."""
        now_s = self._clock.now()
        held = sorted(self._agreements.items())
        return {kind: it.order for kind, it in held if it.ends_s > now_s}

    def sum_use(self) -> dict[str, ResourceAmounts]:
        """Return what the running tasks of each tenant use now, of each of RESOURCES."""
        rows = self._allocations.rows
        rows = rows[rows["job"] > 0]
        jobs, at = np.unique(rows["job"], return_inverse=True)
        tenants = [self._jobs[job].spec.tenant for job in jobs.tolist()]
        names = sorted(set(tenants))
        number = {name: place for place, name in enumerate(names)}
        sums = np.zeros((len(names), len(RESOURCES)), dtype=np.int64)
        of_job = np.array([number[tenant] for tenant in tenants], dtype=np.intp)
        np.add.at(sums, of_job[at], cost(rows["amounts"])[:, : len(RESOURCES)])
        return {name: tuple(row) for name, row in zip(names, sums.tolist(), strict=True)}

    def unfinished_tasks(self) -> list[UnfinishedTasks]:
        """Return the tasks of all jobs that have not ended, by tenant and shape."""
        running: Counter[tuple[str, TaskGroup]] = Counter()
        waiting: Counter[tuple[str, TaskGroup]] = Counter()
        for job in self._jobs.values():
            if job.finished_s is not None:
                continue
            first, whole = 0, job.spec.tasks
            for group in job.spec.groups:
                shape = replace(group, tasks=1, duration_ms=None, program=None)
                whose, last = (job.spec.tenant, shape), first + group.tasks
                running[whose] += int(np.count_nonzero(job.slot[first:last] >= 0))
                waiting[whose] += group.tasks * (whole - job.placed) // whole
                first = last
        rows = [
            UnfinishedTasks(*whose, running[whose], waiting[whose])
            for whose in running
            if running[whose] + waiting[whose]
        ]
        rows.sort(key=lambda row: (-row.running - row.waiting, row.tenant))
        return rows[: LIMITS.lanes_max]

    def set_tenant(self, tenant: Tenant) -> None:
        """Set a tenant's weight and parent."""
        tenants = {**self._tenants, tenant.name: tenant}
        TenantTree(tenants.values())
        self._tenants = tenants

    def remove_tenant(self, name: str) -> bool:
        """Forget a tenant's weight and parent; return False if none were set."""
        if any(tenant.parent == name for tenant in self._tenants.values()):
            raise BadInput(f"bad tenant: {name} is the parent of others")
        return self._tenants.pop(name, None) is not None


def _head(kind: str, lane: Lane, job: JobRecord) -> LaneHead:
    """Return the head of a lane; its demand is the same estimate as that of omega.read_lanes."""
    tasks, unplaced = job.spec.tasks, job.spec.tasks - job.placed
    demand = (amount * unplaced // tasks for amount in job_demand(job.spec).tolist())
    return LaneHead(kind, lane, job.id, job.spec.precedence, tuple(demand), unplaced)
