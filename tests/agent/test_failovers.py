"""Agents whose database fails over while their tasks run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from omega.errors import StoreUnavailable
from omega.lifecycle.states import State
from omega.store.status import JobStatus
from tests.agent.conftest import CellAtWork, cell_in
from tests.fixtures.failovers import Pair
from tests.fixtures.pairs import OneServer

pytestmark = pytest.mark.postgres

MEETS = """
exec 9> {folder}/$OMEGA_JOB.$OMEGA_TASK.lock
flock -n 9 || echo $OMEGA_TASK >> {folder}/met
echo $OMEGA_TASK >> {folder}/$OMEGA_JOB_NAME.began
while [ ! -e {folder}/$OMEGA_JOB_NAME.gate ]; do sleep 0.05; done
"""
"""A program that holds a lock of its task, and writes down if another copy holds it."""
TASKS = 4
"""As many as two agents have room for."""


@pytest.fixture
def pair(server: OneServer) -> Pair:
    return Pair(server)


@pytest.fixture
def two(pair: Pair, tmp_path: Path) -> Iterator[CellAtWork]:
    """A cell whose two agents are full with the four tasks of a job."""
    with cell_in(tmp_path, pair.url) as cell:
        for name in ("m1", "m2"):
            cell.start_agent(name=name)
        yield cell


def submit(cell: CellAtWork, name: str) -> int:
    program = MEETS.format(folder=cell.folder)
    shape = (f"--name={name}", f"--tasks={TASKS}", "--cpu=1", "--memory=16MiB")
    return cell.submitted(*shape, "--", "sh", "-c", program)


def begun(cell: CellAtWork, name: str) -> list[str]:
    """Return the tasks of a job that have begun, each as often as it has."""
    path = cell.folder / f"{name}.began"
    return sorted(path.read_text().split()) if path.exists() else []


def wait_until_all_run(cell: CellAtWork, name: str) -> None:
    cell.started.wait_for(lambda: TASKS == len(begun(cell, name)))


def status(cell: CellAtWork, job: int) -> JobStatus | None:
    """Return what the database says of a job, as soon as it answers."""
    found: list[JobStatus | None] = []

    def answers() -> bool:
        try:
            found.append(cell.store.job(job))
        except StoreUnavailable:
            return False
        return True

    cell.started.wait_for(answers)
    return found[0]


def wait_for_success(cell: CellAtWork, job: int) -> None:
    def has_succeeded() -> bool:
        told = status(cell, job)
        return told is not None and told.state is State.SUCCEEDED

    cell.started.wait_for(has_succeeded)


def open_gate(cell: CellAtWork, name: str) -> None:
    (cell.folder / f"{name}.gate").touch()


def test_tasks_run_once_through_a_synchronous_failover(pair: Pair, two: CellAtWork) -> None:
    pair.make_standby(synchronous=True)
    job = submit(two, "lasting")
    wait_until_all_run(two, "lasting")

    pair.fail_over()
    assert status(two, job) is not None
    open_gate(two, "lasting")
    wait_for_success(two, job)

    assert ["0", "1", "2", "3"] == begun(two, "lasting")
    assert not (two.folder / "met").exists()
    told = status(two, job)
    assert told is not None
    assert TASKS == told.ended


def test_what_a_lossy_promotion_has_forgotten_is_ended_and_the_rest_goes_on(
    pair: Pair, two: CellAtWork
) -> None:
    """One job is over in the part that is lost, one is placed in it, and one is submitted in it."""
    over, waiting = submit(two, "over"), submit(two, "waiting")
    wait_until_all_run(two, "over")
    pair.make_standby(synchronous=False)
    pair.cut_off()
    open_gate(two, "over")
    wait_until_all_run(two, "waiting")
    forgotten = submit(two, "forgotten")

    pair.fail_over()

    assert status(two, forgotten) is None
    open_gate(two, "waiting")
    for job in (over, waiting):
        wait_for_success(two, job)
    two.started.wait_for(lambda: not two.processes())
    assert [] == begun(two, "forgotten")
