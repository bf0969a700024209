"""The lanes from which a process leases, in a fair order of the whole queue.

Goal     Give the next room to the tenant with the smallest share, however many jobs another queues.
Promise  No I/O: a driver answers its effects. Lanes, what tenants use, and the view are read once a
         gap (`share_gap_ms`), or less often where reads take long (`read_pause.py`). While its kind
         has no lanes, these alone are read at each call. If a lease brought fewer jobs than it
         asked for, they are read again before the next one. Between reads, what this process has
         leased is added to what tenants use (`charges.py`). Jobs that other replicas lease are gone
         from the lanes at the next read; they count as use once they are committed and summed up.
         The time that a process spends on decisions counts as one more resource (`attention.py`).
Source   DRF (NSDI 2011) and Choosy (EuroSys 2013); docs/decisions/0058-the-order-of-the-queue.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from omega.cell.open_room import OpenRoom
from omega.cell.view import View
from omega.clock import Clock
from omega.framework.attention import WHOLE_US, Attention
from omega.framework.charges import Charges
from omega.framework.effects import Effects, called, refreshed
from omega.framework.job_attempt import AttemptEnd, JobResult
from omega.framework.passed_over import PassedOver
from omega.framework.read_pause import next_read_s
from omega.framework.wakeable import NO_LEASE
from omega.limits import LIMITS
from omega.model.arrays import Amounts, Counts, integers
from omega.model.jobs import LeasedJob
from omega.model.lanes import Lane, QueueOrder
from omega.ordering.fair import FairOrder, Lanes, by_resource, fair_jobs, fair_order
from omega.ordering.reclaim import Shares
from omega.ordering.tenants import Tenant, TenantNodes, TenantTree
from omega.store.holdings import RESOURCES
from omega.store.lanes import LaneHead, TenantUse
from omega.store.leases import ParkedJob

JOBS_LEASED_MIN: Final = 8
"""How many jobs may be leased although the view has less room: more may be free by now."""
LEFT_TO_OTHERS_S: Final = 1.0
"""For how long room is left to a poorer tenant's jobs of another kind."""


@dataclass(frozen=True, eq=False)
class _Known:
    """What was read last: lanes, what tenants use, and the room of the view."""

    due_s: float
    """When it is to be read again."""
    viewed_s: float
    """When the view was read."""
    heads: Sequence[LaneHead]
    """Of the lanes of this kind, and of other kinds that have a fair order."""
    lanes: Lanes
    """The lanes of these heads, as arrays."""
    tasks: Counts
    """(lanes,) how many tasks each head of this kind has to place; 0 for other kinds."""
    nodes: TenantNodes
    """The tenants of these lanes, and those that use something."""
    use: Amounts
    """(tenants, resources) by the positions of `nodes.names`, without charges."""
    capacity: Amounts
    """(resources,) of the machines that take claims."""
    jobs_with_room: int
    """About how many jobs the free room takes at most."""
    has_room: Mapping[tuple[str, Lane], bool]
    """By kind and lane, of lanes without constraints: whether a machine has room for a task."""


