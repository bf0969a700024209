"""The benchmark of the simulator at toy size."""

import pytest

from benchmarks.sim_speed import COMPILED, DESIGNS, NUMPY, Run, Size, experiment_of
from tests.benchmarks.conftest import PNG, Bench


def test_every_design_simulates_the_same_jobs_alone_and_beside_others(bench: Bench) -> None:
    ran = bench("sim_speed")

    assert [
        (design, code, number)
        for design in DESIGNS
        for number in (1, 2)
        for code in (NUMPY, COMPILED)
    ] == [(row["design"], row["code"], row["processes"]) for row in ran.rows]
    assert 1 == len({row["jobs"] for row in ran.rows})
    assert all(row["tasks_placed"] > 0 and row["cpu_s"] > 0 for row in ran.rows)
    assert all(row["samples"] == row["processes"] for row in ran.rows)
    alone = [row for row in ran.rows if row["processes"] == 1 and row["code"] == NUMPY]
    assert sum(row["tasks_placed"] for row in alone) == ran.document["digest"]["tasks placed"]
    assert "0.1 hours of 50 machines" in ran.document["summary"]["finding"]
    assert set(DESIGNS) == set(ran.document["summary"]["times_as_fast"]["compiled over numpy"])
    assert ran.picture.startswith(PNG)


@pytest.mark.parametrize("design", DESIGNS)
def test_the_seed_alone_decides_what_comes_out(design: str) -> None:
    size = Size(machines=20, hours=0.1, tasks=100, tasks_a_job=5)
    first, again, other = (
        Run(0.0, experiment_of(size, design, seed).run()).checksum for seed in (1, 1, 2)
    )

    assert first == again
    assert first != other


def test_about_as_many_tasks_arrive_as_are_asked_for() -> None:
    size = Size(machines=100, hours=10.0, tasks=20_000, tasks_a_job=5)

    arrive = experiment_of(size, "shared-state", seed=0).workload.tasks

    assert abs(arrive - size.tasks) < 0.1 * size.tasks
