"""One task as its agent follows it: starts, stops, restarts, exits."""

from dataclasses import replace
from typing import TypedDict, Unpack

import numpy as np
import pytest

from omega.model.exits import Exit, ExitCause
from omega.model.jobs import JobSpec, TaskGroup
from omega.model.programs import Program, Restart
from omega.model.resources import KINDS
from omega.nodes.agent.agent_task import GRACE_UNKNOWN_MS, AgentTask, Phase, StopReason
from omega.nodes.agent.task_driver import TaskKey

DONE = Exit(cause=ExitCause.EXITED, code=0)
FAILED = Exit(cause=ExitCause.EXITED, code=3)
KILLED = Exit(cause=ExitCause.SIGNALLED, signal=15)


class ProgramFields(TypedDict, total=False):
    restart: Restart
    timeout_ms: int
    stop_signal: str
    stop_grace_ms: int


def a_task(program: Program | None = None, *, task: int = 0) -> AgentTask:
    groups = (TaskGroup(tasks=2, cpu_milli=1, program=program), TaskGroup(tasks=1, cpu_milli=2))
    spec = JobSpec(name="job", scheduler="batch", groups=groups)
    return AgentTask(TaskKey(7, task, 1_000), np.ones(KINDS, dtype=np.int64), spec=spec)


def a_program(**fields: Unpack[ProgramFields]) -> Program:
    return Program(command=("true",), **fields)


def test_a_task_has_the_program_of_its_group() -> None:
    program = a_program()
    assert [program, program, None] == [a_task(program, task=n).program for n in range(3)]


def test_a_success_is_reported_with_the_number_of_restarts() -> None:
    task = a_task(a_program(restart=Restart(attempts=1, delay_ms=500)))
    task.started(0.0)
    task.ended(FAILED, 1.0)
    assert (Phase.WAITING, 1.5) == (task.phase, task.start_due_s)
    assert task.holds_room, "its room is kept for the restart"
    task.started(1.5)
    task.ended(replace(DONE, restarts=1), 2.0)
    assert (Phase.ENDED, replace(DONE, restarts=1)) == (task.phase, task.exit)
    assert not task.holds_room


def test_only_restarts_within_the_interval_count() -> None:
    program = a_program(restart=Restart(attempts=1, within_ms=10_000, delay_ms=0))
    task = a_task(program)
    for start, at in enumerate((0.0, 11.0, 22.0)):
        task.started(at)
        task.ended(replace(FAILED, restarts=start), at + 0.5)
        assert task.phase is Phase.WAITING
    task.started(23.0)
    task.ended(replace(FAILED, restarts=3), 23.5)
    assert replace(FAILED, restarts=3) == task.exit


def test_restarts_long_ago_are_counted_and_take_no_room() -> None:
    task = a_task(a_program(restart=Restart(attempts=2, within_ms=10_000, delay_ms=0)))
    starts = 50
    for start in range(starts):
        task.started(start * 6.0)
        task.ended(replace(FAILED, restarts=start), start * 6.0 + 0.5)
        assert task.phase is Phase.WAITING
        assert len(task.restarts) <= 2

    assert starts == task.restarts_made
    task.started(1_000.0)
    task.ended(replace(DONE, restarts=starts), 1_001.0)
    assert task.exit is not None
    assert starts == task.exit.restarts


@pytest.mark.parametrize("reason", list(StopReason))
def test_a_stop_gives_the_signal_once_and_kills_at_its_deadline(reason: StopReason) -> None:
    task = a_task(a_program(stop_signal="INT", stop_grace_ms=2_000))
    task.started(0.0)
    assert "INT" == task.stop(reason, 5.0)
    assert task.stop(reason, 6.0) is None
    assert [False, True] == [task.is_to_be_killed(at) for at in (6.9, 7.0)]
    assert task.holds_room, "its processes may still run"


def test_a_task_of_an_unknown_job_is_stopped_by_sigterm() -> None:
    task = a_task(a_program())
    task.started(0.0)
    task.spec = None
    assert "TERM" == task.stop(StopReason.LOST, 0.0)
    assert task.is_to_be_killed(GRACE_UNKNOWN_MS / 1_000)


def test_a_lost_task_is_over_when_it_has_ended_and_its_exit_is_nobodys() -> None:
    task = a_task(a_program(restart=Restart(attempts=5)))
    task.started(0.0)
    task.stop(StopReason.LOST, 1.0)
    assert not task.is_live
    task.ended(KILLED, 2.0)
    assert (Phase.OVER, None) == (task.phase, task.exit)


@pytest.mark.parametrize("waits_for_restart", [False, True])
def test_a_lost_task_of_which_nothing_runs_is_over_at_once(*, waits_for_restart: bool) -> None:
    task = a_task(a_program(restart=Restart(attempts=5)))
    if waits_for_restart:
        task.started(0.0)
        task.ended(FAILED, 0.5)
    assert task.stop(StopReason.LOST, 1.0) is None
    assert task.phase is Phase.OVER


def test_a_task_that_times_out_fails_whatever_its_code() -> None:
    task = a_task(a_program(timeout_ms=3_000))
    task.started(1.0)
    assert [False, True] == [task.is_too_long(at) for at in (3.9, 4.0)]
    task.stop(StopReason.TIMEOUT, 4.0)
    assert not task.is_too_long(9.0), "it is asked to stop once"
    task.ended(DONE, 5.0)
    assert Exit(cause=ExitCause.TIMEOUT) == task.exit


def test_a_task_that_times_out_and_is_then_lost_is_not_reported() -> None:
    task = a_task(a_program(timeout_ms=3_000))
    task.started(0.0)
    task.stop(StopReason.TIMEOUT, 4.0)
    assert task.stop(StopReason.LOST, 5.0) is None, "the signal was sent before"
    task.ended(KILLED, 5.0)
    assert task.phase is Phase.OVER


def test_a_timeout_counts_from_the_restart() -> None:
    task = a_task(a_program(timeout_ms=3_000, restart=Restart(attempts=1, delay_ms=0)))
    task.started(0.0)
    task.stop(StopReason.TIMEOUT, 3.0)
    task.ended(KILLED, 3.0)
    assert (Phase.WAITING, None) == (task.phase, task.reason)
    task.started(4.0)
    assert not task.is_too_long(6.9)


def test_what_the_machines_restart_ended_is_started_again_and_not_counted() -> None:
    task = a_task(a_program(restart=Restart(attempts=1)))
    task.started(5.0)
    task.ended(Exit(cause=ExitCause.LOST), 0.5)
    assert (Phase.WAITING, []) == (task.phase, task.restarts)
    assert not task.holds_room


def test_a_program_that_cannot_be_started_has_a_reason() -> None:
    task = a_task(a_program(restart=Restart(attempts=9)))
    task.failed_to_start("there is no program named nope")
    assert task.exit is not None
    assert (Phase.ENDED, ExitCause.NOT_STARTED) == (task.phase, task.exit.cause)
    assert "there is no program named nope" == task.exit.detail
