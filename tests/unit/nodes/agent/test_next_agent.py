"""What the next agent makes of what one that was killed has left, also after another boot."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from uuid import UUID

import pytest

from omega.clock import ManualClock
from omega.model.exits import Exit, ExitCause
from omega.model.programs import Program, Restart
from omega.nodes.agent import machine_lease
from omega.nodes.agent.agent_task import START_AGAIN_S
from omega.nodes.agent.machine_lease import Deadline, MachineLease
from omega.nodes.agent.records import Records
from omega.nodes.agent.small_files import write_small
from omega.nodes.agent.task_driver import Launch
from tests.unit.nodes.agent.machine import RUN, Machine

US = UUID(int=1)
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


def test_after_another_boot_the_restarts_before_it_are_long_ago(machine: Machine) -> None:
    """A time of the boot before may lie ahead of the clock, and would count for ever."""
    machine.clock.advance(500_000.0)
    job = machine.place(TWICE)
    machine.step()
    (key,) = machine.driver.running
    machine.driver.end(key, code=3)
    machine.step()
    machine.step(1.0)
    another_boot(machine.folder)
    machine.clock = ManualClock(10.0)
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
    boot = tmp_path / "boot"
    boot.write_text("another")
    assert deadline.read() is None
    deadline.write(13.5)
    assert 13.5 == deadline.read()


def test_a_watchdog_of_an_earlier_version_can_read_the_deadline(tmp_path: Path) -> None:
    """It outlives its agent, and the next agent starts none beside it."""
    deadline = Deadline(tmp_path)
    deadline.write(12.5)
    assert 12.5 == float((tmp_path / "deadline").read_text())
    (tmp_path / "boot").unlink()
    assert 12.5 == deadline.read(), "an agent of an earlier version wrote none"


def test_a_deadline_of_another_boot_does_not_become_one_of_this(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the agent is killed between its two files."""
    deadline = Deadline(tmp_path)
    deadline.write(500_000.0)
    (tmp_path / "boot").write_text("another")
    written: list[str] = []

    def killed_after(path: Path, text: str) -> None:
        write_small(path, text)
        written.append(path.name)
        raise Killed

    monkeypatch.setattr(machine_lease, "write_small", killed_after)
    with suppress(Killed):
        deadline.write(20.0)
    assert ["boot"] == written
    assert deadline.read() is None


@pytest.mark.parametrize("code", [0, 3])
def test_after_another_boot_an_exit_counts_whatever_has_become_of_the_lease(
    tmp_path: Path, code: int
) -> None:
    """An agent without a lease stops its tasks, and what it has stopped did not fail or succeed."""
    machine = Machine(tmp_path, lease=MachineLease(US, 10.0))
    job = machine.place()
    machine.step()
    (key,) = machine.driver.running
    machine.driver.end(key, code)
    another_boot(machine.folder)
    machine.lease = MachineLease(US, 10.0)
    machine.restart_agent()
    machine.step()
    assert [Exit(cause=ExitCause.EXITED, code=code)] == machine.exits(job)


def test_a_timeout_that_the_end_of_the_machine_cut_short_is_one(machine: Machine) -> None:
    job = machine.place(Program(command=("true",), timeout_ms=60_000))
    machine.step()
    (key,) = machine.driver.running
    machine.step(61.0)
    assert [(key, "TERM")] == machine.driver.signals
    machine.driver.exits[key] = Exit(cause=ExitCause.LOST, detail="the machine was restarted")
    another_boot(machine.folder)
    machine.restart_agent()
    machine.step()
    assert [ExitCause.TIMEOUT] == [it.cause for it in machine.exits(job)]


def test_an_exit_of_a_later_start_than_the_record_knows_counts(machine: Machine) -> None:
    """The disk may have lost the newest record, as it does when the power fails."""
    job = machine.place()
    machine.step()
    (key,) = machine.driver.running
    machine.driver.exits[key] = Exit(cause=ExitCause.EXITED, code=0, restarts=3)
    machine.step()
    assert [Exit(cause=ExitCause.EXITED, code=0)] == machine.exits(job)


