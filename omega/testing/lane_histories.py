"""Random histories in which schedulers also lease from lanes, by agreed orders.

Goal     Find sequences of calls after which lanes, shares or agreements are wrong.
Promise  Heads of lanes, leases from lanes, what tenants use, and agreements equal the model's.
Source   docs/decisions/0058-the-order-of-the-queue.md; omega/testing/histories.py.
"""

from collections import defaultdict

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from omega.lifecycle.states import State
from omega.model.arrays import integers
from omega.model.jobs import Constraint, Operator
from omega.model.lanes import Lane, QueueOrder, task_demand
from omega.model.resources import DEVICES
from omega.store.lanes import AnotherOrder
from omega.testing.builders import a_spec
from omega.testing.histories import KINDS, SchedulersOnOneCell
from omega.testing.plain_cell import PlainJob
from omega.testing.steps import LONG_MS, OVER_AT_ONCE_MS
from omega.testing.strategies import PRECEDENCES, TENANTS

AGREED_MS = 60_000
"""The length of agreements that do not run out during a history."""
Head = tuple[str, Lane, int, int, tuple[int, ...], int]
"""The kind, the lane, the job, its precedence, what its unplaced tasks need, and their number."""


class LanesOfOneCell(SchedulersOnOneCell):
    """The same, and schedulers that lease in a fair order of the whole queue."""

    def __init__(self) -> None:
        super().__init__()
        self.agreed: dict[str, tuple[QueueOrder, str]] = {}
        """By kind, the order of its queue, and the replica that agreed last."""

    @rule(
        zone=st.sampled_from(["a", "b", "c"]),
        cpu_milli=st.sampled_from([1_000, 4_000]),
        precedence=PRECEDENCES,
        tenant=TENANTS,
        kind=st.sampled_from(KINDS),
    )
    def a_user_submits_to_another_lane(
        self, zone: str, cpu_milli: int, precedence: int, tenant: str, kind: str
    ) -> None:
        """A job with a constraint, or of larger tasks, enters the queue."""
        constraint = Constraint("zone", Operator.IN, (zone,))
        spec = a_spec(
            precedence=precedence,
            tenant=tenant,
            scheduler=kind,
            cpu_milli=cpu_milli,
            constraints=(constraint,),
        )
        (job,) = self.store.submit([spec])
        assert job not in self.model.jobs
        self.model.jobs[job] = PlainJob(spec)

    @rule(
        kind=st.sampled_from(KINDS),
        order=st.sampled_from(QueueOrder),
        replica=st.sampled_from(["0", "1"]),
        lease_ms=st.sampled_from([AGREED_MS, OVER_AT_ONCE_MS, OVER_AT_ONCE_MS]),
    )
    def a_replica_agrees(self, kind: str, order: QueueOrder, replica: str, lease_ms: int) -> None:
        """Replicas have one order; who asks for another is told by whom it is held."""
        held = self.agreed.get(kind)
        answer = self.store.agree_on_order(kind, replica, order, lease_ms=lease_ms)
        if held is not None and held[0] is not order:
            assert AnotherOrder(held[0], f"{kind}/{held[1]}") == answer
            return
        assert answer is None
        if held is not None or lease_ms == AGREED_MS:
            self.agreed[kind] = order, replica

    @rule(kind=st.sampled_from(KINDS))
    def heads_are_the_models(self, kind: str) -> None:
        """The head of a lane is its first pending job, also of other kinds with a fair order."""
        kinds = {kind} | {it for it, (order, _) in self.agreed.items() if order.is_fair}
        told = [
            (it.scheduler, it.lane, it.job, it.precedence, tuple(map(int, it.demand)), it.tasks)
            for it in self.store.lanes(kind)
        ]
        assert [head for each in sorted(kinds) for head in self._heads(each)] == told

    @rule(
        data=st.data(),
        kind=st.sampled_from(KINDS),
        lease_ms=st.sampled_from([LONG_MS, OVER_AT_ONCE_MS]),
    )
    @precondition(lambda self: self.model.in_state(State.PENDING))
    def a_scheduler_leases_from_lanes(self, data: st.DataObject, kind: str, lease_ms: int) -> None:
        """The first jobs of each lane are leased, up to its number, and none of other lanes."""
        lanes = self._lanes(kind)
        names = [*lanes, Lane("nobody", 0)]
        counts = data.draw(st.dictionaries(st.sampled_from(names), st.integers(0, 3)))
        expected = [job for lane, number in counts.items() for job in lanes.get(lane, [])[:number]]
        leased = self.store.lease(kind, holder="0", jobs_max=100, lease_ms=lease_ms, lanes=counts)
        assert [job for job in self.model.waiting(kind) if job in expected] == [
            job.id for job in leased
        ]
        self.they_are_leased(leased, lease_ms)

    @rule()
    def use_is_the_models(self) -> None:
        """What a tenant uses is the sum over the tasks of its jobs that run."""
        expected: defaultdict[str, list[int]] = defaultdict(lambda: [0] * (DEVICES.start + 1))
        for about in self.model.jobs.values():
            for _, amounts in about.runs.values():
                devices = sum(amounts[DEVICES.start :])
                for place, amount in enumerate([*amounts[: DEVICES.start], devices]):
                    expected[about.spec.tenant][place] += amount
        told = self.store.tenant_use(age_ms_max=0).used
        assert expected == {tenant: integers(used).tolist() for tenant, used in told.items()}

    def _lanes(self, kind: str) -> dict[Lane, list[int]]:
        """Return the pending jobs of each lane of a kind, in the order in which they are leased."""
        lanes: defaultdict[Lane, list[int]] = defaultdict(list)
        for job in self.model.waiting(kind):
            lanes[Lane.of(self.model.jobs[job].spec)].append(job)
        return lanes

    def _heads(self, kind: str) -> list[Head]:
        heads = []
        for lane, (job, *_) in sorted(self._lanes(kind).items()):
            spec = self.model.jobs[job].spec
            unplaced = len(self.model.jobs[job].unplaced)
            (group,) = spec.groups
            demand = tuple((task_demand(group) * unplaced).tolist())
            heads.append((kind, lane, job, spec.precedence, demand, unplaced))
        return heads
