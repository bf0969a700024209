"""Fair order: the tenant with the smallest weighted dominant share goes next."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from omega.model.arrays import Amounts, integers
from omega.model.resources import amounts, machine_capacity
from omega.ordering.fair import Lanes, by_resource, dominant_shares, fair_jobs, fair_order
from omega.ordering.tenants import Tenant, TenantNodes, TenantTree
from omega.testing.builders import a_group, a_job, a_spec

CELL = integers([100])


def lanes(
    tenants: Sequence[int],
    *,
    pending: int = 100,
    demand: Sequence[Sequence[int]] = (),
    precedence: Sequence[int] = (),
    head: Sequence[int] = (),
) -> Lanes:
    """Return a lane for each of these tenants, by default of jobs that ask for one unit."""
    count = len(tenants)
    return Lanes(
        tenant=np.array(tenants, dtype=np.intp),
        pending=np.full(count, pending),
        demand=integers(demand or [[1]] * count),
        precedence=integers(precedence or [0] * count),
        head=integers(head or range(count)),
    )


def flat(count: int) -> TenantNodes:
    return TenantTree().nodes([f"t{at}" for at in range(count)])


def nothing(tenants: int, kinds: int = 1) -> Amounts:
    return np.zeros((tenants, kinds), dtype=np.int64)


def test_the_example_of_the_paper() -> None:
    """Nine cores and 18 GB; A's tasks need (1, 4), B's (3, 1): three of A's fit, and two of B's."""
    both, capacity = lanes([0, 1], demand=[[1, 4], [3, 1]]), integers([9, 18])
    served = fair_order(both, flat(2), nothing(2, 2), capacity, 5)

    assert [3, 2] == served.count.tolist()
    used = served.count[:, np.newaxis] * both.demand
    assert [2 / 3, 2 / 3] == dominant_shares(used, capacity).tolist()


def test_a_tenant_who_has_much_already_waits() -> None:
    use = integers([[50], [0]])
    order = fair_order(lanes([0, 1], pending=2, demand=[[10]] * 2), flat(2), use, CELL, 9)

    assert [1, 1, 0, 0] == order.lane.tolist()
    assert [[50], [0]] == use.tolist()


def test_a_tenant_with_ten_jobs_does_not_wait_for_one_with_a_hundred_thousand() -> None:
    queue = Lanes(
        tenant=np.array([0, 1]),
        pending=integers([100_000, 10]),
        demand=integers([[1], [1]]),
        precedence=integers([0, 0]),
        head=integers([1, 100_001]),
    )
    order = fair_order(queue, flat(2), nothing(2), CELL, 64)

    assert [54, 10] == order.count.tolist()
    assert [0, 1] * 10 == order.lane[:20].tolist()


def test_twice_the_weight_is_twice_the_share_while_demand_lasts() -> None:
    nodes = TenantTree([Tenant("t0", 2)]).nodes(["t0", "t1"])

    assert [40, 20] == fair_order(lanes([0, 1]), nodes, nothing(2), CELL, 60).count.tolist()
    assert [100, 50] == fair_order(lanes([0, 1]), nodes, nothing(2), CELL, 150).count.tolist()
    assert [100, 80] == fair_order(lanes([0, 1]), nodes, nothing(2), CELL, 180).count.tolist()


def test_shares_that_are_equal_as_fractions_are_equal() -> None:
    """1/49 of one thing, weight 1, and 3/49 of another, weight 3: then the names decide."""
    nodes = TenantTree([Tenant("b", 3)]).nodes(["b", "a"])
    use = integers([[0, 3], [1, 0]])
    demand = [[0, 1], [1, 0]]

    order = fair_order(lanes([0, 1], demand=demand), nodes, use, integers([49, 49]), 1)
    assert [1] == order.lane.tolist()


def test_ties_go_by_name_whatever_the_order_of_the_lanes() -> None:
    nodes = TenantTree().nodes(["c", "a", "b"])

    order = fair_order(lanes([0, 1, 2]), nodes, nothing(3), CELL, 6)
    assert [1, 2, 0, 1, 2, 0] == order.lane.tolist()


def test_at_each_level_the_child_with_the_smallest_share_of_its_subtree_goes() -> None:
    """The organisation's two teams share what one tenant beside it gets."""
    tree = TenantTree([Tenant("org"), Tenant("team1", 3, "org"), Tenant("team2", 1, "org")])
    nodes = tree.nodes(["alone", "team1", "team2"])

    order = fair_order(lanes([0, 1, 2]), nodes, nothing(3), CELL, 80)
    assert [40, 30, 10] == order.count.tolist()


