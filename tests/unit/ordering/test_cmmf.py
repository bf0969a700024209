"""Fair shares by linear programs: the numbers of the papers, and what other rules give."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from omega.model.arrays import Score, integers
from omega.ordering.cmmf import LaneDemands, fair_shares, pooled
from omega.ordering.fair import Lanes, dominant_shares, fair_order
from omega.ordering.tenants import Tenant, TenantTree
from tests.fixtures.fair_problems import Problem, SlowTwin, pool, units

PAPER = pool([9, 18], [[1, 4], [3, 1]])
"""Nine cores and 18 GB; the example of DRF."""


def machines_of(problem: Problem) -> Score:
    """Return the fair shares as amounts of the one resource, of all machines."""
    return problem.solved().share * float(problem.capacity.sum())


def test_dominant_resource_fairness_of_the_paper() -> None:
    found = PAPER.solved()

    assert [3.0, 2.0] == pytest.approx(found.tasks[:, 0])
    assert [2 / 3, 2 / 3] == pytest.approx(found.share)


def asset_fair(problem: Problem) -> Score:
    """Return tasks if each user's shares of all resources have the same sum."""
    tasks = 1 / (problem.demand / problem.capacity[0]).sum(axis=1)
    return np.asarray(tasks / (tasks @ problem.demand / problem.capacity[0]).max())


def competitive(problem: Problem) -> Score:
    """Return tasks of the competitive equilibrium: their product is the largest."""
    found = minimize(
        lambda tasks: -np.log(tasks).sum(),
        x0=asset_fair(problem) / 2,
        constraints={
            "type": "ineq",
            "fun": lambda tasks: 1 - tasks @ problem.demand / problem.capacity[0],
        },
        bounds=[(1e-6, None)] * problem.users,
        options={"ftol": 1e-12},
    )
    assert found.success
    return np.asarray(found.x)


def test_asset_fairness_and_the_competitive_equilibrium_give_others() -> None:
    assert [2.52, 2.16] == pytest.approx(asset_fair(PAPER))
    assert [45 / 11, 18 / 11] == pytest.approx(competitive(PAPER), rel=1e-4)


def test_asset_fairness_gives_less_than_a_cell_of_ones_own() -> None:
    """Half of the cell has room for 15 tasks of the second user, who gets 12."""
    problem = pool([30, 30], [[1, 3], [1, 1]])

    assert 12 == pytest.approx(asset_fair(problem)[1])
    assert problem.solved().tasks[1, 0] >= 15 - 1e-6


def test_a_lie_pays_in_a_competitive_equilibrium() -> None:
    """The second user says that his tasks need more memory; so he has more of them than before."""
    lie = PAPER.with_row("demand", 1, [3, 2])

    assert competitive(lie)[1] > competitive(PAPER)[1] + 0.1
    assert lie.solved().tasks[1, 0] <= PAPER.solved().tasks[1, 0]


@pytest.mark.parametrize(
    ("problem", "machines"),
    [
        (units([[1, 1, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0], [1] * 6]), [1, 1, 4]),
        (units([[1, 0, 0], [1, 0, 0], [1, 1, 1]]), [0.5, 0.5, 2]),
    ],
)
def test_constrained_fairness_of_the_reference(problem: Problem, machines: Sequence[float]) -> None:
    assert machines == pytest.approx(machines_of(problem))
    assert machines == pytest.approx(SlowTwin(problem).shares() * problem.capacity.sum())


def test_twice_the_weight_is_twice_the_share_while_demand_lasts() -> None:
    everywhere = [[1] * 6] * 2

    assert [4, 2] == pytest.approx(machines_of(units(everywhere, weight=[2, 1])))
    short = units(everywhere, weight=[2, 1], tasks=[3, np.inf])
    assert [3, 3] == pytest.approx(machines_of(short))


def test_small_weights_beside_large_ones_are_not_lost_in_errors() -> None:
    """Who needs a ten-thousandth of what the others need of the scarce resource, too."""
    problem = pool([10**9, 10**8], [[1, 1], [10**5, 1], [1, 10**4]], weight=[10_000, 1, 10_000])
    share = problem.solved().share

    assert share / problem.weight == pytest.approx([share[0] / 10_000] * 3, rel=1e-6)


def shapley(problem: Problem) -> Score:
    """Return what each user has if all who may use a machine have equal parts of it."""
    parts = problem.may_use / problem.may_use.sum(axis=0)
    return np.asarray((parts * problem.capacity[:, 0]).sum(axis=1))


def test_shapleys_split_of_each_machine_takes_away_what_a_user_has_brought() -> None:
    """Who can use machine 1 only, and brings it, keeps half of it; in fairness, all."""
    problem = units([[1, 0], [1, 1]])

    assert [0.5, 1.5] == shapley(problem).tolist()
    assert [1, 1] == pytest.approx(machines_of(problem))


def test_who_can_use_no_machine_or_wants_nothing_keeps_nobody_from_more() -> None:
    assert [0, 2] == pytest.approx(machines_of(units([[0, 0], [1, 1]])))
    assert [0, 2] == pytest.approx(machines_of(units([[1, 1], [1, 1]], tasks=[0, np.inf])))
    assert [0] == machines_of(units([[0, 0]])).tolist()


def test_a_machine_without_a_resource_takes_no_task_that_needs_it() -> None:
    """One machine has GPUs; the other's cores are of no use to who needs both."""
    problem = Problem(
        demand=integers([[1, 1, 0], [1, 0, 0]]),
        capacity=integers([[4, 4, 0], [4, 0, 0]]),
        may_use=np.ones((2, 2), dtype=np.bool_),
        weight=integers([1, 1]),
        tasks=np.array([np.inf, np.inf]),
    )
    found = problem.solved()

    assert 0 == found.tasks[0, 1]
    assert [2 / 3, 2 / 3] == pytest.approx(found.share)