class FairQueue:
    """Decides from which lanes of a kind a process leases how many jobs."""

    def __init__(
        self, kind: str, order: QueueOrder, clock: Clock, gap_ms: int, *, preempts: bool = False
    ) -> None:
        """`gap_ms` is for how long a read serves, and how old a sum of use may be.

        `preempts` says whether the scheduler preempts. If so, the free room does not limit how many
        jobs it leases. It does limit a scheduler that only reclaims.
        """
        assert order.is_fair
        self._preempts = preempts
        self.order = order
        self._kind = kind
        self._clock = clock
        self._gap_ms = gap_ms
        self._known: _Known | None = None
        self._is_short = False
        """Whether the last lease found fewer jobs than were asked for."""
        self._charges = Charges()
        self._attention = Attention(clock)
        self._passed_over = PassedOver[Lane | str](clock)
        """What has found no room since the view last gained any, by `_key_of`."""
        self._room_left: dict[tuple[str, Lane], tuple[float, Amounts]] = {}
        """By kind and lane, of other kinds: since when room is left to a lane, and what its tenant
        used when last looked at."""
        self._room: OpenRoom | None = None
        """The room of the last read; lower where a placement that found no room saw less since."""
        self._generation = -1
        """The cell's generation when that was read; rooms of two generations are not compared."""
        self._nodes: tuple[tuple[str, ...], tuple[Tenant, ...], TenantNodes] | None = None
        """The names and tenants of the last read, and their nodes, which take long to make."""

    def lanes(self, jobs_max: int) -> Effects[dict[Lane, int]]:
        """Return from which lanes to lease how many jobs next, `jobs_max` together or fewer."""
        known = self._known
        if known is None or self._is_short or self._clock.now() >= known.due_s:
            known = yield from self._read()
        if known is None:
            return {}
        if not self._preempts:
            # More jobs could not be placed now. Room that comes free later would go to them, as
            # they are leased, although by then other tenants may have smaller shares.
            jobs_max = min(jobs_max, max(JOBS_LEASED_MIN, known.jobs_with_room))
        # How many jobs stand behind a head was not read. If a lane has fewer, `took` notes it.
        use = _with(known, self._charges.all())
        pending = [self._jobs_max(known, head, use, jobs_max) for head in known.heads]
        order = self._order_of(known, use, integers(pending), jobs_max)
        counts = zip(known.heads, order.count.tolist(), strict=True)
        return {it.lane: count for it, count in counts if count and it.scheduler == self._kind}

    def took(self, asked: Mapping[Lane, int], jobs: Sequence[LeasedJob]) -> list[LeasedJob]:
        """Charge for jobs that were leased; return them in the order in which to place them.

        `asked` is what `lanes` returned.
        """
        known = self._known
        self._is_short = len(jobs) < sum(asked.values())
        if known is None:
            return list(jobs)
        self._attention.begin()
        in_order = fair_jobs(jobs, known.nodes, _with(known, self._charges.all()), known.capacity)
        self._charges.lease(jobs, self._clock.now())
        return in_order

    def charge_claims(self, job: LeasedJob, left: Amounts) -> None:
        """Count all of a leased job as placed or claimed but `left` (resources,)."""
        self._charges.claim(job, left)

    def shares(self) -> Shares | None:
        """Return what tenants use, and what attempts have claimed since; None if it is not known.

        Leased jobs whose attempts have not begun are not counted.
        """
        known = self._known
        if known is None:
            return None
        return Shares(known.nodes, _with(known, self._charges.claimed()), known.capacity)

    def read_use_anew(self) -> Effects[float]:
        """Read what tenants use, by a sum that is made now.

        Returns when it was made, in seconds of the clock; 0 if no lanes are known. Leases whose
        attempts have not ended stay charged.
        """
        if self._known is None:
            return 0.0
        asked_s = self._clock.now()
        use = yield from called("tenant_use", lambda store: store.tenant_use(age_ms_max=0))
        summed_s = asked_s - use.age_ms / 1_000
        self._charges.drop(summed_s, unfinished_too=False)
        self._known = replace(self._known, use=_use_rows(self._known.nodes, use))
        return summed_s

    def note_evicted(self, tenant: str, demand: Amounts) -> None:
        """Count what an attempt evicts as used no more; `demand` (resources,) is its sum."""
        self._charges.evict(tenant, demand)

    def note(self, results: Sequence[JobResult]) -> None:
        """Take back the charge for tasks that were not placed, and note who found no room."""
        jobs = [result.job for result in results]
        self._attention.note(jobs)
        self._charges.end(jobs, self._clock.now())
        for result in results:
            job, diagnosis = result.job, result.diagnosis
            never_fits = diagnosis is not None and diagnosis.reason.is_permanent
            is_no_sign = never_fits or result.patience_ms > 0
            key = self._key_of(Lane.of(job.spec))
            if result.ending is AttemptEnd.DONE and result.placed:
                self._passed_over.note_placed(key, job, result.placed)
            if result.ending is AttemptEnd.NO_ROOM and not is_no_sign:
                self._passed_over.note(key, job)
                if result.room is not None and self._room is not None:
                    # The next read compares with this: room that was taken since the last read and
                    # has come back by then is a gain, for this job.
                    self._room = self._room.lowest(result.room)

    def parked_in_order(self, parked: Sequence[ParkedJob], view: View) -> Effects[list[ParkedJob]]:
        """Return parked jobs in fair order, in which room is looked for.

        They are over a quota or fit no machine, or were parked under another order.
        """
        if not parked:
            return []
        use = yield from self._read_use()
        names = {job.spec.tenant for job in parked}.union(use.used)
        nodes = self._nodes_of(sorted(names), use.tenants)
        jobs = [LeasedJob(it.id, NO_LEASE, it.spec, it.unplaced) for it in parked]
        by_id = {job.id: job for job in parked}
        order = fair_jobs(jobs, nodes, _use_rows(nodes, use), _capacity(view.open_room()))
        return [by_id[job.id] for job in order]

    def _order_of(self, known: _Known, use: Amounts, pending: Counts, jobs_max: int) -> FairOrder:
        """Return the next jobs of all kinds, with this process' time as one more resource."""
        lanes = known.lanes
        spent = self._attention.spent_us(known.nodes.names)
        takes = np.where(known.tasks, self._attention.expected_us(known.tasks), 0)
        return fair_order(
            replace(lanes, pending=pending, demand=np.column_stack((lanes.demand, takes))),
            known.nodes,
            np.column_stack((use, spent)),
            np.append(known.capacity, WHOLE_US),
            jobs_max,
        )

    def _read(self) -> Effects[_Known | None]:
        """Read the lanes, what tenants use, and the capacity; None if its kind has no lanes."""
        self._is_short = False
        kind, began_s = self._kind, self._clock.now()
        heads = yield from called("lanes", lambda store: store.lanes(kind))
        if not any(head.scheduler == kind for head in heads):
            self._known = None
            return None
        asked_s = self._clock.now()
        use = yield from self._read_use()
        summed_s = asked_s - use.age_ms / 1_000
        # Nothing that was leased earlier is still to be attempted.
        self._charges.drop(summed_s, unfinished_too=True)
        viewed_s = self._clock.now()
        view = yield from refreshed()
        room, before = view.open_room(), self._room
        if before is None or view.generation != self._generation or _gained(before, room):
            self._passed_over.clear()
        self._room, self._generation = room, view.generation
        there = {(head.scheduler, head.lane) for head in heads}
        self._room_left = {lane: since for lane, since in self._room_left.items() if lane in there}
        names = {head.lane.tenant for head in heads}.union(use.used)
        nodes = self._nodes_of(sorted(names), use.tenants)
        self._known = _Known(
            due_s=next_read_s(began_s, self._clock.now(), self._gap_ms / 1_000),
            viewed_s=viewed_s,
            heads=heads,
            lanes=_lanes(heads, nodes),
            tasks=integers([it.tasks * (it.scheduler == kind) for it in heads]),
            nodes=nodes,
            use=_use_rows(nodes, use),
            capacity=_capacity(room),
            jobs_with_room=_jobs_with_room(heads, room),
            has_room=_have_room(heads, room),
        )
        return self._known

    def _read_use(self) -> Effects[TenantUse]:
        gap_ms = self._gap_ms
        return (yield from called("tenant_use", lambda store: store.tenant_use(age_ms_max=gap_ms)))

    def _jobs_max(self, known: _Known, head: LaneHead, use: Amounts, wanted: int) -> int:
        """Return how many jobs of a lane take part in the order, `wanted` at most.

        Lanes of other kinds take part, so that room is left to them, if they have no constraints
        and a machine has room for a task. If the tenant has got no more of anything for
        `LEFT_TO_OTHERS_S`, the lane is left out: its scheduler is slow, or sees what cannot be seen
        from here.
        """
        if head.scheduler == self._kind:
            of = self._key_of(head.lane)
            return self._passed_over.jobs_max(of, head, wanted, known.viewed_s)
        key, now_s = (head.scheduler, head.lane), self._clock.now()
        if not known.has_room.get(key, False):
            self._room_left.pop(key, None)
            return 0
        used = use[known.nodes.position[head.lane.tenant]]
        since_s, before = self._room_left.get(key, (now_s, used))
        if (used > before).any():
            since_s = now_s
        self._room_left[key] = (since_s, used)
        return wanted if now_s - since_s < LEFT_TO_OTHERS_S else 0

    def _key_of(self, lane: Lane) -> Lane | str:
        """Return what is passed over if a job of this lane finds no room: it, or its tenant.

        A tenant's lanes without constraints count as one: their jobs may use the same machines.
        """
        if self.order is not QueueOrder.CHOOSY:
            return lane.tenant
        return lane if lane.has_constraints else Lane(lane.tenant, 0)

    def _nodes_of(self, names: Sequence[str], tenants: Sequence[Tenant]) -> TenantNodes:
        key = tuple(names), tuple(tenants)
        if self._nodes is None or self._nodes[:2] != key:
            self._nodes = (*key, TenantTree(tenants).nodes(names))
        return self._nodes[2]