def test_a_task_that_the_next_agent_cannot_read_gives_its_room_back(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = machine.place(Program(command=("x",), restart=Restart(attempts=2, delay_ms=60_000)))
    machine.step()
    (key,) = machine.driver.running
    machine.driver.end(key, 1)
    machine.step()
    with monkeypatch.context() as unreadable:
        unreadable.setattr(machine.store, "programs", lambda jobs: {})
        machine.restart_agent()
        machine.step()
    (ended,) = machine.exits(job)
    assert "this agent cannot read its job" == ended.detail

    others = [machine.place() for _ in range(4)]
    machine.step()
    assert sorted(key for other in others for key in machine.keys(other)) == sorted(
        machine.driver.running
    )


def test_a_program_that_appears_late_is_taken_up(machine: Machine) -> None:
    """The agent before was killed while its engine made the container."""
    job = machine.place()
    machine.step()
    (key,) = machine.driver.running
    del machine.driver.exits[key]
    machine.step()
    assert [] == machine.driver.running
    machine.driver.exits[key] = None
    machine.step(START_AGAIN_S)
    assert 1 == len(machine.driver.launches)
    machine.driver.end(key)
    machine.step()
    assert [Exit(cause=ExitCause.EXITED, code=0)] == machine.exits(job)


def test_a_program_that_appears_while_its_room_is_kept_holds_it_once(machine: Machine) -> None:
    machine.place(TWICE)
    machine.step()
    (key,) = machine.driver.running
    machine.driver.end(key, code=3)
    machine.step()
    assert [] == machine.driver.running
    machine.driver.exits[key] = None
    machine.step()
    machine.place(tasks=3)
    machine.step()
    assert 4 == len(machine.driver.running), "the machine has four cores"


def test_an_exit_of_which_the_record_is_lost_waits_for_what_the_store_says(
    machine: Machine,
) -> None:
    job = machine.place()
    machine.step()
    (key,) = machine.driver.running
    machine.driver.end(key)
    for path in machine.folder.glob("*.json"):
        path.unlink()
    machine.restart_agent()
    machine.absences = 1
    machine.step()
    assert key in machine.driver.exits
    machine.step(5.0)
    machine.step(5.0)

    assert [Exit(cause=ExitCause.EXITED, code=0)] == machine.exits(job)
    assert 1 == len(machine.driver.launches), "it did not run again"
    assert {} == machine.driver.exits


def test_an_exit_that_is_nobodys_is_forgotten(machine: Machine) -> None:
    job = machine.place()
    machine.step()
    (key,) = machine.driver.running
    machine.driver.end(key)
    machine.store.cancel(job.id)
    for path in machine.folder.glob("*.json"):
        path.unlink()
    machine.restart_agent()
    machine.step()

    assert {} == machine.driver.exits


def test_a_failure_that_the_next_agent_finds_is_started_again_as_its_job_says(
    machine: Machine,
) -> None:
    job = machine.place(TWICE)
    machine.step()
    (key,) = machine.driver.running
    machine.driver.end(key, 1)
    machine.absences = 10**6
    machine.restart_agent()
    machine.step()
    machine.step(5.0)
    machine.absences = 0
    machine.step(5.0)
    machine.step(5.0)
    assert [key, key] == [launch.key for launch in machine.driver.launches]
    assert [] == machine.exits(job)

    machine.driver.end(key, 2)
    machine.step()
    machine.step(5.0)
    assert [Exit(cause=ExitCause.EXITED, code=2, restarts=1)] == machine.exits(job)


def test_a_failure_stays_one_when_the_lease_runs_out_before_it_is_reported(tmp_path: Path) -> None:
    machine = Machine(tmp_path, lease=MachineLease(US, 10.0))
    job = machine.place()
    machine.step()
    (key,) = machine.driver.running
    machine.driver.end(key, 3)
    machine.restart_agent()
    machine.absences = 10**6
    machine.step()
    machine.step(6.0)
    machine.absences = 0
    machine.step(5.0)
    machine.step(5.0)

    assert [Exit(cause=ExitCause.EXITED, code=3)] == machine.exits(job)
    assert [key] == [launch.key for launch in machine.driver.launches]


@pytest.mark.parametrize("said", [{"attempts": -1}, {"within_ms": 0}, {"delay_ms": "soon"}, None])
def test_a_record_of_impossible_restarts_counts_as_absent(
    machine: Machine, said: dict[str, object] | None
) -> None:
    machine.place(TWICE)
    machine.step()
    (record,) = machine.folder.iterdir()
    known = json.loads(record.read_text())
    restart = None if said is None else {**known["restart"], **said}
    record.write_text(json.dumps({**known, "restart": restart}))

    assert [] == list(Records(machine.folder).read(0.0))


def test_what_an_earlier_version_started_is_restarted_as_its_job_says(machine: Machine) -> None:
    """Its record says nothing of restarts."""
    machine.place(TWICE)
    machine.step()
    (record,) = machine.folder.iterdir()
    known = json.loads(record.read_text())
    del known["restart"], known["restarts_before"]
    record.write_text(json.dumps(known))
    machine.restart_agent()
    machine.step()
    (key,) = machine.driver.running
    machine.driver.end(key, 1)
    machine.step()
    machine.step(5.0)

    assert [key, key] == [launch.key for launch in machine.driver.launches]
