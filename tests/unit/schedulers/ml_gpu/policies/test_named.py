"""Policies by name: what those that count GPUs do with ties."""

import numpy as np
import pytest

from omega.model.arrays import integers
from schedulers.ml_gpu.policies.named import POLICIES
from schedulers.ml_gpu.problem import Problem, measures


def many_jobs(jobs: int, gpus: list[int], gangs: list[int]) -> Problem:
    """Return jobs of several sizes, of which all types are good for nothing but counting."""
    kinds = len(gangs)
    return Problem(
        types=("k80", "p100", "v100")[: len(gpus)],
        gpus=integers(gpus),
        table=np.linspace(1.0, 9.0, kinds * len(gpus)).reshape(kinds, len(gpus)),
        gang=integers(gangs),
        kind=np.arange(jobs) % kinds,
        weight=np.ones(jobs),
        total_steps=np.full(jobs, 100.0),
        remaining_steps=np.full(jobs, 100.0),
        age_s=np.zeros(jobs),
    )


@pytest.mark.parametrize(
    "name",
    [
        "max_min_fairness",
        "max_min_fairness_water_filling",
        "hier_max_min_fairness_water_filling",
        "finish_time_fairness",
        "min_total_duration",
    ],
)
def test_who_counts_gpus_puts_each_job_on_all_types_as_there_are_gpus_of_them(name: str) -> None:
    """One vertex of the same optimum had 126 of 128 jobs on one type."""
    problem = many_jobs(128, [64, 128, 192], [1, 2])
    found = POLICIES[name].solve(problem, np.random.default_rng(0))
    time = found.share.sum(axis=1, keepdims=True)

    np.testing.assert_allclose(found.share, time * [1 / 6, 2 / 6, 3 / 6])
    assert (time > 0).all()
    assert (found.used <= problem.gpus * (1 + 1e-9)).all()


def test_spreading_time_leaves_the_objective_as_it_was() -> None:
    problem = many_jobs(40, [4, 4, 8], [1, 2, 4])
    found = POLICIES["max_min_fairness"].solve(problem, np.random.default_rng(0))

    assert 16 / 40 == pytest.approx(measures(problem, found)["level_agnostic"])
