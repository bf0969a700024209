"""Simulated beside live, at toy size."""

from benchmarks.agreement import between
from benchmarks.side_by_side import MEASURES, SHARES_OFF, SideBySide
from tests.benchmarks.conftest import PNG, Bench


def test_contests_are_held_and_simulated_and_compared(bench_on_server: Bench) -> None:
    ran = bench_on_server("side_by_side")

    assert [
        *[("paper", 1, "fit"), ("paper", 2, "fit")],
        *[("paper", 1, "sequence"), ("paper", 2, "sequence")],
        *[("partitioned", 2, "fit"), ("stranger", 2, "fit"), ("rounds", 4, "fit")],
    ] == [(row["arm"], row["schedulers"], row["rule"]) for row in ran.rows]
    digest = ran.document["digest"]
    assert 6 == digest["contests"]
    assert digest["tasks placed live"] > 0
    assert digest["tasks placed in virtual time"] > 0
    figures = {**MEASURES, **SHARES_OFF}
    agree = sum(row[name]["agree"] for row in ran.rows for name in figures if name in row)
    assert agree == ran.document["summary"]["agree"]
    assert f"in {agree} of 14 figures" in ran.document["summary"]["finding"]
    assert ran.picture.startswith(PNG)


def test_what_is_simulated_is_the_time_that_was_counted() -> None:
    benchmark = SideBySide(schedulers=(4,), machines=60)
    point = benchmark.points[0]
    experiment = benchmark.experiment(point, benchmark.workload(point, 60.0, 0), 60.0, 0)

    early, late, whole = (
        between(experiment, from_s, to_s) for from_s, to_s in ((10, 30), (30, 60), (10, 60))
    )

    assert whole["tasks_placed"] == early["tasks_placed"] + late["tasks_placed"] > 0
    assert abs(50 * whole["busy"] - 20 * early["busy"] - 30 * late["busy"]) < 1e-6
