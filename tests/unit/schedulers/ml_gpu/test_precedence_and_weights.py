"""Precedence and weights in rounds: who shares GPUs before whom, and in which proportion."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omega.model.arrays import integers
from omega.ordering.tenants import Tenant
from omega.testing.builders import a_job
from schedulers.ml_gpu.policies.named import POLICIES, find_policy
from schedulers.ml_gpu.precedence import outranks_promised, share_by_precedence
from schedulers.ml_gpu.problem import NOWHERE, Problem, Shares
from schedulers.ml_gpu.weights import job_weights, tenant_fractions
from tests.fixtures.doses import examples
from tests.unit.schedulers.ml_gpu.rounds_at_work import RunningSchedulers, machines, training

K80 = "k80"
LIVE = sorted(
    name
    for name, policy in POLICIES.items()
    if not (
        policy.shares_gpus or policy.asks_prices or policy.keeps_deadlines or policy.takes_no_gangs
    )
)
"""Policies that live rounds have."""


def a_problem(
    table: list[list[float]], *, gpus: list[int], gang: list[int] | None = None
) -> Problem:
    """Return jobs with these rates: (jobs, types)."""
    jobs = len(table)
    return Problem(
        types=tuple("abc"[: len(gpus)]),
        gpus=integers(gpus),
        table=np.array(table),
        gang=integers(gang or [1] * jobs),
        kind=np.arange(jobs),
        weight=np.ones(jobs),
        total_steps=np.full(jobs, 1e6),
        remaining_steps=np.full(jobs, 1e5),
        age_s=np.full(jobs, 100.0),
        entity=np.arange(jobs) % 2,
        entity_weight=np.ones(2) / 2,
        entity_is_fifo=np.zeros(2, np.bool_),
        runs_on=np.full(jobs, NOWHERE),
    )


def shares(problem: Problem, precedence: list[int], policy: str = LIVE[0]) -> Shares:
    rng = np.random.default_rng(1)
    return share_by_precedence(problem, integers(precedence), find_policy(policy).solve, rng)


@pytest.mark.parametrize("policy", [name for name in LIVE if name != "fifo"])
def test_jobs_of_a_higher_precedence_share_as_if_they_were_alone(policy: str) -> None:
    """Those below run fastest on another type, which agnostic policies must not take for all."""
    above, below = [[1.0, 4.0], [1.0, 1.0], [1.0, 1.0]], [[9.0, 1.0]] * 5
    problem = a_problem([*above, *below], gpus=[1, 1])
    alone = shares(a_problem(above, gpus=[1, 1]), [0] * 3, policy)

    assert alone == pytest.approx(shares(problem, [7] * 3 + [0] * 5, policy)[:3])


def test_those_below_share_what_is_left() -> None:
    problem = a_problem([[1.0]] * 5, gpus=[3])
    precedence = [0, 10, 0, 10, -5]

    found = shares(problem, precedence, "max_min_fairness_perf")[:, 0]

    assert [0.5, 1.0, 0.5, 1.0, 0.0] == pytest.approx(found.tolist())


def test_a_job_that_runs_where_others_are_to_run_may_lose_its_place() -> None:
    """`fifo` moves nobody, but for a job of a higher precedence."""
    problem = a_problem([[1.0], [1.0]], gpus=[1])
    problem = problem.only(np.arange(2), problem.gpus, runs_on=np.array([0, NOWHERE]))

    assert [[1.0], [0.0]] == shares(problem, [0, 0], "fifo").tolist()
    assert [[0.0], [1.0]] == shares(problem, [0, 1], "fifo").tolist()


def test_a_gang_does_not_stay_on_gpus_of_which_too_few_are_left() -> None:
    problem = a_problem([[1.0], [1.0]], gpus=[3], gang=[2, 2])
    problem = problem.only(np.arange(2), problem.gpus, runs_on=np.array([0, NOWHERE]))

    assert [[0.0], [1.0]] == shares(problem, [0, 1], "fifo").tolist()


@st.composite
def problems(draw: st.DrawFn) -> tuple[Problem, list[int]]:
    jobs = draw(st.integers(1, 6))
    rates = st.lists(st.sampled_from([0.0, 1.0, 3.0]), min_size=2, max_size=2).filter(any)
    table = [draw(rates) for _ in range(jobs)]
    gang = [draw(st.sampled_from([1, 2])) for _ in range(jobs)]
    gpus = [draw(st.integers(1, 4)) for _ in range(2)]
    precedence = [draw(st.sampled_from([-1, 0, 100])) for _ in range(jobs)]
    return a_problem(table, gpus=gpus, gang=gang), precedence


@pytest.mark.parametrize("policy", LIVE)
@examples(100)
@given(problems())
def test_no_more_is_promised_than_there_is_and_nobody_below_matters(
    policy: str, case: tuple[Problem, list[int]]
) -> None:
    problem, precedence = case
    share = shares(problem, precedence, policy)
    above = np.flatnonzero(np.array(precedence) == max(precedence))
    table, gang = problem.rate[above].tolist(), problem.size[above].tolist()
    nobody_else = a_problem(table, gpus=problem.gpus.tolist(), gang=gang)
    alone = shares(replace(nobody_else, entity=problem.entity[above]), [0] * len(above), policy)

    assert (problem.size @ share <= problem.gpus + 1e-6).all()
    assert (share.sum(axis=1) <= 1 + 1e-6).all()
    assert (share[problem.rate == 0] == 0).all() or find_policy(policy).is_agnostic
    if policy != "fifo":  # which draws at random
        assert share[above] == pytest.approx(alone, abs=1e-6)


def test_a_weight_is_that_of_the_job_times_that_of_its_tenant() -> None:
    specs = (training(weight=3), training(weight=3, tenant="two"), training(tenant="two"))
    jobs = [a_job(spec=spec) for spec in specs]

    assert [3, 6, 2] == job_weights(jobs, [Tenant("two", 2)]).tolist()


def test_tenants_divide_the_part_of_their_parent() -> None:
    tree = [Tenant("org", 3), Tenant("x", 2, "org"), Tenant("y", 1, "org")]

    assert [1 / 2, 1 / 4, 1 / 4] == pytest.approx(tenant_fractions(["x", "y", "z"], tree).tolist())
    assert [3 / 8, 3 / 8, 1 / 4] == pytest.approx(
        tenant_fractions(["org", "y", "z"], tree).tolist()
    )


@pytest.mark.parametrize(
    ("precedence", "is_promised", "can_run", "expected"),
    [
        ([0, 1], [True, False], [True, True], True),
        ([0, 2, 1], [True, True, False], [True, True, True], True),
        ([0, 0], [True, False], [True, True], False),
        ([1, 0], [True, False], [True, True], False),
        ([0, 1], [True, False], [True, False], False),
        ([0, 1], [True, True], [True, True], False),
        ([0, 1], [False, False], [True, True], False),
        ([], [], [], False),
    ],
)
def test_shares_are_anew_for_a_newcomer_above_others(
    precedence: list[int],
    is_promised: list[bool],
    can_run: list[bool],
    expected: bool,  # noqa: FBT001 - one of a case
) -> None:
    masks = (np.array(mask, np.bool_) for mask in (is_promised, can_run))

    assert expected == outranks_promised(integers(precedence), *masks)


def rounds_had(at_work: RunningSchedulers, rounds: int) -> list[int]:
    """Play rounds; return in how many each job ran."""
    had = dict.fromkeys(at_work.jobs, 0)
    for _ in range(rounds):
        at_work.play()
        for job in at_work.running():
            had[job] += 1
    return list(had.values())


def test_a_job_of_a_higher_precedence_trains_from_the_next_round_on() -> None:
    at_work = RunningSchedulers(machines(K80, 1), jobs=[training(1)] * 4, resets_after=1_000)
    at_work.play(3)
    (late,) = at_work.store.submit([training(4, precedence=100)])
    at_work.play()
    runs = at_work.running()
    at_work.play(5)

    assert {late} == set(runs)
    assert {late} == set(at_work.running())


def test_what_a_higher_precedence_leaves_is_for_others_at_once() -> None:
    at_work = RunningSchedulers(
        machines(K80, 1), jobs=[training(3, precedence=1), training(1), training(1)]
    )
    had = rounds_had(at_work, 20)

    assert 20 == had[0]
    assert [10, 10] == pytest.approx(had[1:], abs=2)


@pytest.mark.parametrize("policy", ["max_min_fairness", "max_min_fairness_perf"])
def test_a_weight_of_three_has_three_times_as_many_rounds(policy: str) -> None:
    jobs = [training(4), training(4, weight=3)]
    at_work = RunningSchedulers(machines(K80, 1), jobs=jobs, policy=policy)

    assert [10, 30] == pytest.approx(rounds_had(at_work, 40), abs=2)


def test_a_tenants_weight_counts_for_each_of_its_jobs() -> None:
    jobs = [training(4), training(4, tenant="two")]
    at_work = RunningSchedulers(machines(K80, 1), jobs=jobs)
    at_work.store.set_tenant(Tenant("two", 3))

    assert [10, 30] == pytest.approx(rounds_had(at_work, 40), abs=2)


def test_weights_that_change_while_jobs_train_count_from_the_next_promise_on() -> None:
    jobs = [training(4), training(4, tenant="two")]
    at_work = RunningSchedulers(machines(K80, 1), jobs=jobs, resets_after=5)
    at_work.play(10)
    at_work.store.set_tenant(Tenant("two", 3))
    at_work.play(10)

    assert [10, 30] == pytest.approx(rounds_had(at_work, 40), abs=2)


def test_tenants_share_by_their_tree_however_many_jobs_they_have() -> None:
    jobs = [training(4, tenant="x"), *[training(4, tenant="y")] * 3, training(4, tenant="z")]
    at_work = RunningSchedulers(
        machines(K80, 1), jobs=jobs, policy="hier_max_min_fairness_water_filling_perf"
    )
    for tenant in (Tenant("org", 3), Tenant("x", 2, "org"), Tenant("y", 1, "org")):
        at_work.store.set_tenant(tenant)
    x, *y, z = rounds_had(at_work, 80)

    assert [40, 20, 20] == pytest.approx([x, sum(y), z], abs=3)