def test_what_a_sibling_without_jobs_uses_counts_for_their_parent() -> None:
    tree = TenantTree([Tenant("org"), Tenant("idle", parent="org"), Tenant("team", parent="org")])
    nodes = tree.nodes(["alone", "team", "idle"])
    use = integers([[0], [0], [20]])

    order = fair_order(lanes([0, 1]), nodes, use, CELL, 40)
    assert [30, 10] == order.count.tolist()


def test_the_share_of_a_parent_is_the_largest_of_its_sums_not_the_sum_of_shares() -> None:
    """One team has 30 % of the cores, the other 30 % of the memory: less than 40 % of the cores."""
    tree = TenantTree([Tenant("org"), Tenant("a", parent="org"), Tenant("b", parent="org")])
    nodes = tree.nodes(["alone", "a", "b"])
    use, demand = integers([[40, 0], [30, 0], [0, 30]]), [[1, 0], [1, 0], [0, 1]]

    order = fair_order(lanes([0, 1, 2], demand=demand), nodes, use, integers([100, 100]), 3)
    assert [1, 2, 1] == order.lane.tolist()


def test_own_jobs_of_a_parent_are_served_as_those_of_a_child_of_weight_one() -> None:
    tree = TenantTree([Tenant("org"), Tenant("team", 3, "org")])
    nodes = tree.nodes(["org", "team"])

    order = fair_order(lanes([0, 1]), nodes, nothing(2), CELL, 40)
    assert [10, 30] == order.count.tolist()


def test_within_a_tenant_precedence_goes_before_age() -> None:
    queue = lanes([0, 0, 0, 0], pending=2, precedence=[0, 5, 5, -1], head=[1, 9, 8, 0])

    order = fair_order(queue, flat(1), nothing(1), CELL, 7)
    assert [2, 2, 1, 1, 0, 0, 3] == order.lane.tolist()


def test_lanes_that_are_not_eligible_are_passed_over() -> None:
    """As Choosy passes over who cannot use what is free, however little he has."""
    queue = lanes([0, 0, 1], pending=3)
    use = integers([[0], [50]])
    eligible = np.array([False, True, True])

    order = fair_order(queue, flat(2), use, CELL, 5, eligible=eligible)
    assert [1, 1, 1, 2, 2] == order.lane.tolist()
    none = fair_order(queue, flat(2), use, CELL, 5, eligible=np.zeros(3, dtype=np.bool_))
    assert ([], [0, 0, 0]) == (none.lane.tolist(), none.count.tolist())


def test_room_that_frees_bit_by_bit_comes_to_constrained_fairness() -> None:
    """Choosy: two tenants on the first two of six machines, one on all: shares of 1, 1 and 4."""
    rng = np.random.default_rng(22)
    may_use = np.array([[1, 1, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0], [1] * 6], dtype=np.bool_)
    held_by = np.full((6, 20), 2)
    use = integers([[0], [0], [120]])
    for slot in rng.permutation(120):
        machine, place = divmod(int(slot), 20)
        use[held_by[machine, place]] -= 1
        order = fair_order(
            lanes([0, 1, 2]), flat(3), use, integers([120]), 1, eligible=may_use[:, machine]
        )
        held_by[machine, place] = order.lane[0]
        use[order.lane[0]] += 1

    assert [20, 20, 80] == use[:, 0].tolist()


