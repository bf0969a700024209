"""Problems at the edges of what is read: nothing left to do, scales twelve powers of ten apart."""

from typing import Any

import numpy as np
import pytest

from schedulers.ml_gpu.policies.baselines import allox
from schedulers.ml_gpu.policies.fairness import max_min, water_filling
from schedulers.ml_gpu.policies.finish import finish_time_fairness, makespan
from schedulers.ml_gpu.policies.totals import total
from schedulers.ml_gpu.problem import Problem, measures, normalised
from schedulers.ml_gpu.throughputs import PairRates


def of(table: list[list[float]], gpus: list[int], steps: list[float], **more: Any) -> Problem:  # noqa: ANN401
    """Return a problem of one job of each kind, untouched unless said otherwise."""
    jobs = len(table)
    said: dict[str, Any] = {
        "gang": np.ones(jobs, np.int64),
        "kind": np.arange(jobs),
        "weight": np.ones(jobs),
        "total_steps": np.array(steps),
        "remaining_steps": np.array(steps),
        "age_s": np.zeros(jobs),
    }
    return Problem(
        types=tuple("abc"[: len(gpus)]),
        gpus=np.array(gpus),
        table=np.array(table),
        **(said | more),
    )


@pytest.mark.parametrize("policy", [finish_time_fairness, makespan, total, max_min, allox])
def test_jobs_with_nothing_left_to_do_ask_for_nothing(policy: Any) -> None:  # noqa: ANN401
    nothing, due_s = np.zeros(2), np.array([0.0, 5.0])
    problem = of([[1.0], [2.0]], [1], [10.0, 10.0], remaining_steps=nothing, due_s=due_s)
    found = policy(problem)

    assert (found.share.sum(axis=1) <= 1).all()
    assert 0 == measures(problem, found)["makespan_s"]


def test_one_who_has_finished_does_not_hold_up_the_others() -> None:
    problem = of([[1.0], [1.0]], [1], [10.0, 10.0], remaining_steps=np.array([0.0, 10.0]))

    assert 10 == pytest.approx(measures(problem, makespan(problem))["makespan_s"])
    assert 0.5 == pytest.approx(measures(problem, finish_time_fairness(problem))["rho"])


def test_a_type_without_gpus_is_no_reason_to_hope() -> None:
    """A deadline that it alone could meet would keep all later ones from being held."""
    problem = of([[3.0, 100.0], [1.0, 0.0]], [1, 0], [100.0, 10.0], due_s=np.array([5.0, 10.0]))

    assert 1 == pytest.approx(total(problem).throughput[1])
    assert not total(problem).share[:, 1].any()


def test_a_gang_larger_than_its_fastest_type_has_no_deadline_that_asks_for_all_of_it() -> None:
    """The gang can have half of its time there, 51.5 steps/s over all; it would take 60."""
    gang, due_s = np.array([4, 1]), np.array([1.0, 2.0])
    problem = of([[3.0, 100.0], [0.5, 1.0]], [4, 2], [60.0, 2.0], gang=gang, due_s=due_s)

    assert 1 == pytest.approx(total(problem).throughput[1])


def test_the_least_need_is_met_beside_the_greatest() -> None:
    """A need below what the solver overlooks is not met by no time at all."""
    table = [[0.015630650478807476, 0.004111029350868866], [1.0, 1.0]]
    table += [[381461.24100604013, 202494.10840680677]]
    jobs = {
        "gang": np.array([4, 4, 1]),
        "kind": np.array([0, 0, 0, 2]),
        "weight": np.ones(4),
        "total_steps": np.array([8454667.0, 44705550261.0, 318772.0, 134.0]),
        "age_s": np.array([365617642.5, 101214.2, 92.7, 4902.8]),
    }
    steps = [4227333.5, 44705550261.0, 318.772, 134.0]
    alone = of(table, [3, 3], steps, **jobs)
    beside = np.repeat(np.array(table)[:, np.newaxis], 3, axis=1) * [[[0.5]], [[0.3]], [[1.2]]]
    shared = of(table, [3, 3], steps, **jobs, pairs=PairRates(beside))
    for policy, measure in ((makespan, "makespan_s"), (finish_time_fairness, "rho")):
        found = policy(shared)

        assert measures(alone, policy(alone))[measure] == pytest.approx(
            measures(shared, found)[measure], rel=1e-6
        )
        assert (found.throughput > 0).all()


def test_levels_are_built_upon_however_far_apart_weights_are() -> None:
    """The second level rests on a first one that is only known to the solver's tolerance."""
    table = [[5.84976184e-06, 3.55058933e01, 0], [0, 5.00349798e-05, 0]]
    table += [[2.20042407e05, 1.57263322e03, 1.41374369e-02]]
    weight = [5.75474423e-03, 1.28192068e02, 2.48866202e-02, 1.09253759e-03]
    weight += [1.31549739e00, 2.05425652e01, 9.94674722e-02]
    problem = of(
        table,
        [2, 16, 1],
        [1.0] * 7,
        gang=np.array([2, 1, 2]),
        kind=np.array([2, 0, 2, 0, 0, 0, 0]),
        weight=np.array(weight),
        age_s=np.zeros(7),
    )
    norm = normalised(problem, water_filling(problem).throughput)

    assert norm[[1, 3, 4, 5, 6]] == pytest.approx(19 / 16, rel=1e-6)  # all of their time


def test_a_job_waits_rather_than_start_where_it_cannot_run() -> None:
    problem = of([[1.0, 1.0], [2.0, 0.0]], [1, 1], [10.0, 10.0], runs_on=np.array([0, -1]))

    assert [[1, 0], [0, 0]] == allox(problem).share.tolist()
