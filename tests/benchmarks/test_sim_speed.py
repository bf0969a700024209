"""The benchmark of the simulator at toy size."""

import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from benchmarks import sim_speed
from benchmarks.environment import ROOT
from benchmarks.harness import Stage
from benchmarks.sim_processes import Answer, answers
from benchmarks.sim_speed import COMPILED, DESIGNS, NUMPY, Run, Size, experiment_of
from benchmarks.simulate_once import simulate
from omega.clock import ManualClock
from omega.config import Settings
from omega.terminal.consoles import Output
from tests.benchmarks.conftest import PNG, Bench


def simulated_here(
    _stage: Stage, _python: Path, _root: Path, orders: Sequence[Mapping[str, Any]]
) -> list[Answer]:
    """Answer as `answers` does, without starting thirty processes."""
    return [simulate(dict(order)) for order in orders]


def test_every_design_simulates_the_same_jobs_alone_and_beside_others(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sim_speed, "answers", simulated_here)
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


def test_processes_of_their_own_simulate_what_this_one_does() -> None:
    size = asdict(Size(machines=20, hours=0.1, tasks=100, tasks_a_job=5))
    order = {"size": size, "design": "shared-state", "seed": 3, "compiled": False}
    orders = [order, {**order, "compiled": True}]
    stage = Stage(Output(None), ManualClock(), threading.Event(), Settings())

    apart = answers(stage, Path(sys.executable), ROOT, orders)

    assert 1 == len({answer["checksum"] for answer in (*apart, *map(simulate, orders))})
    assert all(answer["cpu_s"] > 0 for answer in apart)


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
