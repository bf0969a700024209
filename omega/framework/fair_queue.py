"""The lanes from which a process leases, in a fair order of the whole queue.

Goal     Give the next room to the tenant with the smallest share, however many jobs another queues.
Promise  No I/O: a driver answers its effects. What tenants use, and which lanes there are, is read
         once a gap, or less often where reads take long, and at once if a lease found fewer jobs
         than were asked for; in between, what this process leased since is added. Other replicas'
         leases are seen a gap later. Whoever found no room is tried again when the view has gained
         room, and now and then without that: a smaller job may have come, or one of higher
         precedence.
Source   DRF (NSDI 2011) and Choosy (EuroSys 2013); docs/decisions/0058-the-order-of-the-queue.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

import numpy as np

from omega.cell.open_room import OpenRoom
from omega.cell.view import View
from omega.clock import Clock
from omega.framework.effects import Effects, called, refreshed
from omega.framework.job_attempt import AttemptEnd, JobResult
from omega.limits import LIMITS
from omega.model.arrays import Amounts
from omega.model.jobs import LeasedJob
from omega.model.lanes import Lane, QueueOrder
from omega.ordering.fair import Lanes, demand_left, fair_jobs, fair_order, one_gpu_kind
from omega.ordering.tenants import Tenant, TenantNodes, TenantTree
from omega.store.holdings import RESOURCES
from omega.store.lanes import LaneHead, TenantUse
from omega.store.leases import ParkedJob

PAUSE: Final = 20
"""From one read to the next it takes at least so many times as long as a read."""
LEFT_TO_OTHERS_S: Final = 1.0
"""For how long room is left to a poorer tenant's jobs of another kind."""
LEASED_MIN: Final = 8
"""How many jobs are leased at a time where nothing is free: room may have come meanwhile."""
RETRY_S_MIN: Final = 0.1
RETRY_S_MAX: Final = 2.0
"""While nothing gains room, some that found none are tried again after these times: first after the
shortest one, then after times that double."""
NOBODYS = UUID(int=0)
"""The token of a parked job, which nobody has leased."""


@dataclass(frozen=True)
class _Charge:
    """What a job was leased for, without what it gave back."""

    at_s: float
    tenant: str
    demand: Amounts


@dataclass(frozen=True, eq=False)
class _Known:
    """What was read last."""

    due_s: float
    """When it is to be read again."""
    heads: Sequence[LaneHead]
    """Of this kind, and of others that have a fair order ..."""
    lanes: Lanes
    """... and as arrays."""
    nodes: TenantNodes
    use: Amounts
    """(tenants, resources)"""
    capacity: Amounts
    """(resources,) of the machines that take claims."""
    jobs_with_room: int
    """How many jobs there is room for at most, if all are as small as the smallest head."""
    has_room: Mapping[tuple[str, Lane], bool]
    """Of lanes of other kinds without constraints, whether a machine has room for a task."""


