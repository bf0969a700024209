"""Steps of programs, by a driver whose programs make as many as a test says."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from omega.model.arrays import integers
from omega.model.jobs import LeasedJob, StepWork
from omega.model.programs import Program, Restart
from omega.testing.builders import a_spec
from omega.testing.steps import a_leased_job, grant
from tests.unit.nodes.agent.machine import RUN, Machine

TRAINS = Program(command=("train",), restart=Restart(attempts=5, delay_ms=0))


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    yield machine
    assert [] == list(machine.store.verify())


def place(machine: Machine, *, program: Program = TRAINS, tasks: int = 2) -> LeasedJob:
    """Place a job in steps, task 0 here and the others elsewhere."""
    spec = a_spec(tasks, minimum=tasks, program=program, work=StepWork("training", 1_000))
    job = a_leased_job(machine.store, spec)
    grant(machine.store, job, range(tasks), [machine.id, *[machine.other] * (tasks - 1)])
    return job


def on_record(machine: Machine, job: LeasedJob) -> tuple[int, int]:
    progress = machine.store.progress(integers([job.id]))
    return int(progress.done[0]), int(progress.run_ms[0])


def test_steps_and_time_are_reported(machine: Machine) -> None:
    job = place(machine)
    machine.step()
    (key, _) = machine.keys(job)
    machine.step(after_s=10.0)
    assert (0, 0) == on_record(machine, job)

    machine.driver.steps_made[key] = 70
    machine.step(after_s=10.0)
    assert (70, 20_000) == on_record(machine, job)
    assert {"OMEGA_STEPS": "1000", "OMEGA_STEPS_DONE": "0"}.items() <= (
        machine.driver.launches[0].env.items()
    )


def test_the_last_steps_come_before_the_exit(machine: Machine) -> None:
    job = place(machine, tasks=1)
    machine.step()
    (key,) = machine.keys(job)
    machine.driver.steps_made[key] = 990
    machine.step(after_s=2.0)
    machine.driver.steps_made[key] = 1_000
    machine.driver.end(key)
    machine.step(after_s=0.5)

    assert (1_000, 2_500) == on_record(machine, job)


def test_a_restart_adds_to_the_time_and_the_pause_between_does_not(machine: Machine) -> None:
    job = place(machine, program=Program(command=("it",), restart=Restart(attempts=1)))
    machine.step()
    (key, _) = machine.keys(job)
    machine.driver.steps_made[key] = 10
    machine.step(after_s=4.0)
    machine.driver.end(key, 1)
    machine.step(after_s=0.0)
    machine.step(after_s=100.0)  # it is started again
    machine.step(after_s=3.0)

    assert (10, 7_000) == on_record(machine, job)


def test_the_next_agent_goes_on_counting(machine: Machine) -> None:
    job = place(machine)
    machine.step()
    (key, _) = machine.keys(job)
    machine.step(after_s=5.0)
    machine.restart_agent()
    machine.driver.steps_made[key] = 10
    machine.step(after_s=5.0)

    assert (10, 10_000) == on_record(machine, job)


def test_what_was_on_record_when_it_was_placed_is_told_and_added_to(machine: Machine) -> None:
    job = place(machine, tasks=1)
    machine.store.report_progress(integers([job.id]), integers([400]), integers([60_000]))
    machine.step()
    (key,) = machine.keys(job)
    machine.driver.steps_made[key] = 430
    machine.step(after_s=5.0)

    assert "400" == machine.driver.launches[0].env["OMEGA_STEPS_DONE"]
    assert (430, 65_000) == on_record(machine, job)


def test_other_tasks_and_other_jobs_report_nothing(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(*of: object) -> None:
        raise AssertionError(of)

    monkeypatch.setattr(machine.store, "report_progress", told)
    machine.place(RUN)
    spec = a_spec(2, minimum=2, program=TRAINS, work=StepWork("training", 1_000))
    second = a_leased_job(machine.store, spec)
    grant(machine.store, second, range(2), [machine.other, machine.id])
    machine.step()
    for launch in machine.driver.launches:
        machine.driver.steps_made[launch.key] = 7
    machine.step(after_s=10.0)

    assert 2 == len(machine.driver.launches)