def _lanes(heads: Sequence[LaneHead], nodes: TenantNodes) -> Lanes:
    """Return the lanes of these heads, as if each had one job: `FairQueue.lanes` says how many."""
    return Lanes(
        tenant=np.array([nodes.position[it.lane.tenant] for it in heads], dtype=np.intp),
        pending=np.ones(len(heads), dtype=np.int64),
        demand=np.array([it.demand for it in heads], dtype=np.int64),
        precedence=np.array([it.precedence for it in heads], dtype=np.int64),
        head=np.array([it.job for it in heads], dtype=np.int64),
    )


def _with(known: _Known, charges: Iterable[tuple[str, Amounts]]) -> Amounts:
    """Return what tenants use, these charges included: (tenants, resources)."""
    use = known.use.copy()
    for tenant, demand in charges:
        at = known.nodes.position.get(tenant)
        if at is not None:
            use[at] += demand
    return use


def _use_rows(nodes: TenantNodes, use: TenantUse) -> Amounts:
    """Return what each of the nodes' tenants uses: (tenants, resources)."""
    nothing = (0,) * len(RESOURCES)
    return np.array([use.used.get(name, nothing) for name in nodes.names], dtype=np.int64)


def _capacity(room: OpenRoom) -> Amounts:
    """Return the capacity of all machines that take claims: (resources,)."""
    return by_resource(room.capacity.sum(axis=0))