class FairQueue:
    """Decides from which lanes of a kind a process leases how many jobs."""

    def __init__(
        self, kind: str, order: QueueOrder, clock: Clock, gap_ms: int, *, evicts: bool = False
    ) -> None:
        """`evicts` says whether jobs can be placed where nothing is free."""
        assert order.is_fair
        self._evicts = evicts
        self.order = order
        self._kind = kind
        self._clock = clock
        self._gap_ms = gap_ms
        self._known: _Known | None = None
        self._is_short = False
        """Whether the last lease found fewer jobs than were asked for."""
        self._charges: dict[UUID, _Charge] = {}
        """By token, leases of this process since the use that was read last was summed up."""
        self._without_room: dict[Lane | str, None] = {}
        """The lanes, or for DRF the tenants, whose jobs have found no room since the view last
        gained any; the one that has waited longest is first."""
        self._others: dict[tuple[str, Lane], tuple[float, int]] = {}
        """Since when lanes of other kinds could have taken room, and what their tenants used."""
        self._room: OpenRoom | None = None
        """The room of the last read, or less: what placement saw since when it found none."""
        self._generation = -1
        self._retry_s, self._retry_due_s = RETRY_S_MIN, 0.0
        self._nodes: tuple[tuple[str, ...], tuple[Tenant, ...], TenantNodes] | None = None

    def lanes(self, jobs_max: int) -> Effects[dict[Lane, int]]:
        """Return from which lanes to lease how many jobs next, `jobs_max` together or fewer."""
        known = self._known
        if known is None or self._is_short or self._clock.now() >= known.due_s:
            known = yield from self._read()
        if known is None:
            return {}
        if not self._evicts:
            # More could not be placed; and what is leased now is decided by what is known now.
            jobs_max = min(jobs_max, max(LEASED_MIN, known.jobs_with_room))
        lanes = replace(known.lanes, pending=np.full(len(known.heads), jobs_max, dtype=np.int64))
        use = self._used(known)
        may_go = np.array([self._may_go(known, it, use) for it in known.heads], dtype=np.bool_)
        order = fair_order(lanes, known.nodes, use, known.capacity, jobs_max, eligible=may_go)
        counts = zip(known.heads, order.count.tolist(), strict=True)
        return {it.lane: count for it, count in counts if count and it.scheduler == self._kind}

    def took(self, asked: Mapping[Lane, int], jobs: Sequence[LeasedJob]) -> list[LeasedJob]:
        """Return leased jobs in the order in which they are to be placed, and charge for them."""
        known = self._known
        self._is_short = len(jobs) < sum(asked.values())
        if known is None:
            return list(jobs)
        in_order = fair_jobs(jobs, known.nodes, self._used(known), known.capacity)
        now_s = self._clock.now()
        self._charges |= {it.token: _Charge(now_s, it.spec.tenant, demand_left(it)) for it in jobs}
        return in_order

    def note(self, results: Sequence[JobResult]) -> None:
        """Take back the charge for tasks that were not placed, and note who found no room."""
        for result in results:
            job = result.job
            charge = self._charges.get(job.token)
            if charge is not None:
                demand = charge.demand - demand_left(job)
                self._charges[job.token] = replace(charge, demand=demand)
            if result.ending is AttemptEnd.NO_ROOM:
                whose = self._whose(Lane.of(job.spec))
                self._without_room.pop(whose, None)
                self._without_room[whose] = None
                if result.room is not None and self._room is not None:
                    # What was taken and came back between two reads is a gain for this job.
                    self._room = self._room.lowest(result.room)

    def parked_in_order(self, parked: Sequence[ParkedJob], view: View) -> Effects[list[ParkedJob]]:
        """Return parked jobs in the order in which room is to be found for them."""
        if not parked:
            return []
        use = yield from self._read_use()
        names = {job.spec.tenant for job in parked}.union(use.used)
        nodes = self._nodes_of(sorted(names), use.tenants)
        jobs = [LeasedJob(it.id, NOBODYS, it.spec, it.unplaced) for it in parked]
        by_id = {job.id: job for job in parked}
        order = fair_jobs(jobs, nodes, _rows(nodes, use), _capacity(view.open_room()))
        return [by_id[job.id] for job in order]

    def _read(self) -> Effects[_Known | None]:
        """Read the lanes, what tenants use, and the capacity; None if there are no lanes."""
        self._is_short = False
        kind, began_s = self._kind, self._clock.now()
        heads = yield from called("lanes", lambda store: store.lanes(kind))
        if not any(head.scheduler == kind for head in heads):
            self._known = None
            return None
        asked_s = self._clock.now()
        use = yield from self._read_use()
        summed_s = asked_s - use.age_ms / 1_000
        self._charges = {by: it for by, it in self._charges.items() if it.at_s >= summed_s}
        view = yield from refreshed()
        room = view.open_room()
        self._choose_whom_to_try_again(view, room)
        names = {head.lane.tenant for head in heads}.union(use.used)
        nodes = self._nodes_of(sorted(names), use.tenants)
        now_s = self._clock.now()
        self._known = _Known(
            due_s=now_s + max(self._gap_ms / 1_000, PAUSE * (now_s - began_s)),
            heads=heads,
            lanes=_lanes(heads, nodes),
            nodes=nodes,
            use=_rows(nodes, use),
            capacity=_capacity(room),
            jobs_with_room=_jobs_with_room(heads, room),
            has_room=_have_room(heads, room),
        )
        return self._known

    def _read_use(self) -> Effects[TenantUse]:
        gap_ms = self._gap_ms
        return (yield from called("tenant_use", lambda store: store.tenant_use(age_ms_max=gap_ms)))

    def _choose_whom_to_try_again(self, view: View, room: OpenRoom) -> None:
        """Let all go that found no room if the view has gained any, or else a few, seldom."""
        now_s, before = self._clock.now(), self._room
        if before is None or view.generation != self._generation or _gained(before, room):
            self._without_room.clear()
            self._retry_s = RETRY_S_MIN
            self._retry_due_s = now_s + self._retry_s
        elif now_s >= self._retry_due_s:
            for whose in list(self._without_room)[:LEASED_MIN]:
                del self._without_room[whose]
            self._retry_s = min(2 * self._retry_s, RETRY_S_MAX)
            self._retry_due_s = now_s + self._retry_s
        self._room, self._generation = room, view.generation

    def _may_go(self, known: _Known, head: LaneHead, use: Amounts) -> bool:
        """Return whether a lane takes part: of this kind, or of another that could take room.

        A lane of another kind whose tenant has got no more for `LEFT_TO_OTHERS_S` is left out: its
        scheduler is slow, or sees what cannot be seen from here.
        """
        if head.scheduler == self._kind:
            return self._whose(head.lane) not in self._without_room
        key, now_s = (head.scheduler, head.lane), self._clock.now()
        if not known.has_room.get(key, False):
            self._others.pop(key, None)
            return False
        used = int(use[known.nodes.position[head.lane.tenant]].max())
        since_s, before = self._others.get(key, (now_s, used))
        if used > before:
            since_s = now_s
        self._others[key] = (since_s, used)
        return now_s - since_s < LEFT_TO_OTHERS_S

    def _whose(self, lane: Lane) -> Lane | str:
        """Return who waits if a job of this lane finds no room: the lane, or its tenant."""
        return lane if self.order is QueueOrder.CHOOSY else lane.tenant

    def _used(self, known: _Known) -> Amounts:
        """Return what tenants use, and what was leased for them since: (tenants, resources)."""
        use = known.use.copy()
        for charge in self._charges.values():
            at = known.nodes.position.get(charge.tenant)
            if at is not None:
                use[at] += charge.demand
        return use

    def _nodes_of(self, names: Sequence[str], tenants: Sequence[Tenant]) -> TenantNodes:
        key = tuple(names), tuple(tenants)
        if self._nodes is None or self._nodes[:2] != key:
            self._nodes = (*key, TenantTree(tenants).nodes(names))
        return self._nodes[2]


