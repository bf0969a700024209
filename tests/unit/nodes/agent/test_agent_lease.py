"""An agent and the lease on its machine: what the cell may give away does not run."""

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from omega.errors import NotAllowed
from omega.framework.effects import Effects, Wait
from omega.lifecycle.states import State
from omega.model.arrays import integers
from omega.model.exits import Exit, ExitCause
from omega.model.programs import Program, Restart
from omega.nodes.agent.agent_task import START_AGAIN_S
from omega.nodes.agent.machine_lease import Deadline, MachineLease, holder_of
from omega.nodes.agent.task_driver import Launch
from omega.testing.steps import grant, status_of
from tests.agent.waiting import until
from tests.unit.nodes.agent.held_driver import HeldDriver
from tests.unit.nodes.agent.machine import Machine

LEASE_S = 10.0
"""Renewed after two seconds; tasks are stopped after five and killed after seven and a half."""
US, OTHERS = UUID(int=1), UUID(int=2)
PATIENT = Program(command=("x",), stop_grace_ms=60_000)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path, lease=MachineLease(US, LEASE_S))
    yield machine
    assert [] == list(machine.store.verify())


def test_the_lease_is_renewed_and_the_deadline_put_off_before_anything_starts(
    machine: Machine,
) -> None:
    machine.place()
    machine.step()
    assert [machine.clock.now() + 7.5] == machine.deadlines
    machine.step(1.5)
    assert 1 == len(machine.deadlines), "it is not due"
    machine.step(0.5)
    assert machine.deadlines[-1] == machine.clock.now() + 7.5


def test_an_agent_that_seldom_polls_holds_its_lease_all_the_same(tmp_path: Path) -> None:
    machine = Machine(tmp_path, lease=MachineLease(US, LEASE_S), poll_s=3 * LEASE_S)
    machine.place()
    for _ in range(100):
        machine.step(1.0)

    assert 1 == len(machine.driver.launches)
    assert [] == machine.driver.signals


def test_nothing_starts_without_the_lease(machine: Machine) -> None:
    machine.place()
    machine.absences = 10**6
    for _ in range(30):
        machine.step(1.0)
    assert [] == machine.driver.launches