def _jobs_with_room(heads: Sequence[LaneHead], room: OpenRoom) -> int:
    """Return about how many jobs find room at most.

    It is as if the free room were on one machine, and each job asked for the least that any head
    asks for of each resource. Jobs behind the heads may ask for less.
    """
    free = by_resource(room.free.sum(axis=0))
    smallest = np.array([it.demand for it in heads], dtype=np.int64).min(axis=0)
    needs = smallest > 0
    return int((free[needs] // smallest[needs]).min(initial=LIMITS.jobs_per_submission_max))


def _have_room(heads: Sequence[LaneHead], room: OpenRoom) -> dict[tuple[str, Lane], bool]:
    free = by_resource(room.free)
    known: dict[tuple[int, ...], bool] = {}
    has_room: dict[tuple[str, Lane], bool] = {}
    for head in heads:
        if not head.lane.has_constraints:
            task = tuple(-(-amount // head.tasks) for amount in head.demand)
            if task not in known:
                known[task] = bool((free >= np.array(task)).all(axis=1).any())
            has_room[head.scheduler, head.lane] = known[task]
    return has_room


def _gained(before: OpenRoom, room: OpenRoom) -> bool:
    """Return whether a machine has more of any resource free, or machines have joined."""
    if before.free.shape != room.free.shape:
        return True
    return bool((room.free > before.free).any())
