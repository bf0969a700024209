"""Checks of programs, by a driver whose checks succeed or fail as a test says."""

from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from omega.lifecycle.states import State
from omega.model.exits import Exit, ExitCause
from omega.model.programs import Check, Program, Restart
from omega.model.resources import machine_capacity
from omega.nodes.agent.agent_task import AgentTask, Phase
from omega.nodes.agent.checks import AT_ONCE_MAX, Checks
from omega.nodes.agent.task_driver import Probe, TaskKey
from omega.testing.builders import a_spec
from omega.testing.steps import status_of
from tests.unit.nodes.agent.machine import Machine

CHECK = Check(port=80, path="/", interval_ms=10_000, timeout_ms=2_000, failures=3)
SERVES = Program(command=("serve",), check=CHECK, stop_grace_ms=5_000)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    yield machine
    assert [] == list(machine.store.verify())


def test_a_program_is_checked_at_its_interval(machine: Machine) -> None:
    job = machine.place(SERVES)
    machine.step()
    for _ in range(40):
        machine.step(after_s=1.0)

    assert [(machine.keys(job)[0], CHECK)] * 4 == machine.driver.checked[:4]
    assert len(machine.driver.checked) <= 4
    assert [] == machine.driver.signals


def test_a_program_that_fails_its_checks_is_stopped_and_fails(machine: Machine) -> None:
    job = machine.place(SERVES)
    machine.step()
    (key,) = machine.keys(job)
    machine.driver.fails_checks = "port 80: Connection refused"
    for _ in range(3):
        assert [] == machine.driver.signals
        machine.step(after_s=10.0)
        machine.step()
    assert [(key, "TERM")] == machine.driver.signals

    machine.step(after_s=5.0)
    assert [(key, "TERM"), (key, "KILL")] == machine.driver.signals
    machine.driver.kill(key, 9)
    machine.step()

    why = "port 80: Connection refused"
    assert [Exit(cause=ExitCause.UNHEALTHY, signal=9, detail=why)] == machine.exits(job)
    assert State.FAILED is status_of(machine.store, job).state


def test_a_success_between_failures_counts_them_anew(machine: Machine) -> None:
    machine.place(SERVES)
    machine.step()
    for fails in ("it is ill", "it is ill", None, "it is ill", "it is ill", None):
        machine.driver.fails_checks = fails
        machine.step(after_s=10.0)
        machine.step()

    assert 6 == len(machine.driver.checked)
    assert [] == machine.driver.signals


def test_a_new_start_counts_failures_anew(machine: Machine) -> None:
    machine.place(Program(command=("serve",), check=CHECK, restart=Restart(attempts=1, delay_ms=0)))
    machine.step()
    (key,) = machine.driver.running
    machine.driver.fails_checks = "it is ill"
    for _ in range(2):
        machine.step(after_s=10.0)
        machine.step()
    machine.driver.end(key, 1)
    machine.step()
    assert [key] == machine.driver.running

    for _ in range(2):
        machine.step(after_s=10.0)
        machine.step()
    assert 4 == len(machine.driver.checked)
    assert [] == machine.driver.signals


def test_an_unhealthy_program_that_stops_well_is_restarted_all_the_same(machine: Machine) -> None:
    program = Program(
        command=("serve",),
        check=Check(port=80, interval_ms=1_000, failures=1),
        restart=Restart(attempts=1, delay_ms=0),
    )
    job = machine.place(program)
    machine.step()
    (key,) = machine.keys(job)
    machine.driver.fails_checks = "it is ill"
    machine.step(after_s=1.0)
    machine.step()
    machine.driver.end(key, 0)
    machine.driver.fails_checks = None
    machine.step()
    machine.step()

    assert [0, 1] == [launch.restarts for launch in machine.driver.launches]
    assert [key] == machine.driver.running
    assert [] == machine.exits(job)


