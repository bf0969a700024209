"""Baselines: what others do."""

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given

from omega.errors import BadInput
from omega.model.arrays import integers
from schedulers.ml_gpu.policies.baselines import allox, gandiva, isolated
from schedulers.ml_gpu.problem import Allocation, Problem
from schedulers.ml_gpu.throughputs import PairRates
from tests.fixtures.doses import examples
from tests.fixtures.gpu_problems import problems


def a_problem(
    rates: list[list[float]],
    gpus: list[int],
    *,
    steps: list[float],
    runs_on: list[int] | None = None,
) -> Problem:
    jobs = len(rates)
    return Problem(
        types=tuple("abc"[: len(gpus)]),
        gpus=integers(gpus),
        table=np.array(rates),
        gang=np.ones(jobs, np.int64),
        kind=np.arange(jobs),
        weight=np.ones(jobs),
        total_steps=np.array(steps),
        remaining_steps=np.array(steps),
        age_s=np.zeros(jobs),
        runs_on=None if runs_on is None else np.array(runs_on),
    )


def cheapest(problem: Problem) -> float:
    """Return the least sum of finish times over all ways to queue the jobs, the slow way."""
    slots = [t for t, n in enumerate(problem.gpus) for _ in range(n)]
    best = np.inf
    for order in permutations(range(problem.jobs)):
        for queue in product(range(len(slots)), repeat=problem.jobs):
            clock = np.zeros(len(slots))
            total = 0.0
            for job, gpu in zip(order, queue, strict=True):
                rate = problem.rate[job, slots[gpu]]
                clock[gpu] += problem.remaining_steps[job] / rate if rate else np.inf
                total += clock[gpu]
            best = min(best, total)
    return float(best)


@given(problems(jobs_max=4))
@examples(24)
def test_allox_assignment_is_the_cheapest_of_all(problem: Problem) -> None:
    one = Problem(
        types=problem.types[:2],
        gpus=np.ones(len(problem.types[:2]), np.int64),
        table=problem.table[:, :2],
        gang=np.ones_like(problem.gang),
        kind=problem.kind,
        weight=problem.weight,
        total_steps=problem.total_steps,
        remaining_steps=problem.remaining_steps,
        age_s=np.zeros(problem.jobs),
    )

    assert cheapest(one) == pytest.approx(allox(one).assignment_cost, rel=1e-9)


def test_allox_starts_who_is_at_the_head_of_a_queue_and_moves_nobody() -> None:
    rates = [[1.0, 10.0], [1.0, 10.0], [1.0, 10.0]]
    first = allox(a_problem(rates, [1, 1], steps=[100.0, 200.0, 10.0]))

    assert [[0, 0], [0, 0], [0, 1]] == first.share.tolist()
    later = allox(a_problem(rates, [1, 1], steps=[100.0, 200.0, 10.0], runs_on=[0, -1, -1]))
    assert [1, 0] == later.share[0].tolist()


def test_allox_says_when_there_are_too_many_jobs_for_its_table() -> None:
    jobs = 6_000

    with pytest.raises(BadInput, match="6,000 are too many"):
        allox(a_problem([[1.0, 2.0]] * jobs, [10, 10], steps=[5.0] * jobs))


def test_everybody_has_an_equal_part_of_every_type() -> None:
    found = isolated(a_problem([[1.0, 2.0]] * 4, [2, 1], steps=[5.0] * 4))

    assert [[0.5, 0.25]] * 4 == found.share.tolist()
    assert [1.0] * 4 == found.throughput.tolist()


def test_pairs_share_what_one_of_them_would_have_had() -> None:
    crowded = a_problem([[1.0], [2.0]] * 2, [2], steps=[5.0] * 4)
    beside = PairRates(np.full((4, 4, 1), 0.9))
    pairs = gandiva(Problem(**{**vars(crowded), "pairs": beside}), np.random.default_rng(0))

    assert pairs.together is not None
    assert 2 == len(pairs.together.first)
    assert [1.0] * 4 == pairs.share[:, 0].tolist()
    assert [0.9] * 4 == pytest.approx(pairs.throughput)
    assert [2.0] == pairs.used.tolist()


def with_pairs(problem: Problem, beside: float | list[list[float]], **more: object) -> Problem:
    jobs = problem.jobs
    rates = np.broadcast_to(np.array(beside, np.float64), (jobs, jobs))[..., np.newaxis]
    return Problem(**{**vars(problem), "pairs": PairRates(rates.copy()), **more})


def pairs_of(found: Allocation) -> set[tuple[int, int]]:
    assert found.together is not None
    return set(zip(found.together.first.tolist(), found.together.second.tolist(), strict=True))


@pytest.mark.parametrize("seed", range(8))
def test_jobs_that_were_paired_stay_together_and_the_others_are_drawn(seed: int) -> None:
    crowded = a_problem([[1.0]] * 6, [2], steps=[5.0] * 6)
    partner = np.array([4, -1, 5, -1, 0, 2])
    found = gandiva(with_pairs(crowded, 0.9, partner=partner), np.random.default_rng(seed))

    assert {(0, 4), (2, 5), (1, 3)} == pairs_of(found)


def test_a_pair_of_before_that_is_no_longer_worth_it_is_broken_up() -> None:
    crowded = a_problem([[1.0]] * 4, [1], steps=[5.0] * 4)
    beside = [[0.9] * 4, [0.9] * 4, [0.9, 0.9, 0.9, 0.1], [0.9, 0.9, 0.1, 0.9]]
    partner = np.array([1, 0, 3, 2])
    found = gandiva(with_pairs(crowded, beside, partner=partner), np.random.default_rng(0))

    assert {(0, 1)} == pairs_of(found)
