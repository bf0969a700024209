"""What the records of an agent's tasks say of the engines of containers."""

import json
from pathlib import Path

import pytest

from omega.model.programs import Program
from omega.nodes.agent.records import Records, engines_of
from tests.unit.nodes.agent.fake_driver import FakeDriver
from tests.unit.nodes.agent.machine import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_the_records_name_the_engine_of_containers_that_run(machine: Machine) -> None:
    driver = machine.containers = FakeDriver()
    machine.engine = "unix:///engine"
    machine.restart_agent()
    machine.place()
    machine.step()
    assert [] == engines_of(machine.folder)
    in_containers = Program(command=("x",), image="image")
    jobs = [machine.place(in_containers) for _ in range(2)]
    machine.step()
    assert 2 == len(driver.running)
    assert [machine.engine] == engines_of(machine.folder)

    driver.end(machine.keys(jobs[0])[0])
    machine.step()
    assert [machine.engine] == engines_of(machine.folder)
    machine.store.cancel(jobs[1].id)
    machine.step()
    (key,) = driver.running
    assert [(key, "TERM")] == driver.signals
    machine.restart_agent()
    assert [machine.engine] == engines_of(machine.folder), "it was asked to stop, and still runs"
    driver.kill(key)
    machine.step()
    assert [] == engines_of(machine.folder)


def test_a_record_of_an_earlier_version_names_no_engine(machine: Machine) -> None:
    machine.place()
    machine.step()
    (record,) = machine.folder.iterdir()
    said = json.loads(record.read_text())
    del said["engine"]
    record.write_text(json.dumps(said))

    (task,) = Records(machine.folder).read(0.0)
    assert task.runs
    assert [] == engines_of(machine.folder)


def test_the_engine_of_a_container_is_on_record_once_an_agent_has_seen_it(machine: Machine) -> None:
    """An agent of an earlier version did not note it, and the container may run for months."""
    driver = machine.containers = FakeDriver()
    machine.engine = "unix:///engine"
    machine.restart_agent()
    machine.place(Program(command=("x",), image="image"))
    machine.step()
    assert 1 == len(driver.running)
    (record,) = machine.folder.iterdir()
    record.write_text(json.dumps({**json.loads(record.read_text()), "engine": ""}))
    machine.restart_agent()
    machine.step()
    assert [machine.engine] == engines_of(machine.folder)
