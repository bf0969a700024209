"""What every store must do about lanes: the parts of a queue that a fair order compares.

Goal     Lanes, tenants and the agreement of replicas as tests that read as stories.
Promise  The heads of lanes are those that a lease of the lane would take first. What tenants use is
         what their tasks hold.
Source   docs/decisions/0058-the-order-of-the-queue.md.
"""

from collections.abc import Mapping
from dataclasses import replace
from uuid import UUID

import pytest

from omega.errors import BadInput
from omega.lifecycle.states import ParkReason
from omega.limits import LIMITS
from omega.model.jobs import Constraint, Operator
from omega.model.lanes import Lane, QueueOrder
from omega.ordering.tenants import Tenant
from omega.store.lanes import AnotherOrder, LaneHead, LaneStore, UnfinishedTasks
from omega.store.leases import HandBack, Parking
from omega.store.protocols import Store
from omega.testing.builders import a_group, a_spec
from omega.testing.contract import Contract
from omega.testing.steps import LONG_MS, OVER_AT_ONCE_MS, add_a_cell, end, grant, lease_all

ZONE_B = Constraint("zone", Operator.IN, ("b",))
SSD = Constraint("disk", Operator.EXISTS)


def lane_of(tenant: str) -> Lane:
    """Return the lane of a tenant's jobs that ask for one core."""
    return Lane.of(a_spec(tenant=tenant))


def lease_from(store: Store, lanes: Mapping[Lane, int], *, jobs_max: int = 100) -> list[int]:
    """Lease jobs of the kind batch from lanes; return their ids, ascending."""
    jobs = store.lease("batch", holder="0", jobs_max=jobs_max, lease_ms=LONG_MS, lanes=lanes)
    return sorted(job.id for job in jobs)


def used(store: LaneStore) -> dict[str, tuple[int, ...]]:
    """Return what each tenant uses now, of each of RESOURCES."""
    return dict(store.tenant_use(age_ms_max=0).used)


def agree(
    store: LaneStore, replica: str, order: QueueOrder, lease_ms: int = LONG_MS
) -> AnotherOrder | None:
    """Ask for an order of the kind batch."""
    return store.agree_on_order("batch", replica, order, lease_ms=lease_ms)


