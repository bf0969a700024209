"""What Choosy and DRF prove of fair shares, on random cells; and two other ways to find them."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from omega.model.arrays import Score, integers
from omega.ordering.cmmf import LaneDemands, fair_shares, pooled
from omega.ordering.tenants import Tenant, TenantTree
from tests.fixtures.doses import examples
from tests.fixtures.fair_problems import CLOSE, Problem, SlowTwin, filled, problems

CHOOSY = problems()
DRF = problems(resources=2, machines=1, constrained=False)
BOTH = problems(resources=2)
ANY = st.one_of(CHOOSY, DRF, BOTH)
PROVEN = st.one_of(CHOOSY, DRF)
MASKS = st.lists(st.booleans(), min_size=3, max_size=3)


def useful(problem: Problem, tasks: Score, user: int) -> float:
    """Return how many tasks a user runs with what some tasks (users', machines) are given.

    `tasks` (machines,) are of the user's own kind. What is on machines that he cannot use is of no
    use to him, nor is more than he wants.
    """
    return min(float(tasks[problem.may_use[user]].sum()), float(problem.tasks[user]))


def own_tasks(problem: Problem, given_to: Problem, tasks: Score, user: int, other: int) -> Score:
    """Return how many tasks a user could run with what another is given: (machines,)."""
    bundle = tasks[other][:, np.newaxis] * given_to.demand[other]
    needs = problem.demand[user]
    return np.asarray((bundle[:, needs > 0] / needs[needs > 0]).min(axis=1))


@given(ANY)
@examples(300)
def test_shares_are_those_of_the_published_scheme(problem: Problem) -> None:
    assert SlowTwin(problem).shares() == pytest.approx(problem.solved().share, abs=CLOSE)


@given(ANY)
@examples(300)
def test_tasks_fit_and_are_what_the_shares_say(problem: Problem) -> None:
    found = problem.solved()

    used = np.einsum("uj,ur->jr", found.tasks, problem.demand)
    assert (used <= problem.capacity + CLOSE).all()
    assert (found.tasks[~problem.may_use] == 0).all()
    assert (found.tasks.sum(axis=1) <= problem.tasks + CLOSE).all()
    assert found.share == pytest.approx(found.tasks.sum(axis=1) * problem.unit, abs=CLOSE)


@given(ANY)
@examples(400)
def test_nobody_could_have_more_without_taking_it_from_another(problem: Problem) -> None:
    """Pareto efficiency."""
    share = problem.solved().share

    most = SlowTwin(problem).most(np.ones(problem.users), share - CLOSE / 100)
    assert share.sum() >= most - CLOSE


@given(CHOOSY, st.data())
@examples(400)
def test_who_brings_machines_that_he_can_use_has_at_least_as_much(
    problem: Problem, data: st.DataObject
) -> None:
    """The constrained sharing incentive: weights are what users have brought.

    Users who have brought nothing are left out.
    """
    brought = np.zeros(problem.users, dtype=np.int64)
    for machine, amount in enumerate(problem.capacity[:, 0].tolist()):
        owners = np.flatnonzero(problem.may_use[:, machine])
        if len(owners):
            brought[data.draw(st.sampled_from(owners.tolist()))] += amount
    who = brought > 0
    assume(who.any())
    tasks = problem.tasks[who]
    weighted = Problem(
        problem.demand[who], problem.capacity, problem.may_use[who], brought[who], tasks
    )
    has = weighted.solved().tasks.sum(axis=1)

    assert (has >= np.minimum(brought[who], tasks) - CLOSE).all()


@given(DRF)
@examples(400)
def test_nobody_has_less_than_in_a_part_of_the_cell_by_weight(problem: Problem) -> None:
    """The sharing incentive of DRF."""
    part = problem.weight / problem.weight.sum()
    alone = (problem.capacity[0] / np.maximum(problem.demand, 1e-9)).min(axis=1) * part
    has = problem.solved().tasks[:, 0]

    assert (has >= np.minimum(alone, problem.tasks) - CLOSE).all()


@given(PROVEN)
@examples(400)
def test_nobody_would_rather_have_what_another_has(problem: Problem) -> None:
    """Envy-freeness, weights considered."""
    tasks = problem.solved().tasks
    for user in range(problem.users):
        has = useful(problem, tasks[user], user)
        for other in range(problem.users):
            scaled = tasks * problem.weight[user] / problem.weight[other]
            theirs = own_tasks(problem, problem, scaled, user, other)

            assert useful(problem, theirs, user) <= has + CLOSE


@given(PROVEN, st.data())
@examples(800)
def test_a_lie_never_pays(problem: Problem, data: st.DataObject) -> None:
    """Strategy-proofness: about what a task needs, how many there are, where they may run."""
    user = data.draw(st.integers(0, problem.users - 1))
    machines, resources = problem.capacity.shape
    lies = {
        "may_use": MASKS.map(lambda mask: mask[:machines]),
        "tasks": st.integers(0, 9),
        "demand": st.lists(st.integers(0, 4), min_size=resources, max_size=resources).filter(any),
    }
    field = data.draw(st.sampled_from(sorted(lies)))
    lie = problem.with_row(field, user, data.draw(lies[field]))
    truth = useful(problem, problem.solved().tasks[user], user)
    lied = own_tasks(problem, lie, lie.solved().tasks, user, user)

    assert useful(problem, lied, user) <= truth + CLOSE


@given(PROVEN, st.data())
@examples(400)
def test_more_weight_is_never_less(problem: Problem, data: st.DataObject) -> None:
    user = data.draw(st.integers(0, problem.users - 1))
    heavier = problem.with_row("weight", user, problem.weight[user] + data.draw(st.integers(1, 3)))

    assert heavier.solved().share[user] >= problem.solved().share[user] - CLOSE


@given(problems(machines=1, constrained=False))
@examples(300)
def test_one_resource_for_all_is_divided_as_water(problem: Problem) -> None:
    amount = int(problem.capacity[0, 0])
    limits = [Fraction(min(int(min(each, 99)), amount)) for each in problem.tasks]
    level = min(Fraction(amount), sum(limits, Fraction(0)))

    expected = [float(each / amount) for each in filled(level, problem.weight.tolist(), limits)]
    assert expected == pytest.approx(problem.solved().share, abs=CLOSE)


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 9)), min_size=1, max_size=6), st.data())
@examples(300)
def test_in_a_tree_each_level_is_divided_as_water(
    leaves: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Organisations first, each with the sum of what its teams want; then the teams of each."""
    orgs = {name: data.draw(st.integers(1, 3)) for name in ("x", "y")}
    parents = [data.draw(st.sampled_from(sorted(orgs))) for _ in leaves]
    teams = [Tenant(str(at), w, parents[at]) for at, (w, _) in enumerate(leaves)]
    tree = TenantTree([*(Tenant(name, weight) for name, weight in orgs.items()), *teams])
    lanes = LaneDemands(
        tenant=np.arange(len(leaves)),
        demand=integers([[1]] * len(leaves)),
        tasks=np.array([tasks for _, tasks in leaves], dtype=np.float64),
        may_use=np.ones((len(leaves), 1), dtype=np.bool_),
    )
    found = fair_shares(lanes, integers([[10]]), tree.nodes([team.name for team in teams]))

    of = {org: [at for at, parent in enumerate(parents) if parent == org] for org in orgs}
    wanted = [Fraction(sum(leaves[at][1] for at in of[org])) for org in orgs]
    totals = filled(min(Fraction(10), sum(wanted, Fraction(0))), list(orgs.values()), wanted)
    for total, mine in zip(totals, of.values(), strict=True):
        limits = [Fraction(leaves[at][1]) for at in mine]
        shares = filled(total, [leaves[at][0] for at in mine], limits) if mine else []
        assert [float(each) for each in shares] == pytest.approx(found.share[mine] * 10, abs=CLOSE)


@given(BOTH)
@examples(200)
def test_machines_that_are_added_up_give_the_same_shares(problem: Problem) -> None:
    """Each machine three times, added up or not."""
    thrice = np.repeat(problem.capacity, 3, axis=0), np.repeat(problem.may_use, 3, axis=1)
    summed = pooled(*thrice)
    shares = [
        Problem(problem.demand, capacity, may_use, problem.weight, problem.tasks).solved().share
        for capacity, may_use in (thrice, summed)
    ]

    assert len(summed[0]) <= len(problem.capacity)
    assert shares[0] == pytest.approx(shares[1], abs=CLOSE)
