"""Of many ways to spend time a program has only those that better it, and is as good as all."""

from collections.abc import Callable
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omega.model.arrays import Score
from schedulers.ml_gpu import sharing
from schedulers.ml_gpu.groups import Groups
from schedulers.ml_gpu.policies.fairness import MaxMin, hierarchical, max_min, water_filling
from schedulers.ml_gpu.policies.finish import finish_time_fairness, makespan
from schedulers.ml_gpu.policies.totals import total
from schedulers.ml_gpu.problem import Allocation, Problem, measures, normalised
from schedulers.ml_gpu.sharing import SharingProgram
from schedulers.ml_gpu.throughputs import PairRates
from tests.fixtures.doses import examples
from tests.fixtures.gpu_problems import permuted, problems

CLOSE = 1e-6
NONE_AT_FIRST = patch.object(sharing, "MANY", 0)
"""Leaves all pairs out of the program until they are wanted."""
POLICIES = (
    (max_min, "level"),
    (finish_time_fairness, "rho"),
    (makespan, "makespan_s"),
    (total, "sum_throughput"),
)


@pytest.mark.parametrize(("policy", "measure"), POLICIES)
@given(problems(packed=True, jobs_max=8), st.sampled_from([0.7, 1.0, 4.0]))
@examples(160)
def test_an_objective_is_the_same_with_the_modes_that_are_wanted_as_with_all(
    policy: Callable[[Problem], Allocation], measure: str, problem: Problem, slack: float
) -> None:
    needed_s = problem.remaining_steps / problem.rate.max(axis=1)
    problem = replace(problem, due_s=np.where(needed_s > 0, slack * needed_s, np.inf))
    everything = policy(problem)
    with NONE_AT_FIRST:
        found = policy(problem)

    assert (found.share.sum(axis=1) <= 1 + CLOSE).all()
    assert (found.used <= problem.gpus * (1 + CLOSE)).all()
    assert measures(problem, everything)[measure] == pytest.approx(
        measures(problem, found)[measure], rel=CLOSE, abs=1e-12
    )


@given(problems(packed=True, jobs_max=8))
@examples(120)
def test_water_filling_comes_to_the_same_rates(problem: Problem) -> None:
    for policy in (water_filling, hierarchical):
        everything = normalised(problem, policy(problem).throughput)
        with NONE_AT_FIRST:
            found = normalised(problem, policy(problem).throughput)

        waits = everything < CLOSE  # behind the first of its entity: gets what is left, if anything
        np.testing.assert_allclose(found[~waits], everything[~waits], rtol=1e-5)


@given(problems(packed=True), st.data())
@examples(60)
def test_modes_that_were_wanted_stay_when_jobs_come_and_go(
    problem: Problem, data: st.DataObject
) -> None:
    with NONE_AT_FIRST:
        again = MaxMin()
        for _ in range(3):
            some = data.draw(st.lists(st.integers(0, problem.jobs - 1), min_size=1, max_size=8))
            now = permuted(problem, np.array(some))

            assert measures(now, max_min(now))["level"] == pytest.approx(
                measures(now, again(now))["level"], rel=CLOSE
            )


def test_most_pairs_of_many_jobs_are_never_in_the_program() -> None:
    """Of 200 jobs with needs of their own there are 20,000 pairs; all of them took minutes."""
    rng = np.random.default_rng(0)
    rate = np.stack([rng.uniform(1, 2, 10), rng.uniform(2, 9, 10)], axis=1)
    beside = rng.uniform(0.4, 0.9, (10, 10, 1)) * rate[:, np.newaxis]
    jobs = 200
    problem = Problem(
        types=("k80", "v100"),
        gpus=np.array([20, 20]),
        table=rate,
        gang=np.ones(10, np.int64),
        kind=np.arange(jobs) % 10,
        weight=np.ones(jobs),
        total_steps=np.full(jobs, 1_000.0),
        remaining_steps=rng.uniform(500, 1_000, jobs),
        age_s=np.zeros(jobs),
        pairs=PairRates(beside),
    )
    program = SharingProgram(problem, Groups.by(np.arange(jobs)))
    needs: Score = problem.remaining_steps
    found = program.raise_level(needs, np.zeros(jobs))

    assert found is not None
    assert len(program.modes) > sharing.MANY
    assert (found.time[program.modes.second >= 0] > 0).any()
    assert program.considered < len(program.modes) / 4