def test_a_check_that_hangs_fails_when_its_time_is_up(machine: Machine) -> None:
    machine.place(Program(command=("serve",), check=Check(port=80, failures=1)))
    machine.checks_hang = True
    machine.step()
    machine.step(after_s=10.0)
    machine.step(after_s=4.9)
    assert [] == machine.driver.signals

    machine.step(after_s=0.1)
    assert ["TERM"] == [signal for _, signal in machine.driver.signals]


def test_a_start_that_no_step_has_seen_counts_anew() -> None:
    def fail(probe: Probe) -> "Future[str | None]":
        failed: Future[str | None] = Future()
        failed.set_result("it is ill")
        return failed

    checks = Checks(fail)
    task = AgentTask(
        TaskKey(1, 0, 0),
        machine_capacity(0, 0, 0, 0),
        spec=a_spec(program=SERVES),
        phase=Phase.RUNNING,
        started_s=0.0,
    )

    def unhealthy(now_s: float) -> int:
        return len(checks.step([task], now_s, lambda task, check: lambda: None))

    assert [0, 0, 0] == [unhealthy(now_s) for now_s in (10.0, 20.0, 25.0)]
    task.started_s = 25.0
    assert [0, 0, 0] == [unhealthy(now_s) for now_s in (30.0, 35.0, 45.0)]
    assert [0, 1] == [unhealthy(now_s) for now_s in (55.0, 65.0)]


def test_a_check_that_breaks_has_failed() -> None:
    def break_it(probe: Probe) -> "Future[str | None]":
        broken: Future[str | None] = Future()
        broken.set_exception(TimeoutError("timed out"))
        return broken

    checks = Checks(break_it)
    spec = a_spec(program=SERVES)
    nothing = machine_capacity(0, 0, 0, 0)
    task = AgentTask(TaskKey(1, 0, 0), nothing, spec=spec, phase=Phase.RUNNING, started_s=0.0)
    found = [
        checks.step([task], now_s, lambda *_: lambda: None) for now_s in (10.0, 20.0, 30.0, 40.0)
    ]

    assert [[], [], [], [(task, "the check broke: TimeoutError('timed out')")]] == found


def test_checks_that_hang_hold_up_no_more_threads_than_there_may_be() -> None:
    begun: list[Future[str | None]] = []

    def hang(probe: Probe) -> "Future[str | None]":
        begun.append(Future())
        return begun[-1]

    checks = Checks(hang)
    spec = a_spec(AT_ONCE_MAX + 8, program=SERVES)
    tasks = [
        AgentTask(
            TaskKey(1, task, 0),
            machine_capacity(0, 0, 0, 0),
            spec=spec,
            phase=Phase.RUNNING,
            started_s=0.0,
        )
        for task in range(spec.tasks)
    ]

    def step(now_s: float) -> int:
        checks.step(tasks, now_s, lambda task, check: lambda: None)
        return len(begun)

    assert 0 == step(9.0)
    assert AT_ONCE_MAX == step(10.0)
    assert AT_ONCE_MAX == step(60.0)  # they have failed, and their threads are still there
    begun[0].set_result(None)
    begun[1].set_result("too late")
    assert AT_ONCE_MAX + 2 == step(90.0)


def test_why_it_was_stopped_outlives_the_agent(machine: Machine) -> None:
    job = machine.place(Program(command=("serve",), check=Check(port=80, failures=1)))
    machine.step()
    machine.driver.fails_checks = "it is ill"
    machine.step(after_s=10.0)
    machine.step()
    machine.restart_agent()
    machine.step()
    machine.driver.end(machine.keys(job)[0], 3)
    machine.step()

    assert [Exit(cause=ExitCause.UNHEALTHY, detail="it is ill")] == machine.exits(job)


def test_nothing_is_checked_that_stops(machine: Machine) -> None:
    job = machine.place(SERVES)
    machine.step()
    machine.store.cancel(job.id)
    machine.step()
    machine.step(after_s=4.0)
    machine.step(after_s=20.0)

    assert [] == machine.driver.checked
