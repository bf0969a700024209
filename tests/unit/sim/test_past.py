"""A saved cell as a workload: what ran, what waited and what came, by hand."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from omega.lifecycle.states import ParkReason, State
from omega.model.elastic import Phase, Workers
from omega.model.jobs import Constraint, Operator, Preference, StepWork
from omega.model.machines import MachineState
from omega.model.resources import Kind, machine_capacity
from omega.sim.past import Past, past_of
from omega.store.saved.cell import SavedCell
from omega.testing.builders import a_group, a_spec
from tests.fixtures.saved_cells import (
    a_saved_cell,
    a_saved_job,
    past,
    running,
    some_machines,
)


def of(cell: SavedCell, kinds: Sequence[str] = ("batch",), speedup: float = 1.0) -> Past:
    return past_of(cell, kinds, speedup=speedup)


def start_state(told: Past) -> list[tuple[str, int, int | None]]:
    """Return (job, machine from 0, duration) of each task that runs at the beginning."""
    prefill = told.workload.prefill
    found = []
    for job, task, machine in zip(prefill.job, prefill.task, prefill.machine, strict=True):
        spec = prefill.jobs[int(job)]
        durations = [group.duration_ms for group in spec.groups for _ in range(group.tasks)]
        found.append((spec.name, int(machine), durations[int(task)]))
    return found


def arrivals(told: Past) -> list[tuple[float, str, int]]:
    """Return (seconds, job, tasks) of each job that arrives."""
    return [(one.submit_s, one.spec.name, one.spec.tasks) for one in told.workload.arrivals]


def test_tasks_run_on_for_as_long_as_they_did() -> None:
    jobs = (
        a_saved_job(1, a_spec(2, name="goes on")),
        a_saved_job(2, a_spec(2, name="ended"), state=State.SUCCEEDED),
    )
    cell = a_saved_cell(
        jobs=jobs,
        running=running((1, 0, 1, -5), (1, 1, 2, 3)),
        past=past((2, 0, 1, -9, 2.55), (2, 1, 2, -9, 30)),
    )

    assert [("goes on", 0, None), ("ended", 0, 2_500), ("ended", 1, 30_000)] == start_state(
        of(cell)
    )
    assert [("ended", 0, 5_100), ("ended", 1, 60_000)] == start_state(of(cell, speedup=2))[1:]


def test_a_task_that_lost_its_place_would_have_run_for_what_its_job_says() -> None:
    jobs = (a_saved_job(1, a_spec(1, duration_ms=30_000), state=State.PENDING, unplaced=((0, 1),)),)
    cell = a_saved_cell(jobs=jobs, past=past((1, 0, 1, -10, 5), cause="evicted"))

    assert [("job", 0, 20_000)] == start_state(of(cell))
    assert [] == arrivals(of(cell)), "it had a place at the beginning"


def test_what_waited_is_queued_at_once_and_the_rest_when_it_was_submitted() -> None:
    jobs = (
        a_saved_job(
            1, a_spec(4, name="waited", minimum=3), state=State.PENDING, unplaced=((3, 4),)
        ),
        a_saved_job(2, a_spec(2, name="ended before"), state=State.RUNNING),
        a_saved_job(3, a_spec(2, name="came"), submitted_s=7.5),
        a_saved_job(4, a_spec(1, name="too late"), submitted_s=59),
        a_saved_job(5, a_spec(1, name="helps"), submitted_s=7, parent=3),
    )
    tasks = ((1, 0, 1, -3), (1, 1, 1, 4), (1, 2, 2, -3), (2, 1, 2, -9), (3, 0, 2, 9), (3, 1, 2, 9))
    told = of(a_saved_cell(jobs=jobs, running=running(*tasks)))

    assert [(0.0, "waited", 2), (7.5, "came", 2)] == arrivals(told)
    assert [1, 0] == [one.spec.minimum for one in told.workload.arrivals]
    assert ["waited", "waited", "ended before"] == [name for name, _, _ in start_state(told)]


def test_a_job_is_as_patient_as_it_still_was() -> None:
    exists = Preference(Constraint("ssd", Operator.EXISTS))
    spec = a_spec(preferences=(exists,), patience_ms=90_000)
    jobs = (
        a_saved_job(1, spec, state=State.PENDING, unplaced=((0, 1),)),
        a_saved_job(2, spec, state=State.PENDING, unplaced=((0, 1),), submitted_s=-100),
        a_saved_job(3, spec, state=State.PENDING, unplaced=((0, 1),), submitted_s=5),
    )
    told = of(a_saved_cell(jobs=jobs))

    patience = [one.spec.groups[0].patience_ms for one in told.workload.arrivals]
    assert [30_000, 0, 90_000] == patience


def test_durations_are_those_specified_or_those_that_turned_out() -> None:
    jobs = (
        a_saved_job(1, a_spec(groups=[a_group(1, duration_ms=9_000), a_group(2)]), submitted_s=1),
        a_saved_job(2, a_spec(1, duration_ms=9_000), submitted_s=2, state=State.CANCELLED),
        a_saved_job(3, a_spec(1, work=StepWork("resnet", 10)), submitted_s=3),
    )
    over = past((1, 0, 1, 4, 5), (2, 0, 1, 4, 8), (1, 1, 1, 4, 10), (1, 2, 1, 4, 12))
    told = of(a_saved_cell(jobs=jobs, past=over), speedup=2)

    assert [[9_000, 14_000], [8_000], [None]] == [
        [group.duration_ms for group in one.spec.groups] for one in told.workload.arrivals
    ]
    assert told.workload.arrivals[2].spec.work is None


def test_a_job_with_phases_keeps_them() -> None:
    workers = Workers(4, (Phase("map", 8, 500),))
    spec = replace(a_spec(2), workers=workers)
    told = of(a_saved_cell(jobs=(a_saved_job(1, spec, submitted_s=1),)))

    assert workers == told.workload.arrivals[0].spec.workers


def test_what_cannot_be_simulated_is_left_out_and_counted() -> None:
    jobs = (
        a_saved_job(1, a_spec(scheduler="other"), submitted_s=1),
        a_saved_job(
            2,
            submitted_s=2,
            state=State.PARKED,
            unplaced=((0, 1),),
            park_reason=ParkReason.HELD,
        ),
        a_saved_job(3, a_spec(2, cpu_milli=3_000), state=State.SUCCEEDED),
    )
    told = of(a_saved_cell(jobs=jobs, past=past((3, 0, 1, -9, 2), (3, 1, 1, -8, 3))))

    assert [] == arrivals(told)
    assert [("job", 0, 2_000)] == start_state(told)
    assert {
        "jobs of kinds of schedulers that are not simulated": 1,
        "jobs that a user holds": 1,
        "running tasks without room at the beginning": 1,
    } == told.left_out


def test_device_slots_that_nobody_recorded_are_the_fullest_with_room() -> None:
    jobs = (
        a_saved_job(1, a_spec(gpus=1, gpu_slices=400)),
        a_saved_job(2, a_spec(2, gpus=1, gpu_slices=300), state=State.SUCCEEDED),
    )
    cell = a_saved_cell(
        machines=some_machines(1, gpus=2),
        jobs=jobs,
        running=running((1, 0, 1, -9), cpu_milli=1_000, gpu_1=400),
        past=past((2, 0, 1, -8, 5), (2, 1, 1, -7, 6)),
    )
    used = of(cell).workload.prefill.used(1)

    assert (0, 1_000) == (used[0, Kind.GPU_0], used[0, Kind.GPU_1])


@pytest.mark.parametrize("state", [MachineState.DOWN, MachineState.GONE])
def test_machines_that_are_down_run_nothing_and_those_gone_are_not_there(
    state: MachineState,
) -> None:
    cell = a_saved_cell(
        machines=some_machines(2, state=[state, MachineState.DRAINING]),
        jobs=(a_saved_job(1, a_spec(2)),),
        running=running((1, 0, 1, -9), (1, 1, 2, -9)),
    )
    told = of(cell)

    there = [MachineState.DOWN] * (state is MachineState.DOWN) + [MachineState.DRAINING]
    assert there == list(told.state)
    assert [("job", len(there) - 1, None)] == start_state(told)
    assert {"running tasks on machines that are down or gone": 1} == told.left_out


def test_a_task_that_was_lost_with_its_machine_is_counted_and_queued_at_once() -> None:
    cell = a_saved_cell(
        machines=some_machines(2, state=[MachineState.GONE, MachineState.OPEN]),
        jobs=(a_saved_job(1, a_spec(1), state=State.PENDING, unplaced=((0, 1),)),),
        past=past((1, 0, 1, -9, 5), cause="lost"),
    )
    told = of(cell)

    assert ([], [(0.0, "job", 1)]) == (start_state(told), arrivals(told))
    assert {"running tasks on machines that are down or gone": 1} == told.left_out


def test_the_time_has_a_length() -> None:
    assert 55.0 == of(a_saved_cell()).horizon_s
    assert 0.001 == of(a_saved_cell(schedulers=())).horizon_s
    assert (
        machine_capacity(4_000, 16_384, 100_000) == of(a_saved_cell()).workload.machines.capacity
    ).all()
