"""The benchmark of GPU policies at toy size."""

import pytest

from benchmarks.cvxpy_policies import MODELS
from benchmarks.gavel_policies import NAMES, GavelPolicies
from schedulers.ml_gpu.policies.named import POLICIES
from tests.benchmarks.conftest import PNG, Bench

AGAIN = {name for name, policy in POLICIES.items() if policy.again is not None}


def test_every_policy_is_solved_on_both_sides_to_the_same_objective(bench: Bench) -> None:
    ran = bench("gavel_policies")

    assert {(jobs, name) for jobs in (8, 12) for name in NAMES} == {
        (row["jobs"], row["policy"]) for row in ran.rows
    }
    for row in ran.rows:
        assert row["solve_ms"] > 0
        assert row["solves"] > 0
        assert (row["again_ms"] is not None) == (row["policy"] in AGAIN)
        assert (row["policy"] in MODELS) == (row["modelled_ms"] is not None)
        if row["modelled_ms"] is not None:
            assert row["times_faster"]["median"] == pytest.approx(
                row["modelled_ms"] / row["solve_ms"], rel=0.01
            )
            assert row["difference"] < 1e-4
    assert "12 jobs are divided fairly in" in ran.document["summary"]["finding"]
    assert ran.picture.startswith(PNG)


def test_larger_sizes_are_not_given_to_the_modelling_layer() -> None:
    benchmark = GavelPolicies(modelled_max=10, modelled_packed_max=5)

    assert benchmark._model("max_min_fairness_perf", 11) is None  # noqa: SLF001
    assert benchmark._model("max_min_fairness_packed", 6) is None  # noqa: SLF001
    assert benchmark._model("max_min_fairness_packed", 5) is MODELS["max_min_fairness_packed"]  # noqa: SLF001
