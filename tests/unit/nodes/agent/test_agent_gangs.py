"""Gangs: an agent tells each task where the others run."""

from pathlib import Path

import pytest

from omega.errors import StoreUnavailable
from omega.model.programs import Program, Restart
from tests.unit.nodes.agent.machine import RUN, Machine

MEETING = ("MASTER_ADDR", "MASTER_PORT", "RANK", "LOCAL_RANK", "WORLD_SIZE")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_gang_is_told_where_its_tasks_run(machine: Machine) -> None:
    job = machine.place_gang()
    machine.step()

    for task, launch in zip((0, 2), machine.driver.launches, strict=True):
        assert ("machine-1", "machine-2", "machine-1", "machine-2") == launch.peers
        assert "machine-1,machine-2,machine-1,machine-2" == launch.env["OMEGA_MACHINES"]
        assert tuple(launch.defaults) == MEETING
        assert {
            "MASTER_ADDR": "machine-1",
            "MASTER_PORT": str(20_000 + job.id),
            "RANK": str(task),
            "LOCAL_RANK": "0",
            "WORLD_SIZE": "4",
        } == launch.defaults


def test_who_lost_its_room_is_stopped_though_a_call_about_those_who_got_it_fails(
    machine: Machine,
) -> None:
    first = machine.place(tasks=4)
    machine.step()
    machine.store.cancel(first.id)
    machine.place_gang()
    machine.place(tasks=2)

    def is_away() -> None:
        raise StoreUnavailable("the server is away")

    machine.meanwhile["addresses"] = is_away
    machine.step()

    assert 4 == len(machine.driver.launches)
    assert ["TERM"] * 4 == [signal for _, signal in machine.driver.signals]


def test_other_jobs_are_told_nothing_and_nothing_is_asked_for_them(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(jobs: object) -> dict[int, dict[int, str]]:
        raise AssertionError(jobs)

    monkeypatch.setattr(machine.store, "addresses", asked)
    machine.place(tasks=2)
    machine.step()

    assert [()] * 2 == [launch.peers for launch in machine.driver.launches]
    assert [{}] * 2 == [dict(launch.defaults) for launch in machine.driver.launches]
    assert not any("OMEGA_MACHINES" in launch.env for launch in machine.driver.launches)


def test_a_gang_that_is_over_elsewhere_still_starts_here(machine: Machine) -> None:
    """Its task may have waited here for room until the others were through."""
    job = machine.place_gang()
    for key in machine.keys(job)[1::2]:
        machine.end_elsewhere(key)
    machine.step()

    assert [("machine-1", "", "machine-1", "")] * 2 == [
        launch.peers for launch in machine.driver.launches
    ]


def test_the_next_agent_restarts_a_task_with_the_same_addresses(machine: Machine) -> None:
    """The gang may be partly over by then."""
    job = machine.place_gang(Program(command=("it",), restart=Restart(attempts=1, delay_ms=0)))
    machine.step()
    first, second = machine.keys(job)[::2]
    machine.driver.end(second)
    machine.step()
    machine.restart_agent()
    machine.driver.end(first, 1)
    machine.step()
    machine.step()

    (again,) = machine.driver.launches[2:]
    assert (first, 1) == (again.key, again.restarts)
    assert machine.driver.launches[0].peers == again.peers


def test_a_gang_waits_while_nobody_says_where_it_runs(machine: Machine) -> None:
    machine.place_gang(RUN)
    machine.absences, machine.answers = 1, ("revision", "allocations", "running", "programs")
    machine.step()
    assert [] == machine.driver.launches

    machine.step(after_s=5.0)
    assert 2 == len(machine.driver.launches)
