"""An agent whose disk is full: what cannot be written is not started, and not given up either."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from omega.events import AgentWarned
from omega.nodes.agent.task_driver import DiskFull, Launch
from tests.unit.nodes.agent.machine import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(tmp_path)
    yield machine
    assert [] == list(machine.store.verify())


def test_nothing_starts_while_the_disk_takes_no_record(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, text: str) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr("omega.nodes.agent.records.write_small", refuse)
        machine.place(tasks=4)
        machine.step()
        machine.step(1.0)
        assert [] == machine.driver.launches
        assert 0 == machine.agent.running
    machine.step(1.0)
    assert 4 == len(machine.driver.running), "all of the machine's room is there"


def test_a_start_that_the_disk_refuses_is_tried_again(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(launch: Launch) -> None:
        raise DiskFull("No space left on device")

    with monkeypatch.context() as full:
        full.setattr(machine.driver, "start", refuse)
        job = machine.place(tasks=4)
        machine.step()
        machine.step(1.0)
        assert 0 == machine.agent.running
    assert [] == machine.exits(job)
    warnings = [event for event in machine.events if isinstance(event, AgentWarned)]
    assert 4 == len(warnings), "each task is told once"
    assert "No space left on device" in warnings[0].why
    machine.step(1.0)
    assert 4 == len(machine.driver.running), "all of the machine's room is there"