def test_the_lease_is_renewed_between_starts_that_take_long(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = machine.driver.start

    def start_slowly(launch: Launch) -> None:
        machine.clock.advance(LEASE_S / 4)
        start(launch)

    monkeypatch.setattr(machine.driver, "start", start_slowly)
    machine.place(tasks=4)
    for _ in range(4):
        machine.step()

    assert 4 == len(machine.driver.running)
    assert [] == machine.driver.signals


def test_a_driver_in_a_thread_may_take_longer_than_the_lease(tmp_path: Path) -> None:
    """As a container engine does that is asked for much by a machine with much to do."""
    driver = HeldDriver()
    lease = MachineLease(US, LEASE_S)
    machine = Machine(tmp_path, driver=driver, lease=lease, in_background=True)
    jobs = [machine.place(tasks=2)]
    machine.step()
    until(lambda: 2 == len(driver.running))
    driver.hold()
    jobs.append(machine.place())
    for _ in range(12):
        machine.step(LEASE_S / 6)

    until(lambda: not driver.may_go_on)
    assert 2 == len(driver.running), "it is as busy as before"
    assert machine.clock.now() < machine.deadlines[-1], "the lease is held"
    assert [] == machine.store.expire_machines()
    driver.let_go()
    until(lambda: 3 == len(driver.running))
    machine.step(LEASE_S / 6)
    machine.close()
    assert sorted(key for job in jobs for key in machine.keys(job)) == driver.running
    assert [] == driver.signals
    assert 3 == len(driver.launches), "none was started again"
    assert [] == list(machine.store.verify())


def test_a_restart_waits_for_the_lease(machine: Machine) -> None:
    machine.place(Program(command=("x",), restart=Restart(attempts=1, delay_ms=6_000)))
    machine.step()
    (key,) = machine.driver.running
    machine.driver.end(key, 1)
    machine.step(0.0)
    machine.absences = 10**6
    machine.step(7.0)
    assert [] == machine.driver.running
    machine.absences = 0
    machine.step(10.0)
    machine.step(0.2)
    assert [key] == machine.driver.running


def test_a_renewal_alone_starts_nothing(machine: Machine) -> None:
    """Whether the task still has its place is not known before the machine was asked about."""
    machine.place(Program(command=("x",), restart=Restart(attempts=1, delay_ms=6_000)))
    machine.step()
    (key,) = machine.driver.running
    machine.driver.end(key, 1)
    machine.step(0.0)
    machine.absences = 10**6
    machine.step(7.0)
    machine.answers = ("hold",)
    machine.step(10.0)
    assert machine.deadlines[-1] > machine.clock.now(), "the lease is held again"
    assert [] == machine.driver.running


def test_a_task_that_is_stopping_is_killed_before_its_grace_is_over_if_the_lease_is(
    machine: Machine,
) -> None:
    job = machine.place(PATIENT)
    machine.step()
    (key,) = machine.driver.running
    machine.store.cancel(job.id)
    machine.step(0.2)
    machine.absences = 10**6
    machine.step(7.0)
    assert [(key, "TERM")] == machine.driver.signals
    machine.step(0.6)
    assert (key, "KILL") == machine.driver.signals[-1]


def test_a_machine_that_another_agent_holds_is_refused(machine: Machine) -> None:
    assert machine.store.hold_machine(machine.id, OTHERS, lease_ms=60_000)
    with pytest.raises(NotAllowed, match="another agent holds the machine m1"):
        machine.step()


def test_tasks_are_stopped_and_killed_before_the_lease_runs_out(machine: Machine) -> None:
    job = machine.place(PATIENT)
    machine.step()
    (key,) = machine.driver.running
    machine.absences = 10**6
    machine.step(4.9)
    assert [] == machine.driver.signals
    machine.step(0.2)
    assert [(key, "TERM")] == machine.driver.signals
    machine.step(2.3)
    assert [(key, "TERM")] == machine.driver.signals
    machine.step(0.2)
    assert (key, "KILL") == machine.driver.signals[-1]
    machine.driver.kill(key, 9)
    machine.step(60.0)
    assert 1 == len(machine.driver.launches), "nothing starts while the lease is not held"
    assert [] == machine.exits(job), "it was no fault of the program"


def test_what_is_still_its_own_runs_again_when_the_store_is_back(machine: Machine) -> None:
    job = machine.place(PATIENT)
    machine.step()
    (key,) = machine.driver.running
    machine.absences = 10**6
    machine.step(6.0)
    machine.driver.kill(key)
    machine.step(0.1)
    machine.absences = 0
    machine.step(5.0)
    assert [key] == machine.driver.running
    assert "0" == machine.driver.launches[-1].env["OMEGA_RESTARTS"]
    machine.driver.end(key)
    machine.step(0.2)
    assert State.SUCCEEDED is status_of(machine.store, job).state


def test_what_was_given_away_does_not_run_again(machine: Machine) -> None:
    job = machine.place(PATIENT)
    machine.step()
    (key,) = machine.driver.running
    machine.absences = 10**6
    machine.step(6.0)
    machine.driver.kill(key)
    machine.step(5.0)
    assert [machine.id] == machine.store.expire_machines()
    machine.store.lose_tasks(integers([machine.id]))
    (again,) = machine.store.lease("batch", holder="b", jobs_max=9, lease_ms=60_000)
    grant(machine.store, again, [0], [machine.other])
    machine.absences = 0
    machine.step(5.0)
    machine.step(5.0)
    assert [] == machine.driver.running
    assert {} == machine.driver.exits
    assert State.RUNNING is status_of(machine.store, job).state
    assert [] == machine.store.expire_machines(), "the machine is open again"


def test_an_agent_that_was_stopped_takes_what_the_watchdog_killed_for_no_fault(
    machine: Machine,
) -> None:
    """SIGSTOP for longer than the lease: the watchdog kills, and then the agent goes on."""
    job = machine.place(PATIENT)
    machine.step()
    (key,) = machine.driver.running
    machine.clock.advance(60.0)
    machine.driver.kill(key, 9)
    machine.step(0.1)
    assert [] == machine.exits(job)
    machine.step(START_AGAIN_S)
    assert [key] == machine.driver.running, "nobody has given its place away"


def test_tasks_are_asked_to_stop_at_half_of_the_lease_also_if_the_store_is_there(
    machine: Machine,
) -> None:
    """An agent that was stopped for so long does not know what the watchdog is about to do."""
    machine.place(PATIENT)
    machine.step()
    (key,) = machine.driver.running
    machine.step(5.1)
    assert [(key, "TERM")] == machine.driver.signals


@pytest.mark.parametrize(("call_s", "killed"), [(2.0, False), (3.0, True)])
def test_what_the_watchdog_killed_while_the_store_renewed_the_lease_is_no_fault(
    machine: Machine, call_s: float, *, killed: bool
) -> None:
    """The call began in time and was answered after the deadline that the watchdog knew."""
    job = machine.place(PATIENT)
    machine.step()
    (key,) = machine.driver.running

    def slowly() -> None:
        machine.clock.advance(call_s)
        if machine.clock.now() >= machine.deadlines[-1]:
            machine.driver.kill(key, 9)

    machine.meanwhile["hold"] = slowly
    machine.step(4.9)
    del machine.meanwhile["hold"]
    assert killed == (key not in machine.driver.running)
    assert [] == machine.exits(job)
    machine.step(START_AGAIN_S)
    assert [key] == machine.driver.running, "it still has its place"


def test_a_renewal_that_the_watchdog_cannot_learn_of_does_not_count(machine: Machine) -> None:
    machine.place(PATIENT)
    machine.step()
    (key,) = machine.driver.running
    machine.disk_is_full = True
    machine.step(3.0)
    machine.step(2.1)
    assert [(key, "TERM")] == machine.driver.signals


def test_a_program_that_ended_before_the_lease_did_is_reported(machine: Machine) -> None:
    job = machine.place(PATIENT)
    machine.step()
    (key,) = machine.driver.running
    machine.absences = 10**6
    machine.driver.end(key, 3)
    machine.step(1.0)
    machine.step(60.0)
    machine.absences = 0
    machine.step(5.0)
    assert [Exit(cause=ExitCause.EXITED, code=3)] == machine.exits(job)


def test_the_holder_is_kept_in_the_folder(tmp_path: Path) -> None:
    assert US == holder_of(tmp_path, US)
    assert US == holder_of(tmp_path, OTHERS)
    (tmp_path / "holder").write_text("nobody")
    assert OTHERS == holder_of(tmp_path, OTHERS)


def test_a_deadline_that_cannot_be_read_has_passed(tmp_path: Path) -> None:
    deadline = Deadline(tmp_path)
    assert deadline.read() is None
    deadline.write(12.5)
    assert 12.5 == deadline.read()
    (tmp_path / "deadline").write_text("soon")
    assert float("-inf") == deadline.read()
    deadline.remove()
    deadline.remove()
    assert deadline.read() is None


def test_the_next_agent_lets_tasks_run_until_the_deadline_of_the_one_before(
    machine: Machine, tmp_path: Path
) -> None:
    job = machine.place(PATIENT)
    machine.step()
    (key,) = machine.driver.running
    Deadline(tmp_path).write(machine.deadlines[-1])
    machine.clock.advance(4.0)
    machine.lease = MachineLease.taken_up(tmp_path, US, LEASE_S, machine.clock.now())
    machine.restart_agent()
    machine.step(0.0)
    assert [] == machine.driver.signals
    machine.driver.end(key)
    machine.step()
    assert [Exit(cause=ExitCause.EXITED, code=0)] == machine.exits(job)


def test_tasks_of_an_agent_that_held_no_lease_go_on_under_the_next_that_holds_one(
    tmp_path: Path,
) -> None:
    machine = Machine(tmp_path)
    machine.place(PATIENT)
    machine.step()
    machine.lease = MachineLease.taken_up(tmp_path, US, LEASE_S, machine.clock.now())
    machine.restart_agent()
    for _ in range(10):
        machine.step(0.1 * LEASE_S)
    assert ([], 1) == (machine.driver.signals, len(machine.driver.running))
    assert [] == machine.store.expire_machines()

    machine.lease = MachineLease.taken_up(tmp_path, US, LEASE_S, machine.clock.now())
    machine.restart_agent()
    machine.absences = 1_000
    machine.step(0.31 * LEASE_S)
    assert ["TERM"] == [signal for _, signal in machine.driver.signals]


def test_an_agent_that_ends_its_tasks_holds_the_machine_until_they_have_ended(
    machine: Machine,
) -> None:
    """Or the cell would place them elsewhere while they are given their time to stop."""
    job = machine.place(PATIENT)
    machine.step()
    (key,) = machine.driver.running
    steps = machine.agent.wind_down()
    assert drive_until_waiting(machine, steps)
    machine.place(PATIENT)
    for _ in range(8):
        machine.clock.advance(4.0)
        assert drive_until_waiting(machine, steps)
    assert [(key, "TERM")] == machine.driver.signals
    assert [key] == machine.driver.running, "what is placed here meanwhile is not started"
    assert [] == machine.store.expire_machines()
    assert machine.keys(job) == [key], "it still has its place"
    machine.driver.kill(key)
    assert drive_until_waiting(machine, steps), "it sees the end"
    assert not drive_until_waiting(machine, steps)
    assert [] == machine.exits(job)


def drive_until_waiting(machine: Machine, steps: Effects[None]) -> bool:
    """Answer effects until the agent waits; return whether it goes on after that."""
    answer: object = None
    try:
        while not isinstance(effect := steps.send(answer), Wait):
            answer = machine.answer(effect)
    except StopIteration:
        return False
    return True
