"""Reports of exits while somebody has locked jobs."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from omega.events import StoreCallFailed
from omega.framework.effects import drive
from omega.lifecycle.states import State
from omega.model.jobs import LeasedJob
from omega.nodes.agent.exit_reporter import PAUSE_S_MAX, PAUSE_S_MIN
from omega.testing.steps import status_of
from tests.unit.nodes.agent.machine import LOCK_WAIT_S, Machine


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    yield machine
    assert [] == list(machine.store.verify())


def ended(machine: Machine, number: int) -> list[int]:
    """Run jobs of one task, and end their programs; return the jobs."""
    jobs: list[LeasedJob] = [machine.place() for _ in range(number)]
    machine.step()
    for key in machine.driver.running:
        machine.driver.end(key)
    return [job.id for job in jobs]


def unreported(machine: Machine) -> list[int]:
    return sorted({key.job for key in machine.driver.exits})


def test_a_locked_job_holds_up_the_exits_of_no_other(machine: Machine) -> None:
    jobs = ended(machine, 4)
    machine.locked = {jobs[1]}
    machine.step()
    assert ([jobs], jobs) == (machine.reports, unreported(machine))
    machine.step()
    machine.step()
    assert [jobs[1]] == unreported(machine)
    assert [jobs, *([job] for job in jobs)] == machine.reports


def test_a_step_waits_for_one_lock(machine: Machine) -> None:
    jobs = ended(machine, 4)
    machine.locked = set(jobs)
    for _ in range(5):
        before_s = machine.clock.now()
        machine.step(0.0)
        assert before_s + LOCK_WAIT_S == machine.clock.now()


def test_a_locked_job_is_tried_again_after_pauses_that_double(machine: Machine) -> None:
    (job,) = ended(machine, 1)
    machine.locked = {job}
    tries_s: list[float] = []
    for _ in range(1_000):
        known = len(machine.reports)
        machine.step(0.1)
        tries_s += [machine.clock.now()] * (len(machine.reports) - known)
    pauses_s = [after - before - LOCK_WAIT_S for before, after in pairwise(tries_s)]
    assert pauses_s[:5] == pytest.approx([PAUSE_S_MIN, 4.0, 8.0, PAUSE_S_MAX, PAUSE_S_MAX], abs=0.2)
    failed = [event for event in machine.events if isinstance(event, StoreCallFailed)]
    assert [f"exits of job {job}"] * len(tries_s) == [event.what for event in failed]

    machine.locked = set()
    machine.step(PAUSE_S_MAX)
    assert [] == unreported(machine)
    assert 1 == len(machine.store.exits(job))


def test_when_one_lock_goes_the_others_are_tried_at_once(machine: Machine) -> None:
    jobs = ended(machine, 2)
    machine.locked = set(jobs)
    for _ in range(200):
        machine.step(0.1)
    machine.locked = set()
    while len(unreported(machine)) == len(jobs):
        machine.step(0.1)
    machine.step(0.1)
    assert [] == unreported(machine)


def test_before_tasks_are_given_up_all_exits_are_reported(machine: Machine) -> None:
    (job,) = ended(machine, 1)
    machine.locked = {job}
    for _ in range(200):
        machine.step(0.1)
    machine.locked = set()
    drive(machine.agent.wind_down(), machine.answer)
    assert 1 == len(machine.store.exits(job))


def test_a_new_exit_does_not_wait_for_a_locked_job(machine: Machine) -> None:
    (first,) = ended(machine, 1)
    machine.locked = {first}
    machine.step()
    second = machine.place()
    machine.step()
    (key,) = machine.driver.running
    machine.driver.end(key)
    machine.step(0.0)
    assert [first] == unreported(machine)
    assert State.SUCCEEDED is status_of(machine.store, second).state
