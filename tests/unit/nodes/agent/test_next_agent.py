"""What the next agent makes of what one that was killed has left, also after another boot."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from omega.clock import ManualClock
from omega.model.exits import Exit, ExitCause
from omega.model.programs import Program, Restart
from omega.nodes.agent.agent_task import START_AGAIN_S
from omega.nodes.agent.machine_lease import Deadline
from omega.nodes.agent.task_driver import Launch
from tests.unit.nodes.agent.machine import RUN, Machine

TWICE = Program(command=("true",), restart=Restart(attempts=1, within_ms=60_000, delay_ms=1_000))


class Killed(Exception):
    """The agent is killed at this point."""


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    yield machine
    assert [] == list(machine.store.verify())


def another_boot(folder: Path) -> None:
    """Have the records say that another boot wrote them."""
    for path in folder.glob("*.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "boot": "another"}))


def kill_before_the_start(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the agent go on until it is killed between the record of a start and the start."""

    def killed(launch: Launch) -> None:
        raise Killed

    with monkeypatch.context() as patch, suppress(Killed):
        patch.setattr(machine.driver, "start", killed)
        for _ in range(20):
            machine.step()
        pytest.fail("nothing was started")
    machine.restart_agent()


def test_an_exit_of_the_start_before_does_not_count_for_one_that_never_came(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = machine.place(TWICE)
    machine.step()
    (key,) = machine.driver.running
    machine.driver.end(key, code=3)
    kill_before_the_start(machine, monkeypatch)

    machine.step()
    assert [] == machine.exits(job)
    machine.step(START_AGAIN_S)
    assert [key] == machine.driver.running
    machine.driver.end(key, code=4)
    machine.step()
    assert [Exit(cause=ExitCause.EXITED, code=4, restarts=1)] == machine.exits(job)


def test_a_start_after_a_fence_that_never_came_is_no_failure(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit before is of the same number of restarts, but of an earlier start."""
    job = machine.place()
    machine.step()
    (key,) = machine.driver.running
    machine.driver.exits[key] = Exit(cause=ExitCause.LOST)
    machine.step()
    machine.driver.kill(key)
    kill_before_the_start(machine, monkeypatch)

    machine.step()
    machine.step(START_AGAIN_S)
    assert [key] == machine.driver.running
    machine.driver.end(key)
    machine.step()
    assert [Exit(cause=ExitCause.EXITED, code=0)] == machine.exits(job)


def test_after_another_boot_a_task_does_not_wait_for_a_moment_of_the_one_before(
    machine: Machine,
) -> None:
    machine.clock.advance(500_000.0)
    machine.place(TWICE)
    machine.step()
    (key,) = machine.driver.running
    machine.driver.end(key, code=3)
    machine.step()
    assert [] == machine.driver.running
    another_boot(machine.folder)
    machine.clock = ManualClock(10.0)
    machine.restart_agent()
    machine.step()
    assert [key] == machine.driver.running


def test_after_another_boot_restarts_are_counted_as_of_its_begin(machine: Machine) -> None:
    """A time of the boot before may lie ahead of the clock, and would count for ever."""
    machine.clock.advance(500_000.0)
    job = machine.place(TWICE)
    machine.step()
    (key,) = machine.driver.running
    machine.driver.end(key, code=3)
    machine.step()
    machine.step(1.0)
    another_boot(machine.folder)
    machine.clock = ManualClock(61.0)
    machine.restart_agent()
    machine.driver.end(key, code=3)
    machine.step()
    machine.step(1.0)
    assert [key] == machine.driver.running
    assert [] == machine.exits(job)


def test_a_program_that_runs_since_another_boot_has_its_whole_time(machine: Machine) -> None:
    machine.clock.advance(1.0)
    machine.place(Program(command=("true",), timeout_ms=60_000))
    machine.step()
    (key,) = machine.driver.running
    another_boot(machine.folder)
    machine.clock.advance(100.0)
    machine.restart_agent()
    machine.step(50.0)
    assert [] == machine.driver.signals
    machine.step(60.0)
    assert [(key, RUN.stop_signal)] == machine.driver.signals


def test_a_deadline_of_another_boot_is_none(tmp_path: Path) -> None:
    deadline = Deadline(tmp_path)
    deadline.write(12.5)
    path = tmp_path / "deadline"
    (boot, at) = path.read_text().split()
    path.write_text(f"{boot[::-1]} {at}")
    assert deadline.read() is None