def test_what_nobody_has_is_asked_for_in_vain() -> None:
    problem = Problem(
        demand=integers([[1, 1], [0, 0]]),
        capacity=integers([[4, 0]]),
        may_use=np.ones((2, 1), dtype=np.bool_),
        weight=integers([1, 1]),
        tasks=np.array([np.inf, np.inf]),
    )

    assert [0, 0] == problem.solved().share.tolist()


def test_children_share_what_their_parent_has() -> None:
    """Half for the organisation; three quarters of that for team b, which wants no more than 20."""
    tree = TenantTree([Tenant("org"), Tenant("a", 1, "org"), Tenant("b", 3, "org")])
    lanes = LaneDemands(
        tenant=np.array([0, 1, 2]),
        demand=integers([[1], [1], [1]]),
        tasks=np.array([np.inf, np.inf, 20.0]),
        may_use=np.ones((3, 1), dtype=np.bool_),
    )
    found = fair_shares(lanes, integers([[80]]), tree.nodes(["alone", "a", "b"]))

    assert [40, 20, 20] == pytest.approx(found.share * 80)


def test_a_tenant_is_judged_by_all_its_lanes() -> None:
    """One lane can use the first machine only; the other makes up for it on the second."""
    lanes = LaneDemands(
        tenant=np.array([0, 0, 1]),
        demand=integers([[1], [1], [1]]),
        tasks=np.array([np.inf] * 3),
        may_use=np.array([[1, 0], [0, 1], [1, 0]], dtype=np.bool_),
    )
    found = fair_shares(lanes, integers([[10], [10]]), TenantTree().nodes(["a", "b"]))

    assert [10, 10] == pytest.approx(found.share * 20)
    assert [[0, 0], [0, 10], [10, 0]] == pytest.approx(found.tasks, abs=1e-6)


MIXED = LaneDemands(
    tenant=np.array([0, 0, 1]),
    demand=integers([[4, 1], [1, 4], [1, 1]]),
    tasks=np.array([30.0, 20.0, np.inf]),
    may_use=np.ones((3, 1), dtype=np.bool_),
)
"""Tenant a has jobs of two shapes, which need 140 of the first resource, and 110 of the other."""


def test_nobody_alone_has_more_than_the_cell() -> None:
    """Its jobs need different resources most; both are used up."""
    alone = replace(MIXED, tasks=np.array([30.0, 20.0, 0.0]))
    found = fair_shares(alone, integers([[100, 100]]), TenantTree().nodes(["a", "b"]))

    assert [1, 0] == pytest.approx(found.share)


def test_jobs_of_different_shapes_count_by_what_they_need_most_together() -> None:
    """Of the first resource each has half; a's other jobs fill what b leaves of the second."""
    found = fair_shares(MIXED, integers([[100, 100]]), TenantTree().nodes(["a", "b"]))
    used = found.tasks[:, 0][:, np.newaxis] * MIXED.demand

    assert [0.5, 0.5] == pytest.approx(found.share)
    assert 50 == pytest.approx(used[:2].sum(axis=0)[0])
    assert (used.sum(axis=0) <= 100 + 1e-6).all()


def test_the_share_of_a_parent_is_of_what_its_children_need_together() -> None:
    """One child needs the first resource, the other the second: together half of each."""
    tree = TenantTree([Tenant("org"), Tenant("a", 1, "org"), Tenant("b", 1, "org")])
    lanes = LaneDemands(
        tenant=np.array([0, 1, 2]),
        demand=integers([[1, 1], [1, 0], [0, 1]]),
        tasks=np.array([np.inf] * 3),
        may_use=np.ones((3, 1), dtype=np.bool_),
    )
    found = fair_shares(lanes, integers([[100, 100]]), tree.nodes(["alone", "a", "b"]))

    assert [0.5, 0.5, 0.5] == pytest.approx(found.share)


def test_equal_machines_that_the_same_lanes_may_use_are_one() -> None:
    capacity = integers([[4, 1], [4, 1], [4, 2], [4, 1]])
    may_use = np.array([[1, 1, 1, 0], [0, 0, 1, 1]], dtype=np.bool_)
    summed, may = pooled(capacity, may_use)

    assert [[4, 1], [8, 2], [4, 2]] == summed.tolist()
    assert [[False, True, True], [True, False, True]] == may.tolist()


def test_small_tasks_in_fair_order_come_to_the_fair_shares() -> None:
    """Served one by one while they fit, with weights 2 and 1."""
    nodes = TenantTree([Tenant("a", 2)]).nodes(["a", "b"])
    demand, capacity = integers([[1, 4], [3, 1]]), integers([9_000, 18_000])
    queue = Lanes(np.arange(2), integers([9_999] * 2), demand, integers([0, 0]), integers([0, 1]))
    order = fair_order(queue, nodes, np.zeros((2, 2), np.int64), capacity, 9_999).lane
    used = demand[order].cumsum(axis=0)
    served = order[(used <= capacity).all(axis=1)]
    tasks = np.bincount(served)
    weighted = pool(capacity.tolist(), demand.tolist(), weight=[2, 1])

    shares = dominant_shares(tasks[:, np.newaxis] * demand, capacity)
    assert shares == pytest.approx(weighted.solved().share, abs=4 / 9_000)