def test_as_many_jobs_go_as_there_are_and_as_are_wanted() -> None:
    queue = lanes([0, 1], pending=3)

    assert 6 == len(fair_order(queue, flat(2), nothing(2), CELL, 64).lane)
    assert 0 == len(fair_order(queue, flat(2), nothing(2), CELL, 0).lane)
    assert 0 == len(fair_order(lanes([0], pending=0), flat(1), nothing(1), CELL, 9).lane)


def test_a_resource_that_the_cell_lacks_counts_for_nothing() -> None:
    use, capacity = integers([[5, 7], [6, 0]]), integers([10, 0])

    assert [0.5, 0.6] == dominant_shares(use, capacity).tolist()
    queue = lanes([0, 1], demand=[[1, 9], [1, 9]], pending=1)
    assert [0, 1] == fair_order(queue, flat(2), use, capacity, 2).lane.tolist()
    assert [0.0] == dominant_shares(integers([[7]]), integers([0])).tolist()


def test_leased_jobs_are_sorted_in_the_same_order() -> None:
    jobs = [
        a_job(job=2, spec=a_spec(1, tenant="many")),
        a_job(job=1, spec=a_spec(4, tenant="many")),
        a_job(job=3, spec=a_spec(4, tenant="some"), runs_on={0: 1, 1: 1, 2: 1}),
        a_job(job=4, spec=a_spec(1, tenant="some")),
        a_job(job=5, spec=a_spec(1, tenant="some", precedence=7)),
    ]
    nodes = TenantTree().nodes(["many", "some"])
    capacity = by_resource(amounts(cpu_milli=100_000))

    order = fair_jobs(jobs, nodes, nothing(2, 4), capacity)
    assert [1, 5, 3, 4, 2] == [job.id for job in order]
    use = by_resource(np.array([amounts(cpu_milli=1), amounts()]))
    assert [5, 1] == [job.id for job in fair_jobs(jobs, nodes, use, capacity)][:2]
    assert [] == fair_jobs([], nodes, use, capacity)


@pytest.mark.parametrize("slices", [250, 1_000])
def test_gpus_are_one_resource_whichever_slot_they_are(slices: int) -> None:
    group = a_group(2, cpu_milli=1, gpus=1, gpu_slices=slices)
    jobs = [
        a_job(job=1, spec=a_spec(tenant="gpu", groups=[group])),
        a_job(job=2, spec=a_spec(tenant="gpu", groups=[group])),
        a_job(job=3, spec=a_spec(tenant="other", cpu_milli=1)),
        a_job(job=4, spec=a_spec(tenant="other", cpu_milli=1)),
    ]
    capacity = by_resource(machine_capacity(1_000, 1_000, gpus=8))
    nodes = TenantTree().nodes(["gpu", "other"])

    assert 8_000 == capacity[-1]
    assert [1, 3, 4, 2] == [job.id for job in fair_jobs(jobs, nodes, nothing(2, 4), capacity)]


def test_a_job_may_have_groups_of_several_shapes() -> None:
    """Two cores and one: as much as the other tenant's three."""
    groups = [a_group(2, cpu_milli=1_000), a_group(1, cpu_milli=1_000)]
    jobs = [
        a_job(job=1, spec=a_spec(tenant="a", groups=groups)),
        a_job(job=2, spec=a_spec(tenant="a", groups=groups)),
        a_job(job=3, spec=a_spec(3, tenant="b")),
        a_job(job=4, spec=a_spec(3, tenant="b")),
    ]
    nodes = TenantTree().nodes(["a", "b"])
    capacity = by_resource(amounts(cpu_milli=100_000))

    order = fair_jobs(jobs, nodes, nothing(2, 4), capacity)
    assert [1, 3, 2, 4] == [job.id for job in order]


def test_a_thousand_tenants_take_turns() -> None:
    order = fair_order(lanes(range(1_000)), flat(1_000), nothing(1_000), CELL, 2_500)

    assert {3: 500, 2: 500} == Counter(order.count.tolist())
