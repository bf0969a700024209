"""Policies against the same objectives written out over all jobs, and what fairness promises."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omega.model.arrays import Score
from schedulers.ml_gpu.policies.fairness import MaxMin, hierarchical, max_min, water_filling
from schedulers.ml_gpu.policies.finish import finish_time_fairness, makespan
from schedulers.ml_gpu.policies.named import POLICIES
from schedulers.ml_gpu.policies.totals import total, total_per_cost
from schedulers.ml_gpu.problem import Allocation, Problem, measures, normalised
from tests.fixtures.doses import examples
from tests.fixtures.gpu_problems import SlowTwin, filled, permuted, problems

EITHER = st.booleans().flatmap(lambda packed: problems(packed=packed))
CLOSE = 1e-6


def assert_feasible(problem: Problem, found: Allocation) -> None:
    assert (found.share >= 0).all()
    assert (found.share.sum(axis=1) <= 1 + CLOSE).all()
    assert (found.used <= problem.gpus * (1 + CLOSE)).all()


@given(EITHER)
@examples(160)
def test_max_min_is_as_fair_as_can_be(problem: Problem) -> None:
    found = max_min(problem)
    twin = SlowTwin(problem)
    slope = problem.proportional * problem.weight / problem.size
    best = twin.level(slope)

    assert_feasible(problem, found)
    assert best == pytest.approx(measures(problem, found)["level"], rel=CLOSE)
    worth = (twin.rate * (problem.size / problem.proportional)[:, np.newaxis]).sum(axis=0)
    most = twin.most(worth, slope * best * (1 - 1e-9))
    assert most == pytest.approx(
        (problem.size * normalised(problem, found.throughput)).sum(), rel=CLOSE
    )


@given(EITHER, st.data())
@examples(80)
def test_jobs_that_come_and_go_are_served_as_if_it_were_the_first_time(
    problem: Problem, data: st.DataObject
) -> None:
    again = MaxMin()
    for _ in range(4):
        some = data.draw(st.lists(st.integers(0, problem.jobs - 1), min_size=1, max_size=8))
        now = permuted(problem, np.array(some))
        found = again(now)

        assert_feasible(now, found)
        for measure in ("level", "mean"):
            once = measures(now, max_min(now))[measure]
            if measure == "level" or problem.size.max() == 1:
                assert once == pytest.approx(measures(now, found)[measure], rel=CLOSE)


@given(EITHER)
@examples(100)
def test_water_filling_raises_everyone_as_far_as_asking_each_of_them_does(problem: Problem) -> None:
    for policy, by_entity in ((water_filling, False), (hierarchical, True)):
        found = policy(problem)

        assert_feasible(problem, found)
        norm = normalised(problem, found.throughput)
        levels = filled(problem, by_entity=by_entity)
        waits = levels < CLOSE  # behind the first of its entity: gets what is left, if anything
        np.testing.assert_allclose(levels[~waits], norm[~waits], rtol=1e-5)


@given(EITHER)
@examples(120)
def test_nobody_finishes_later_than_must_be(problem: Problem) -> None:
    found = finish_time_fairness(problem)

    def asked(rho: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        left_s = rho * problem.fair_s - problem.age_s
        to_do = problem.remaining_steps
        asked = np.divide(to_do, left_s, out=np.zeros(problem.jobs), where=to_do > 0)
        return np.where((left_s < 0) | ((left_s == 0) & (to_do > 0)), np.inf, asked)

    rho = measures(problem, found)["rho"]

    assert_feasible(problem, found)
    assert SlowTwin(problem).lowest(asked, 0.0, 2 * rho + 1) == pytest.approx(
        rho, rel=CLOSE, abs=1e-12
    )


@given(EITHER)
@examples(120)
def test_the_last_ends_as_early_as_can_be(problem: Problem) -> None:
    found = makespan(problem)
    needs = np.asarray(problem.remaining_steps)

    assert_feasible(problem, found)
    best = 1 / SlowTwin(problem).level(needs) if needs.any() else 0.0

    assert best == pytest.approx(measures(problem, found)["makespan_s"], rel=CLOSE)


@given(EITHER, st.lists(st.sampled_from([0.5, 1.0, 2.0, 8.0, np.inf]), min_size=6, max_size=6))
@examples(120)
def test_totals_are_greatest_and_deadlines_are_kept_if_they_can_be(
    problem: Problem, slack: list[float]
) -> None:
    needed_s = problem.remaining_steps / problem.rate.max(axis=1)
    due_s = np.array([s * t if t else s for s, t in zip(slack, needed_s, strict=False)])
    problem = replace(problem, due_s=due_s)
    asked = np.divide(problem.remaining_steps, due_s, out=np.zeros(len(due_s)), where=due_s > 0)
    asked = np.where(asked <= problem.rate.max(axis=1), asked, 0.0)
    twin = SlowTwin(problem)
    all_kept = not asked.any() or twin.level(asked) >= 1 + 1e-7
    prices = problem.cost_per_hour
    assert prices is not None
    for policy, measure, price in (
        (total, "sum_throughput", np.ones(len(prices))),
        (total_per_cost, "sum_throughput_per_cost", prices),
    ):
        found = policy(problem)

        assert_feasible(problem, found)
        worth = (twin.value / price[np.newaxis, :, np.newaxis]).sum(axis=(0, 1))
        if all_kept:
            assert twin.most(worth, asked) == pytest.approx(
                measures(problem, found)[measure], rel=CLOSE
            )
            assert (found.throughput >= asked * (1 - CLOSE)).all()
        else:
            # Earliest first, as far as all of them can be held; those after that are dropped.
            first = first_that_can_be_held(twin, asked, due_s)
            held = np.zeros(problem.jobs)
            held[first] = asked[first]

            assert twin.most(worth, held * (1 - 1e-9)) >= measures(problem, found)[measure] * (
                1 - CLOSE
            )
            assert (found.throughput >= held * (1 - CLOSE)).all()


def first_that_can_be_held(twin: SlowTwin, asked: Score, due_s: Score) -> list[int]:
    """Return the jobs with the earliest deadlines, as many as can clearly be held together."""
    jobs = [job for job in np.argsort(due_s, kind="stable").tolist() if asked[job]]
    for many in range(len(jobs), 0, -1):
        needs = np.zeros(len(asked))
        needs[jobs[:many]] = asked[jobs[:many]]
        if twin.level(needs) >= 1 + 1e-7:
            return jobs[:many]
    return []


@given(problems())
@examples(100)
def test_sharing_is_never_worse_than_a_part_of_its_own(problem: Problem) -> None:
    problem = replace(problem, weight=np.ones(problem.jobs))
    apart = (problem.size * problem.isolated / problem.proportional).min()

    assert measures(problem, max_min(problem))["level"] >= apart * (1 - CLOSE)
    assert measures(problem, finish_time_fairness(problem))["rho"] <= 1 + CLOSE or (
        problem.age_s.any() or (problem.remaining_steps < problem.total_steps).any()
    )


@given(EITHER)
@examples(60)
def test_after_water_filling_nobody_can_have_more_and_nobody_less(problem: Problem) -> None:
    norm = normalised(problem, water_filling(problem).throughput)
    twin = SlowTwin(problem)
    floor = norm * problem.proportional * (1 - 1e-9)
    worth = (twin.rate / problem.proportional[:, np.newaxis]).sum(axis=0)

    assert twin.most(worth, floor) == pytest.approx(norm.sum(), rel=1e-5)


@given(EITHER, st.data())
@examples(80)
def test_the_order_of_jobs_does_not_matter(problem: Problem, data: st.DataObject) -> None:
    order = np.array(data.draw(st.permutations(range(problem.jobs))))
    other = permuted(problem, order)
    for policy, measure in (
        (max_min, "level"),
        (finish_time_fairness, "rho"),
        (makespan, "makespan_s"),
    ):
        one = measures(problem, policy(problem))[measure]

        assert one == pytest.approx(measures(other, policy(other))[measure], rel=CLOSE)
    norm = normalised(problem, water_filling(problem).throughput)

    np.testing.assert_allclose(
        norm[order], normalised(other, water_filling(other).throughput), rtol=1e-5
    )


@given(problems(packed=True), st.sampled_from(sorted(POLICIES)), st.integers(0, 2**32 - 1))
@examples(400)
def test_every_policy_answers_within_the_cluster(problem: Problem, name: str, seed: int) -> None:
    if name == "allox":
        problem = replace(problem, gang=np.ones_like(problem.gang))
    found = POLICIES[name].solve(problem, np.random.default_rng(seed))

    assert_feasible(problem, found)
    assert POLICIES[name].measure in measures(problem, found)
    if name == "allox":
        assert (found.throughput[found.share.any(axis=1)] > 0).all()
    together = found.together
    if together is not None:
        assert POLICIES[name].shares_gpus
        assert (problem.size[together.first] == problem.size[together.second]).all()
        assert (together.first != together.second).all()
        in_pairs = np.zeros_like(found.share)
        for one in (together.first, together.second):
            np.add.at(in_pairs, (one, together.type), together.share)
        assert (in_pairs <= found.share + CLOSE).all()