def _lanes(heads: Sequence[LaneHead], nodes: TenantNodes) -> Lanes:
    return Lanes(
        tenant=np.array([nodes.position[it.lane.tenant] for it in heads], dtype=np.intp),
        pending=np.ones(len(heads), dtype=np.int64),
        demand=np.array([it.demand for it in heads], dtype=np.int64),
        precedence=np.array([it.precedence for it in heads], dtype=np.int64),
        head=np.array([it.job for it in heads], dtype=np.int64),
    )


def _rows(nodes: TenantNodes, use: TenantUse) -> Amounts:
    nothing = (0,) * len(RESOURCES)
    return np.array([use.used.get(name, nothing) for name in nodes.names], dtype=np.int64)


def _capacity(room: OpenRoom) -> Amounts:
    return one_gpu_kind(room.capacity.sum(axis=0))


def _jobs_with_room(heads: Sequence[LaneHead], room: OpenRoom) -> int:
    free = one_gpu_kind(room.free.sum(axis=0))
    smallest = np.array([it.demand for it in heads], dtype=np.int64).min(axis=0)
    needs = smallest > 0
    return int((free[needs] // smallest[needs]).min(initial=LIMITS.jobs_per_submission_max))


def _have_room(heads: Sequence[LaneHead], room: OpenRoom) -> dict[tuple[str, Lane], bool]:
    free = one_gpu_kind(room.free)
    known: dict[tuple[int, ...], bool] = {}
    has_room: dict[tuple[str, Lane], bool] = {}
    for head in heads:
        if not head.lane.constraint_class:
            task = tuple(-(-amount // head.tasks) for amount in head.demand)
            if task not in known:
                known[task] = bool((free >= np.array(task)).all(axis=1).any())
            has_room[head.scheduler, head.lane] = known[task]
    return has_room


def _gained(before: OpenRoom, room: OpenRoom) -> bool:
    if before.free.shape != room.free.shape:
        return True
    return bool((room.free > before.free).any())
