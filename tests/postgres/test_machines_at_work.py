"""Machines that drain, shrink, fail and vanish while schedulers run: the work moves elsewhere."""

from collections.abc import Mapping

import psycopg
import pytest

from omega.lifecycle.states import State
from omega.model.arrays import integers
from omega.model.machines import MachineState
from omega.model.resources import Kind
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell, a_group, a_spec
from omega.testing.steps import places, row_of
from tests.fixtures.command_line import Omega, Started

MACHINES = 10
JOBS = 8
GANG = 4
SOON = {
    "OMEGA_LEASE_MS": "2000",
    "OMEGA_HEARTBEAT_INTERVAL_MS": "200",
    "OMEGA_RESCUE_INTERVAL_MS": "100",
    "OMEGA_POLL_INTERVAL_MS": "20",
    "OMEGA_BACKOFF_MAX_MS": "200",
}
"""Settings by which whatever is due is done soon."""


class Cell:
    """Ten machines of eight cores, two schedulers, and jobs that run on and on."""

    def __init__(self, url: str, store: PostgresStore, started: Started) -> None:
        self.url = url
        self.store = store
        self.started = started
        store.add_machines(a_cell(MACHINES, cpu_milli=8_000))
        gang = a_group(GANG, different_machines=True)
        self.jobs = store.submit(
            [a_spec(3, precedence=10 * (number % 3)) for number in range(JOBS)]
        )
        self.gangs = store.submit([a_spec(groups=[gang], minimum=GANG) for _ in range(2)])
        self.schedulers = [started("scheduler", "run", "batch", f"--replica={n}") for n in "ab"]

    def wait_until_all_runs(self) -> None:
        """Wait until every task has a place on a machine that may keep it; all holds meanwhile."""
        self.started.wait_for(self._all_runs)

    def _all_runs(self) -> bool:
        assert [] == list(self.store.verify())
        # In this order: what is cleared after a look at the jobs would be overlooked.
        if self.store.notices() or self.store.use().stranded:
            return False
        everybody = len(self.jobs) + len(self.gangs)
        return {State.RUNNING: everybody} == self.store.use().jobs_by_state

    def kill_a_scheduler(self) -> None:
        """End one without warning."""
        victim = self.schedulers.pop()
        self.started.processes.remove(victim)
        victim.kill()
        victim.wait()

    def machines_of(self, job: int) -> list[int]:
        """Return the ids of the machines on which a job runs."""
        return sorted(
            machine for (number, _), machine in places(self.store).items() if number == job
        )

    def causes(self, job: int) -> Mapping[str, int]:
        """Count the forced ends of a job's tasks by their cause."""
        with psycopg.connect(self.url) as connection:
            return dict(
                connection.execute(
                    "SELECT cause, count(*) FROM omega.ended_task WHERE job_id = %s GROUP BY cause",
                    (job,),
                ).fetchall()
            )


@pytest.fixture
def cell(
    database_url: str,
    store: PostgresStore,
    started: Started,
    monkeypatch: pytest.MonkeyPatch,
) -> Cell:
    """A cell at work, all of whose tasks have a place."""
    for name, value in {"OMEGA_DATABASE_URL": database_url, **SOON}.items():
        monkeypatch.setenv(name, value)
    cell = Cell(database_url, store, started)
    cell.wait_until_all_runs()
    return cell


def test_work_moves_off_machines_that_vanish_fail_or_shrink_and_gangs_move_whole(
    omega: Omega, cell: Cell
) -> None:
    first, second = cell.gangs
    drained = cell.machines_of(first)[0]
    kept = {task for task, machine in places(cell.store).items() if machine == drained}
    assert 0 == omega("cell", "drain", f"machine-{drained}").code

    # Somebody marks a machine as gone and is killed before the second step; so is a scheduler.
    vanished = next(m for m in cell.machines_of(second) if m != drained)
    cell.store.set_state(integers([vanished]), MachineState.GONE)
    cell.kill_a_scheduler()
    cell.wait_until_all_runs()
    assert {"lost": GANG} == cell.causes(second)
    assert GANG == len(set(cell.machines_of(second)) - {drained, vanished})

    failed = next(m for m in cell.machines_of(second) if m != drained)
    ran = omega("cell", "down", f"machine-{failed}")
    assert f"1 machine is down: machine-{failed}." in ran.out
    cell.wait_until_all_runs()
    assert {"lost": 2 * GANG} == cell.causes(second)

    closed = {drained, vanished, failed}
    small = max(set(range(1, MACHINES + 1)) - closed, key=lambda m: int(used(cell, m)))
    ran = omega("cell", "resize", f"machine-{small}", "--cpu", 1, "--notice", "300ms")
    assert 0 == ran.code, ran.err
    cell.wait_until_all_runs()

    live = places(cell.store)
    assert used(cell, small) <= 1_000
    assert not {vanished, failed} & set(live.values())
    assert kept >= {task for task, machine in live.items() if machine == drained}
    assert len(live) == 3 * JOBS + 2 * GANG
    assert [GANG, GANG] == [len(set(cell.machines_of(gang))) for gang in cell.gangs]
    assert any("resized" in cell.causes(job) for job in cell.jobs + cell.gangs)


def test_machines_that_are_opened_or_added_take_what_waited_for_room(
    omega: Omega, cell: Cell
) -> None:
    names = [f"machine-{number}" for number in range(1, MACHINES + 1)]
    assert 0 == omega("cell", "drain", *names[1:]).code
    assert 0 == omega("cell", "resize", *names[1:], "--cpu", 0, "--memory", 0, "--notice", 0).code
    cell.started.wait_for(lambda: State.PARKED in cell.store.use().jobs_by_state)

    assert 0 == omega("cell", "open", *names[1:4]).code
    assert 0 == omega("cell", "resize", *names[1:4], "--cpu", 8, "--memory", "16GiB").code
    # All but one gang have 28 tasks of a core, which fill three machines at most: the other gang
    # needs room on four more.
    added = [f"new-{number}" for number in (1, 2, 3)]
    assert 0 == omega("cell", "add", *added, "--cpu", 8, "--memory", "16GiB").code
    cell.wait_until_all_runs()

    new = {MACHINES + 1, MACHINES + 2, MACHINES + 3}
    assert set(places(cell.store).values()) <= {1, 2, 3, 4} | new


def used(cell: Cell, machine: int) -> int:
    """Return how many thousandths of cores are used of a machine."""
    return int(row_of(cell.store, machine).used[0, Kind.CPU_MILLI])
