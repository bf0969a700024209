"""An agent on a store in memory, with programs that tests end."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from omega.errors import StoreUnavailable
from omega.events import ProgramEnded, StoreCallFailed
from omega.lifecycle.states import State
from omega.model.arrays import integers
from omega.model.exits import Exit, ExitCause
from omega.model.machines import MachineState
from omega.model.programs import Program, Restart
from omega.nodes.agent.agent_task import START_AGAIN_S
from omega.nodes.agent.task_driver import Launch, Stream, TaskKey
from omega.testing.builders import a_claim, a_spec, a_transaction, claims_of_job, evicting
from omega.testing.machine_contract import cores
from omega.testing.steps import a_leased_job, grant, status_of
from tests.unit.nodes.agent.machine import RUN, Machine


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    yield machine
    assert [] == list(machine.store.verify())


def test_what_is_placed_here_runs_with_what_it_must_know(machine: Machine) -> None:
    job = machine.place(tasks=2)
    machine.place(on=machine.other)
    machine.step()
    first, second = machine.driver.launches
    assert machine.keys(job) == [first.key, second.key]
    assert {
        "OMEGA_JOB": str(job.id),
        "OMEGA_JOB_NAME": "job",
        "OMEGA_TASK": "1",
        "OMEGA_TASKS": "2",
        "OMEGA_MACHINE": "m1",
        "OMEGA_RESTARTS": "0",
    } == second.env
    assert 1_000 == second.cpu_milli


def test_a_record_is_there_before_the_program_starts(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = machine.place()
    seen: list[bool] = []
    start = machine.driver.start

    def start_and_look(launch: Launch) -> None:
        seen.append((machine.folder / f"{launch.key}.json").exists())
        start(launch)

    monkeypatch.setattr(machine.driver, "start", start_and_look)
    machine.step()
    assert machine.keys(job) == machine.driver.running
    assert [True] == seen


def test_tasks_without_a_program_are_left_to_virtual_nodes(machine: Machine) -> None:
    job = machine.place(None)
    machine.step()
    machine.step()
    assert [] == machine.driver.launches
    assert State.RUNNING is status_of(machine.store, job).state


@pytest.mark.parametrize(("code", "state"), [(0, State.SUCCEEDED), (3, State.FAILED)])
def test_an_exit_is_reported_and_forgotten(machine: Machine, code: int, state: State) -> None:
    job = machine.place()
    machine.step()
    (key,) = machine.driver.running
    machine.driver.end(key, code)
    machine.step()
    assert [Exit(cause=ExitCause.EXITED, code=code)] == machine.exits(job)
    assert state is status_of(machine.store, job).state
    assert ({}, []) == (machine.driver.exits, list(machine.folder.iterdir()))


def test_outputs_arrive_before_the_exit_does(machine: Machine) -> None:
    job = machine.place()
    machine.step()
    (key,) = machine.driver.running
    machine.driver.said[key, Stream.STDOUT] = b"hello\n"
    machine.driver.end(key)
    machine.step(0.0)
    output = machine.store.output(job.id, 0, "stdout")
    assert output is not None
    assert (6, b"hello\n") == (output.bytes_total, output.tail)


def test_a_program_that_fails_is_started_again_and_then_reported_once(machine: Machine) -> None:
    job = machine.place(Program(command=("x",), restart=Restart(attempts=2, delay_ms=1_000)))
    machine.step()
    for restarts in (1, 2):
        (key,) = machine.driver.running
        machine.driver.end(key, 1)
        machine.step(0.5)
        assert [] == machine.driver.running, "the delay is not over"
        machine.step(1.0)
        assert restarts == machine.driver.launches[-1].restarts
    machine.driver.end(key, 1)
    machine.step()
    assert [Exit(cause=ExitCause.EXITED, code=1, restarts=2)] == machine.exits(job)
    assert 3 == len(machine.driver.launches)


def test_a_cancelled_job_is_stopped_with_grace_and_then_killed(machine: Machine) -> None:
    job = machine.place()
    machine.step()
    (key,) = machine.driver.running
    machine.store.cancel(job.id)
    machine.step()
    assert [(key, "TERM")] == machine.driver.signals
    machine.step(9.0)
    assert [(key, "TERM")] == machine.driver.signals
    machine.step(1.0)
    assert (key, "KILL") == machine.driver.signals[-1]
    machine.driver.kill(key, 9)
    machine.step()
    assert ({}, []) == (machine.driver.exits, list(machine.folder.iterdir()))
    assert [] == machine.exits(job)


def test_a_task_waits_until_the_evicted_one_has_gone(machine: Machine) -> None:
    """The cell gives the room away at once; here two would have it at a time."""
    low = machine.place()
    machine.step()
    (first,) = machine.driver.running
    # The whole machine for one of high precedence, which evicts the other.
    high = a_leased_job(
        machine.store, a_spec(program=RUN, cpu_milli=4_000, precedence=100, name="high")
    )
    claim = evicting(a_claim(0, machine=machine.id, cpu_milli=4_000), (0, low.id, 0))
    outcome = machine.store.commit(a_transaction(claims_of_job(high, claim)))
    assert outcome.accepted.all()

    machine.step()
    assert [first] == machine.driver.running
    assert [(first, "TERM")] == machine.driver.signals
    machine.driver.kill(first)
    machine.step()
    assert machine.keys(high) == machine.driver.running


def test_a_machine_that_an_operator_made_larger_has_room_for_what_is_placed_there(
    machine: Machine,
) -> None:
    """And still none beyond that: a task that was evicted has its time to stop."""
    machine.store.resize(machine.id, cores(8), notice_ms=0)
    jobs = [machine.place(tasks=4) for _ in range(2)]
    machine.step()
    assert 8 == len(machine.driver.running)

    machine.store.cancel(jobs[0].id)
    after = machine.place(tasks=4)
    machine.step()
    assert not set(machine.keys(after)) & set(machine.driver.running)
    for key in machine.driver.running:
        if key.job == jobs[0].id:
            machine.driver.kill(key)
    machine.step()
    assert [*machine.keys(jobs[1]), *machine.keys(after)] == machine.driver.running


def test_a_timeout_ends_a_program_and_fails_its_task(machine: Machine) -> None:
    job = machine.place(Program(command=("x",), timeout_ms=5_000))
    machine.step()
    (key,) = machine.driver.running
    machine.step(5.0)
    assert [(key, "TERM")] == machine.driver.signals
    machine.driver.kill(key)
    machine.step()
    assert [ExitCause.TIMEOUT] == [it.cause for it in machine.exits(job)]


def test_timeouts_hold_while_the_store_is_away(machine: Machine) -> None:
    job = machine.place(Program(command=("x",), timeout_ms=5_000))
    machine.step()
    (key,) = machine.driver.running
    machine.absences = 10**6
    for _ in range(60):
        machine.step(0.1)
    assert [(key, "TERM")] == machine.driver.signals
    machine.driver.kill(key)
    machine.step(60.0)
    assert [] == machine.exits(job)
    machine.absences = 0
    machine.step(60.0)
    assert [ExitCause.TIMEOUT] == [it.cause for it in machine.exits(job)]
    assert any(isinstance(event, StoreCallFailed) for event in machine.events)


def test_a_report_whose_answer_was_lost_is_made_again_and_counts_once(machine: Machine) -> None:
    job = machine.place()
    machine.step()
    (key,) = machine.driver.running
    machine.driver.end(key, 2)
    recorded = machine.store.report_exits

    def record_and_fail(exits: object) -> int:
        recorded(exits)  # type: ignore[arg-type]
        machine.store.report_exits = recorded  # type: ignore[method-assign]
        raise StoreUnavailable("the answer was lost")

    machine.store.report_exits = record_and_fail  # type: ignore[method-assign]
    machine.step()
    machine.step(5.0)
    machine.step(5.0)
    assert [Exit(cause=ExitCause.EXITED, code=2)] == machine.exits(job)
    assert {} == machine.driver.exits


def test_a_program_that_cannot_be_started_fails_with_its_reason(machine: Machine) -> None:
    machine.driver.refuses = "there is no program named nope"
    job = machine.place()
    machine.step()
    machine.step()
    assert [
        Exit(cause=ExitCause.NOT_STARTED, detail="there is no program named nope")
    ] == machine.exits(job)
    assert 0 == machine.agent.running
    (how,) = [it.how for it in machine.events if isinstance(it, ProgramEnded)]
    assert "there is no program named nope" in how
    machine.driver.refuses = ""
    machine.place(tasks=4)
    machine.step()
    assert 4 == len(machine.driver.running), "its room is free again"


def test_what_a_program_said_is_reported_while_it_waits_for_its_restart(machine: Machine) -> None:
    job = machine.place(Program(command=("x",), restart=Restart(attempts=1, delay_ms=60_000)))
    machine.step()
    (key,) = machine.driver.running
    machine.driver.said[key, Stream.STDERR] = b"no such table\n"
    machine.driver.end(key, 1)
    machine.step(0.01)
    machine.step(0.5)

    output = machine.store.output(job.id, 0, "stderr")
    assert output is not None
    assert b"no such table\n" == output.tail
    assert [] == machine.exits(job)


def test_images_need_a_driver_of_containers(machine: Machine) -> None:
    job = machine.place(Program(command=(), image="tool"))
    machine.step()
    machine.step()
    (ended,) = machine.exits(job)
    assert "this machine runs no containers" == ended.detail


@pytest.mark.parametrize("when", ["running", "ended", "restarting", "stopping"])
def test_another_agent_goes_on_where_one_was_killed(machine: Machine, when: str) -> None:
    job = machine.place(
        Program(command=("x",), timeout_ms=50_000, restart=Restart(attempts=1, delay_ms=5_000))
    )
    machine.step()
    (key,) = machine.driver.running
    if when == "ended":
        machine.driver.end(key, 0)
    if when == "restarting":
        machine.driver.end(key, 1)
        machine.step(0.1)
    if when == "stopping":
        machine.store.cancel(job.id)
        machine.step()
    machine.restart_agent()
    machine.step()
    match when:
        case "running":
            assert 1 == len(machine.driver.launches)
            machine.step(50.0)
            assert [(key, "TERM")] == machine.driver.signals, "the timeout counts from the start"
        case "ended":
            assert [Exit(cause=ExitCause.EXITED, code=0)] == machine.exits(job)
        case "restarting":
            assert 1 == len(machine.driver.launches)
            machine.step(5.0)
            assert 1 == machine.driver.launches[-1].restarts
        case _:
            machine.step(10.0)
            assert [(key, "TERM"), (key, "KILL")] == machine.driver.signals


def be_killed_while_the_store_is_away(machine: Machine) -> None:
    """Have the agent see what has ended, and another one go on once the store is back."""
    machine.absences = 10**6
    machine.step()
    machine.restart_agent()
    machine.step()
    machine.absences = 0
    machine.step(60.0)


def test_an_exit_that_could_not_be_reported_outlives_the_agent(machine: Machine) -> None:
    job = machine.place()
    machine.step()
    machine.driver.end(machine.driver.running[0], 3)
    be_killed_while_the_store_is_away(machine)

    assert [Exit(cause=ExitCause.EXITED, code=3)] == machine.exits(job)
    assert [] == list(machine.folder.iterdir())


def test_why_a_program_did_not_start_outlives_the_agent(machine: Machine) -> None:
    job = machine.place()
    machine.driver.refuses = "no such program"
    machine.answers = ("revision", "allocations", "running", "programs")
    be_killed_while_the_store_is_away(machine)

    assert ["no such program"] == [ended.detail for ended in machine.exits(job)]
    assert [] == list(machine.folder.iterdir())


def test_what_a_boot_ended_is_started_again(machine: Machine) -> None:
    job = machine.place()
    machine.step()
    (key,) = machine.driver.running
    machine.driver.exits[key] = Exit(cause=ExitCause.LOST)
    machine.restart_agent()
    machine.step()
    machine.step(START_AGAIN_S)
    assert 2 == len(machine.driver.launches)
    assert [key] == machine.driver.running
    assert [] == machine.exits(job)


def test_a_task_whose_record_is_lost_is_not_started_twice(machine: Machine) -> None:
    job = machine.place()
    machine.step()
    for record in machine.folder.iterdir():
        record.write_text("no JSON")
    machine.restart_agent()
    machine.step()
    assert 1 == len(machine.driver.launches)
    machine.driver.end(machine.keys(job)[0], 0)
    machine.step()
    assert 1 == len(machine.exits(job))


def test_what_nobody_placed_here_is_ended(machine: Machine) -> None:
    stray = TaskKey(99, 0, 1)
    machine.driver.exits[stray] = None
    machine.step()
    machine.step()
    assert (stray, "KILL") == machine.driver.signals[-1]
    machine.driver.kill(stray, 9)
    machine.step()
    assert {} == machine.driver.exits


def test_a_task_that_is_placed_here_anew_is_another_one(machine: Machine) -> None:
    job = machine.place()
    machine.step()
    (first,) = machine.driver.running
    machine.store.set_state(integers([machine.id]), MachineState.DOWN)
    machine.clock.advance(1.0)
    machine.store.lose_tasks(integers([machine.id]))
    machine.store.set_state(integers([machine.id]), MachineState.OPEN)
    (again,) = machine.store.lease("batch", holder="b", jobs_max=9, lease_ms=60_000)
    assert again.id == job.id
    grant(machine.store, again, [0], [machine.id])
    machine.step()
    assert [(first, "TERM")] == machine.driver.signals
    assert [first] == machine.driver.running, "there is room for both, but it is one task"
    machine.driver.kill(first)
    machine.step()
    (second,) = machine.keys(job)
    assert [second] == machine.driver.running
    machine.driver.end(second)
    machine.step()
    assert [Exit(cause=ExitCause.EXITED, code=0)] == machine.exits(job)
    assert State.SUCCEEDED is status_of(machine.store, job).state


def test_programs_that_ended_are_told(machine: Machine) -> None:
    job = machine.place()
    machine.step()
    machine.driver.end(machine.keys(job)[0], 4)
    machine.step()
    (told,) = [event for event in machine.events if isinstance(event, ProgramEnded)]
    assert (job.id, 0, False) == (told.job, told.task, told.is_success)
