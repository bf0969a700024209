"""What an agent asks of its store, and how often."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from threading import Event

import pytest

from omega.framework.effects import Call, Effect, Effects, Wait, drive
from omega.lifecycle.states import State
from omega.model.programs import Program, Restart
from omega.nodes.agent.agent import STORE_PAUSE_S_MAX
from omega.nodes.agent.placements import SPECS_KEPT
from omega.testing.builders import a_spec
from omega.testing.steps import a_leased_job, grant, status_of
from tests.unit.nodes.agent.machine import RUN, Machine


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    yield machine
    assert [] == list(machine.store.verify())


def test_an_idle_agent_asks_for_one_row_and_nothing_else(machine: Machine) -> None:
    machine.place()
    machine.step()
    machine.step()
    asked: list[str] = []

    def answer(effect: Effect) -> object:
        assert isinstance(effect, Call)
        asked.append(effect.operation)
        return effect.make(machine.store)

    for _ in range(4):
        machine.place(on=machine.other)
        machine.clock.advance(1.0)
        drive(machine.agent.step(), answer)
    assert ["revision"] * 4 == asked


def test_what_a_job_is_is_asked_once_unless_many_others_have_come(machine: Machine) -> None:
    asked: list[int] = []
    machine.meanwhile["programs"] = lambda: asked.append(1)

    def run_to_its_end() -> None:
        machine.step()
        (key,) = machine.driver.running
        machine.driver.end(key)
        machine.step()
        machine.step()

    job = a_leased_job(machine.store, a_spec(4, program=RUN))
    for task in range(3):
        grant(machine.store, job, [task], [machine.id])
        run_to_its_end()
    assert 1 == len(asked)

    for _ in range(SPECS_KEPT + 1):
        machine.place()
        run_to_its_end()
    asked.clear()
    grant(machine.store, job, [3], [machine.id])
    run_to_its_end()
    assert 1 == len(asked)
    assert State.SUCCEEDED is status_of(machine.store, job).state


def test_an_agent_asks_soon_after_it_has_freed_room_and_then_less_often(machine: Machine) -> None:
    job = machine.place()
    for _ in range(20):  # until it asks as rarely as it ever does
        machine.step()
    (key,) = machine.keys(job)
    machine.driver.end(key, 0)
    stop, asked_s, began_s = Event(), list[float](), machine.clock.now()

    def answer(effect: Effect) -> object:
        if isinstance(effect, Wait):
            machine.clock.advance(effect.seconds)
            if machine.clock.now() > began_s + 2:
                stop.set()
            return None
        assert isinstance(effect, Call)
        if effect.operation == "revision":
            asked_s.append(machine.clock.now())
        return machine.answer(effect)

    def nothing() -> Effects[None]:
        yield from ()

    drive(machine.agent.life(stop, nothing), answer)

    pauses_s = [later - earlier for earlier, later in pairwise(asked_s)]
    assert pauses_s[0] < 0.005
    assert pauses_s == pytest.approx(sorted(pauses_s))
    assert 0.1 == pytest.approx(pauses_s[-1])


def asked_by(machine: Machine) -> list[str]:
    """Let the agent take two steps; return what it asked its store."""
    asked: list[str] = []

    def answer(effect: Effect) -> object:
        assert isinstance(effect, Call)
        asked.append(effect.operation)
        return machine.answer(effect)

    for _ in range(2):
        machine.clock.advance(0.2)
        drive(machine.agent.step(), answer)
    return asked


def test_what_an_agent_has_reported_itself_is_not_read_again(machine: Machine) -> None:
    job = machine.place(tasks=3)
    machine.step()
    machine.step()
    machine.driver.end(machine.keys(job)[0], 0)

    assert ["revision", "exits", "revision"] == [it for it in asked_by(machine) if it != "outputs"]
    assert 2 == len(machine.driver.running)


def test_what_changes_while_it_reports_is_read(machine: Machine) -> None:
    job = machine.place(tasks=2)
    machine.step()
    machine.step()
    machine.driver.end(machine.keys(job)[0], 0)

    def place() -> None:
        machine.meanwhile.clear()
        machine.place()

    machine.meanwhile["exits"] = place

    assert "allocations" in asked_by(machine)
    assert 2 == len(machine.driver.running)


def test_after_a_report_of_a_task_that_was_lost_the_next_change_is_read(machine: Machine) -> None:
    """Such a report raises no revision, and the change that comes next raises it by one."""
    job = machine.place(tasks=2)
    machine.step()
    machine.step()
    key, other = machine.keys(job)
    machine.driver.end(key, 0)

    def lose() -> None:
        machine.meanwhile.clear()
        machine.end_elsewhere(key)

    machine.meanwhile["exits"] = lose

    assert "allocations" in asked_by(machine)
    assert [other] == list(machine.driver.running)


def test_a_failure_in_a_gang_makes_the_agent_read_what_it_ended(machine: Machine) -> None:
    gang = machine.place_gang()
    machine.step()
    machine.step()
    first, second = [key for key in machine.keys(gang) if key in machine.driver.running]
    machine.driver.end(first, 1)

    assert "running" in asked_by(machine)
    assert (second, "TERM") in machine.driver.signals


def test_restarts_do_not_make_an_agent_ask_a_store_that_is_away(machine: Machine) -> None:
    machine.place(Program(command=("x",), restart=Restart(attempts=1_000, delay_ms=0)))
    machine.step()
    machine.absences = unanswered = 10**6
    seconds, steps_a_second = 20, 50

    for _ in range(seconds * steps_a_second):
        for key in machine.driver.running:
            machine.driver.end(key, 1)
        machine.step(1 / steps_a_second)

    assert len(machine.driver.launches) > seconds * steps_a_second / 4, "it was restarted"
    settled = seconds / STORE_PAUSE_S_MAX
    doublings = 6  # of the pause, from 0.1 s until it is the longest
    assert unanswered - machine.absences <= settled + doublings
    machine.absences = 0
