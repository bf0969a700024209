"""The start state in virtual time: what ends, ends once, when it is to, and frees what it held."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from omega.errors import InvariantBroken
from omega.framework.scheduler import DecisionTime
from omega.model.resources import Kind, amounts
from omega.sim.allocator import Offering
from omega.sim.cell import SimulatedCell
from omega.sim.experiment import Architecture, Experiment
from omega.sim.prefill import StartState
from omega.sim.shadow_state import ShadowState
from omega.testing.builders import a_spec
from omega.workload.arrivals import BATCH, SERVICE, Arrival, Prefill, Workload
from omega.workload.synthetic import uniform_machines
from omega.workload.traces.google_2011 import GOOGLE_2011
from tests.simulation.test_engine import Whole, always

SAMPLE = Path(__file__).parents[1] / "samples" / "google-2011"


def started() -> Workload:
    """Two machines of four cores: two tasks that end after 10 s, one each, and one that runs on."""
    prefill = Prefill(
        jobs=(
            a_spec(2, cpu_milli=1_000, duration_ms=10_000),
            a_spec(1, cpu_milli=2_000, duration_ms=None),
        ),
        job=np.array([0, 0, 1]),
        task=np.array([0, 1, 0]),
        machine=np.array([0, 1, 1]),
        shape=np.array([0, 0, 1]),
        shapes=np.stack([amounts(cpu_milli=1_000), amounts(cpu_milli=2_000)]),
    )
    return Workload(
        "started",
        uniform_machines(2, cpus=4, memory_gib=64),
        prefill,
        (Arrival(1.0, a_spec(1, cpu_milli=4_000, duration_ms=1_000)),),
    )


def experiment(architecture: Architecture = Architecture.SHARED_STATE) -> Experiment:
    return Experiment(
        workload=started(),
        architecture=architecture,
        scheduler=always(Whole),
        decision_times={BATCH: DecisionTime(job_s=0.5), SERVICE: DecisionTime(job_s=0.5)},
        offering=Offering(least_cpu_milli=1),
        horizon_s=20.0,
        audited=True,
    )


@pytest.mark.parametrize("architecture", Architecture)
def test_what_ends_makes_room_for_what_waits(architecture: Architecture) -> None:
    """A task that needs a whole machine gets it when the only task there has ended."""
    begun = experiment(architecture).begin()
    (cell,) = begun.cells
    begun.engine.run(8.0)
    before = cell.cpu_used, begun.result().tasks_placed
    told = begun.finish()

    assert (4_000, 0) == before
    assert 1 == told.tasks_placed
    assert 2_000 == cell.cpu_used, "one task of the start runs on"


def test_of_a_part_of_the_machines_the_ids_are_those_within_the_part() -> None:
    state = StartState.of(started().prefill, slice(1, 2))

    assert ([-1, -2], [1, 0], [1, 1]) == (
        state.job.tolist(),
        state.task.tolist(),
        state.machine.tolist(),
    )
    assert [10.0, np.inf] == state.ends_s.tolist()
    assert [3_000] == state.used(1)[:, Kind.CPU_MILLI].tolist()
    assert [(10.0, [0]), (np.inf, [1])] == [
        (ends_s, rows.tolist()) for ends_s, rows in state.by_end()
    ]


def test_tasks_that_end_together_are_one_event() -> None:
    state = StartState.of(started().prefill, slice(0, 2))

    assert [(10.0, 2), (np.inf, 1)] == [(ends_s, len(rows)) for ends_s, rows in state.by_end()]
    assert [] == list(StartState.of(Prefill.none(), slice(0, 2)).by_end())


def test_machines_of_their_own_end_what_each_has() -> None:
    workload = replace(
        started(),
        arrivals=tuple(
            Arrival(1.0, a_spec(1, cpu_milli=4_000, scheduler=kind)) for kind in (BATCH, SERVICE)
        ),
    )
    apart = replace(
        experiment(Architecture.STATIC_PARTITION), workload=workload, parts={}, horizon_s=30.0
    )
    begun = apart.begin()
    told = begun.finish()

    assert [4_000, 2_000] == [cell.cpu_used for cell in begun.cells]
    assert (1, 0) == tuple(told.workloads[kind]["tasks_placed"] for kind in (BATCH, SERVICE))


def test_a_start_that_does_not_end_or_is_not_what_is_used_is_caught(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(SimulatedCell, "release", lambda *_: None)
        with pytest.raises(InvariantBroken, match="expected") as caught:
            experiment().run()
    assert "ended task" in caught.value.story[-1]
    assert "of start job 1" in caught.value.story[-1]

    expected = ShadowState.start
    monkeypatch.setattr(
        ShadowState, "start", lambda shadow, tasks: expected(shadow, list(tasks)[1:])
    )
    with pytest.raises(InvariantBroken, match="starts with"):
        experiment().run()


def test_the_start_state_of_a_trace_ends_as_recorded() -> None:
    workload = GOOGLE_2011.load(SAMPLE, np.random.default_rng(0), pending="leave")
    state = StartState.of(workload.prefill, slice(0, len(workload.machines)))
    ends = {
        ends_s: state.amounts[rows, Kind.CPU_MILLI].sum()
        for ends_s, rows in state.by_end()
        if ends_s < np.inf
    }
    huge = Arrival(1.0, a_spec(1, cpu_milli=10**7))
    workload = replace(workload, arrivals=(huge,), machine_events=())
    begun = replace(experiment(), workload=workload, horizon_s=400.0).begin()
    (cell,) = begun.cells
    used = cell.cpu_used
    begun.finish()

    assert {20.0, 300.0} == ends.keys()
    assert used - cell.cpu_used == sum(ends.values()) > 0