class LaneContract(Contract):
    """The lanes of a queue, and leases from them."""

    def test_an_empty_queue_has_no_lanes(self, store: Store) -> None:
        store.submit([a_spec(scheduler="service")])

        assert [] == store.lanes("batch")

    def test_each_tenant_has_a_lane_with_its_first_job_at_the_head(self, store: Store) -> None:
        wide = a_spec(3, tenant="b", precedence=5, cpu_milli=1_500, memory_mib=7)
        large = a_spec(2, tenant="a", precedence=1, cpu_milli=1_999)
        _, _, late, first = store.submit([a_spec(tenant="b"), a_spec(tenant="a"), wide, large])

        assert [
            LaneHead("batch", Lane.of(large), first, 1, (3_998, 0, 0, 0), 2),
            LaneHead("batch", Lane.of(wide), late, 5, (4_500, 21, 0, 0), 3),
        ] == store.lanes("batch")

    def test_jobs_with_the_same_constraints_are_in_one_lane(self, store: Store) -> None:
        group, other = a_group(constraints=(ZONE_B, SSD)), a_group(constraints=(SSD,))
        both = [a_spec(groups=[group, other]), a_spec(groups=[other, group])]
        store.submit([a_spec(), *both])
        heads = store.lanes("batch")

        assert [Lane.of(a_spec()), Lane.of(both[0])] == [head.lane for head in heads]
        assert [False, True] == [head.lane.has_constraints for head in heads]

    def test_jobs_of_other_shapes_are_in_other_lanes(self, store: Store) -> None:
        gang = a_spec(8, minimum=8)
        specs = [a_spec(), a_spec(cpu_milli=4_000), gang, a_spec(gpus=1), a_spec(memory_mib=2**20)]
        jobs = store.submit([spec for spec in specs for _ in range(2)])
        heads = store.lanes("batch")

        assert sorted(Lane.of(spec) for spec in specs) == [head.lane for head in heads]
        assert set(jobs[::2]) == {head.job for head in heads}
        assert jobs[4:6] == lease_from(store, {Lane.of(gang): 9})

    def test_a_head_counts_the_tasks_that_have_no_place(self, store: Store) -> None:
        (machine, *_) = add_a_cell(store)
        store.submit([a_spec(4)])
        (job,) = lease_all(store)
        grant(store, job, [0], [machine])
        store.hand_back([HandBack(job.id, job.token, 0, progressed=True)])
        (head,) = store.lanes("batch")

        assert ((3_000, 0, 0, 0), 3) == (head.demand, head.tasks)

    def test_the_lanes_of_other_kinds_are_read_if_their_order_is_fair(self, store: Store) -> None:
        for kind in ("service", "batch", "elastic"):
            store.submit([a_spec(scheduler=kind)])
        store.agree_on_order("batch", "0", QueueOrder.FIFO, lease_ms=LONG_MS)
        store.agree_on_order("elastic", "0", QueueOrder.DRF, lease_ms=OVER_AT_ONCE_MS)
        store.agree_on_order("service", "0", QueueOrder.CHOOSY, lease_ms=LONG_MS)

        assert ["elastic", "service"] == [head.scheduler for head in store.lanes("elastic")]
        assert ["service"] == [head.scheduler for head in store.lanes("service")]

    @pytest.mark.parametrize("order", [it for it in QueueOrder if not it.is_fair])
    def test_the_lanes_of_other_kinds_are_not_read_in_other_orders(
        self, store: Store, order: QueueOrder
    ) -> None:
        store.submit([a_spec(tenant="ann"), a_spec(tenant="bob", scheduler="service")])

        store.agree_on_order("service", "0", order, lease_ms=LONG_MS)

        assert ["batch"] == [head.scheduler for head in store.lanes("batch")]

    def test_a_job_that_may_not_be_leased_yet_is_no_head(self, store: Store) -> None:
        delayed, there = store.submit([a_spec(tenant="a"), a_spec(tenant="a")])
        jobs = {job.id: job for job in lease_all(store)}
        backs = [HandBack(delayed, jobs[delayed].token, LONG_MS, progressed=False)]
        backs += [HandBack(there, jobs[there].token, 0, progressed=False)]
        store.hand_back(backs)

        assert [there] == [head.job for head in store.lanes("batch")]

    def test_a_lease_takes_so_many_of_each_lane(self, store: Store) -> None:
        a = store.submit([a_spec(tenant="a") for _ in range(5)])
        b = store.submit([a_spec(tenant="b") for _ in range(2)])
        store.submit([a_spec(tenant="c")])

        assert [*a[:3], *b] == lease_from(
            store, {lane_of("a"): 3, lane_of("b"): 4, lane_of("d"): 1}
        )
        assert a[3:4] == lease_from(store, {lane_of("a"): 3}, jobs_max=1)
        assert [] == lease_from(store, {})

    def test_a_lane_is_leased_by_precedence_then_age(self, store: Store) -> None:
        _, late, first = store.submit([a_spec(), a_spec(precedence=1), a_spec(precedence=2)])

        assert [late, first] == lease_from(store, {lane_of("default"): 2})

    def test_parked_jobs_of_each_lane_are_read(self, store: Store) -> None:
        """Of two lanes each has a half; all jobs of a third are held, so it does not count."""
        a = store.submit([a_spec(tenant="a", precedence=9) for _ in range(6)])
        b = store.submit([a_spec(tenant="b") for _ in range(3)])
        held = store.submit([a_spec(tenant="c")])
        jobs = lease_all(store)
        store.park([Parking(job.id, job.token, ParkReason.NO_ROOM, "") for job in jobs])
        store.release(held[0])
        store.hold(held[0])

        def parked(jobs_max: int, *, by_lane: bool) -> list[int]:
            jobs = store.parked("batch", jobs_max=jobs_max, by_lane=by_lane)
            return [job.id for job in jobs]

        assert a[:6] == parked(6, by_lane=False)
        assert [*a[:3], *b[:3]] == parked(6, by_lane=True)
        assert [*a, *b] == parked(100, by_lane=True)

    def test_a_number_of_jobs_is_not_negative(self, store: Store) -> None:
        store.submit([a_spec()])
        with pytest.raises(BadInput):
            lease_from(store, {lane_of("default"): -1})


class TenantContract(Contract):
    """What tenants use, and the weights and parents that the owner sets."""

    def test_use_is_what_tasks_hold(self, store: Store) -> None:
        one, two, _ = add_a_cell(store, gpus=2)
        store.submit([a_spec(2, tenant="a"), a_spec(1, tenant="b", memory_mib=5)])
        a, b = lease_all(store)
        grant(store, a, [0, 1], [one, two])
        grant(store, b, [0], [two], cpu_milli=1_000, memory_mib=5, gpu_1=300)
        first = used(store)
        end(store, a, 0)

        assert {"a": (2_000, 0, 0, 0), "b": (1_000, 5, 0, 300)} == first
        assert used(store) == store.sum_use()
        assert (1_000, 0, 0, 0) == used(store)["a"]
        assert {"a", "b"} == set(used(store))

    def test_a_sum_may_be_as_old_as_is_said(self, store: Store) -> None:
        machine, *_ = add_a_cell(store)
        before = used(store)
        store.submit([a_spec()])
        (job,) = lease_all(store)
        grant(store, job, [0], [machine])

        assert before == dict(store.tenant_use(age_ms_max=LONG_MS).used)
        assert {"default": (1_000, 0, 0, 0)} == used(store)

    @pytest.mark.parametrize("age_ms", [-1, LIMITS.window_ms_max + 1])
    def test_the_age_of_a_sum_is_bounded(self, store: Store, age_ms: int) -> None:
        with pytest.raises(BadInput, match=f"bad length of time: {age_ms} ms"):
            store.tenant_use(age_ms_max=age_ms)

        assert {} == dict(store.tenant_use(age_ms_max=LIMITS.window_ms_max).used)

    def test_unfinished_tasks_are_those_that_run_and_those_that_wait(self, store: Store) -> None:
        machine, *_ = add_a_cell(store)
        group = a_group(4, constraints=(SSD,), duration_ms=5)
        jobs = [a_spec(3, tenant="b"), a_spec(groups=[group], tenant="a"), a_spec(2, tenant="b")]
        store.submit([*jobs, a_spec(tenant="over")])
        _, first, _, over = lease_all(store)
        grant(store, first, [0, 1], [machine, machine])
        grant(store, over, [0], [machine])
        end(store, first, 1)
        end(store, over, 0)
        plain = a_group(constraints=())

        assert [
            UnfinishedTasks("b", plain, 0, 5),
            UnfinishedTasks("a", replace(plain, constraints=(SSD,)), 1, 2),
        ] == store.unfinished_tasks()

    def test_tenants_are_set_changed_and_removed(self, store: Store) -> None:
        store.set_tenant(Tenant("org", 2))
        store.set_tenant(Tenant("b", 1, "org"))
        store.set_tenant(Tenant("a", 3, "org"))
        store.set_tenant(Tenant("a", 4, "b"))
        all_of_them = [Tenant("a", 4, "b"), Tenant("b", 1, "org"), Tenant("org", 2)]

        assert all_of_them == store.tenants()
        assert all_of_them == list(store.tenant_use(age_ms_max=0).tenants)
        assert store.remove_tenant("a")
        assert not store.remove_tenant("a")
        assert ["b", "org"] == [tenant.name for tenant in store.tenants()]

    @pytest.mark.parametrize(
        "tenant",
        [
            Tenant("c", 0),
            Tenant("c", LIMITS.tenant_weight_max + 1),
            Tenant("c", 1, "stranger"),
            Tenant("c", 1, "c"),
            Tenant("org", 1, "a"),
        ],
        ids=str,
    )
    def test_tenants_make_a_tree_with_weights(self, store: Store, tenant: Tenant) -> None:
        store.set_tenant(Tenant("org"))
        store.set_tenant(Tenant("a", 1, "org"))
        with pytest.raises(BadInput):
            store.set_tenant(tenant)
        assert ["a", "org"] == [each.name for each in store.tenants()]

    def test_the_tree_has_a_limited_depth(self, store: Store) -> None:
        store.set_tenant(Tenant("0"))
        for level in range(1, LIMITS.tenant_depth_max):
            store.set_tenant(Tenant(str(level), 1, str(level - 1)))
        store.set_tenant(Tenant("above"))
        with pytest.raises(BadInput):
            store.set_tenant(Tenant("below", 1, str(LIMITS.tenant_depth_max - 1)))
        with pytest.raises(BadInput):
            store.set_tenant(Tenant("0", 1, "above"))

    def test_a_parent_is_not_removed(self, store: Store) -> None:
        store.set_tenant(Tenant("org"))
        store.set_tenant(Tenant("a", 1, "org"))
        with pytest.raises(BadInput):
            store.remove_tenant("org")


class ReclaimContract(Contract):
    """One process reclaims for tenants at a time."""

    def test_one_holder_at_a_time_has_the_lease_and_may_renew_it(self, store: Store) -> None:
        one, other = UUID(int=1), UUID(int=2)

        assert store.lease_reclaim("batch", "0", holder=one, lease_ms=LONG_MS)
        assert not store.lease_reclaim("batch", "1", holder=other, lease_ms=LONG_MS)
        assert not store.lease_reclaim("service", "0", holder=other, lease_ms=LONG_MS)
        assert store.lease_reclaim("batch", "0", holder=one, lease_ms=OVER_AT_ONCE_MS)
        assert store.lease_reclaim("service", "0", holder=other, lease_ms=LONG_MS)
        assert not store.lease_reclaim("batch", "0", holder=one, lease_ms=LONG_MS)


class OrderContract(Contract):
    """Replicas of a kind agree on one order."""

    def test_replicas_of_one_order_agree(self, store: Store) -> None:
        assert agree(store, "0", QueueOrder.DRF) is None
        assert agree(store, "1", QueueOrder.DRF) is None
        assert agree(store, "0", QueueOrder.DRF) is None
        assert {"batch": QueueOrder.DRF} == store.queue_orders()

    def test_another_order_is_refused_while_one_is_held(self, store: Store) -> None:
        agree(store, "0", QueueOrder.DRF)
        agree(store, "1", QueueOrder.DRF, OVER_AT_ONCE_MS)

        assert AnotherOrder(QueueOrder.DRF, "batch/1") == agree(store, "2", QueueOrder.FIFO)
        assert store.agree_on_order("service", "2", QueueOrder.FIFO, lease_ms=LONG_MS) is None

    def test_an_order_ends_with_its_lease(self, store: Store) -> None:
        agree(store, "0", QueueOrder.DRF, OVER_AT_ONCE_MS)

        assert {} == store.queue_orders()
        assert agree(store, "1", QueueOrder.CHOOSY) is None
        assert AnotherOrder(QueueOrder.CHOOSY, "batch/1") == agree(store, "0", QueueOrder.DRF)
