"""Failovers under load: what was acknowledged, by a record kept outside of the database.

A standby that is synchronous has all of it. One that lacked some has exactly what it had heard, and
then it is for the processes to forget what was lost.
"""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np
import pytest

from omega.clock import RealClock
from omega.model.arrays import Ids, integers
from omega.model.machines import Machines, MachineState
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell, a_spec
from tests.fixtures.at_work import wait_until
from tests.fixtures.doses import Dose, Tallier
from tests.fixtures.failovers import Pair, Rows, differences
from tests.fixtures.outside_record import Record, Tables, Told
from tests.fixtures.pairs import OneServer
from tests.fixtures.recorded_cells import RecordedCell
from tests.fixtures.workers import Workers, workers

pytestmark = pytest.mark.postgres

MACHINES = 20
LARGE_CPU_MILLI = 64_000
"""More than a usual machine has: such a job is parked until a large machine comes."""
ANSWERS_MAX = 60
"""At most so many answers come between two failovers before the primary is killed."""

SYNCHRONOUS = "acknowledged, through synchronous failovers"
LOSSY = "acknowledged, in the part that a lossy promotion kept, or since"
NO_MACHINES = integers([])
LASTING = "SELECT DISTINCT job_id FROM omega.allocation"
STATE = "SELECT state::text FROM omega.job WHERE id = "


class Cell(RecordedCell):
    """A cell on a pair of servers, under load."""

    def __init__(self, pair: Pair, store: PostgresStore, load: Workers) -> None:
        super().__init__(pair.url, store, load)
        self.pair = pair

    def submit_large(self, name: str) -> int:
        """Submit a job for which there is no room."""
        asked = RealClock().now()
        spec = a_spec(name=name, cpu_milli=LARGE_CPU_MILLI, duration_ms=1)
        (number,) = self.store.submit([spec])
        at = RealClock().now()
        self.entries.append(Told(who="test", asked=asked, at=at, jobs={number: name}))
        self.wait_for_state(number, "parked")
        return number

    def wait_for_state(self, job: int, state: str) -> None:
        wait_until(lambda: self.did(f"{STATE}{job}") == [(state,)], f"{job} to be {state}")

    def fail_over(self, kind: str, tally: Tallier) -> float:
        """Kill the primary, promote its standby, wait until all are back; return when it was."""
        asked = self.pair.fail_over()
        self.wait_for_all(asked, f"{kind} promotion", tally)
        return asked

    def clear(self, machines: Ids) -> None:
        """End what lasts, and take these machines away."""
        for (job,) in self.did(LASTING):
            assert isinstance(job, int)
            self.store.cancel(job)
        self.store.set_state(machines, MachineState.GONE)


@pytest.fixture
def cell(server: OneServer, tmp_path: Path, dose: Dose) -> Iterator[Cell]:
    """A cell at work."""
    pair = Pair(server)
    with ExitStack() as stack:
        store = stack.enter_context(closing(PostgresStore(pair.url)))
        store.add_machines(a_cell(MACHINES))
        submitters = dose(short=1, long=2)
        load = stack.enter_context(workers(pair.url, tmp_path, submitters=submitters))
        yield Cell(pair, store, load)
        assert {0} == set(load.end().values())


def test_a_synchronous_failover_loses_nothing(cell: Cell, dose: Dose, tally: Tallier) -> None:
    rng = np.random.default_rng(20)
    record = Record()
    for number in range(dose(short=1, long=100)):
        with tally("primary killed under load, its synchronous standby promoted") as row:
            row.tried += 1
            cell.pair.make_standby(synchronous=True)
            job = cell.submit_large(f"large-{number}")
            cell.wait_for_answers(int(rng.integers(1, ANSWERS_MAX)))
            cell.fail_over("synchronous", tally)
            acknowledged = Record.of(cell.hear())
            assert Record() == Tables.read(cell.pair.primary.url).split(acknowledged)[1]
            machines = cell.store.add_machines(large_machine(number, "new"))
            cell.wait_for_state(job, "succeeded")
            with cell.load.paused():
                cell.settle()
                new = Record.of(cell.take())
                record.join(new)
                cell.assert_there(record, new, SYNCHRONOUS, tally)
                cell.clear(machines)
            row.survived += 1


def test_a_lossy_promotion_is_forgotten_by_all(cell: Cell, dose: Dose, tally: Tallier) -> None:
    rng = np.random.default_rng(21)
    record, lost = Record(), Record()
    for number in range(dose(short=1, long=50)):
        with tally("primary killed under load, a standby promoted that lacked some") as row:
            row.tried += 1
            job = cell.submit_large(f"large-{number}")
            cell.store.register_machine(changing_machine("kept", 5_000))
            cell.pair.make_standby(synchronous=False)
            cell.pair.cut_off()
            kept, kept_tables = Rows.read(cell.pair.standby), Tables.read(cell.pair.standby.url)
            lose_something(cell, number, job)
            cell.wait_for_answers(int(rng.integers(1, ANSWERS_MAX)))
            promoted_at = cell.fail_over("lossy", tally)
            machines = cell.store.add_machines(large_machine(number, "new"))
            cell.wait_for_state(job, "succeeded")
            with cell.load.paused():
                cell.settle()
                assert [] == list(differences(kept, cell.pair.primary))
                new, newly_lost = parts_of(cell.take(), kept_tables, promoted_at, promoted_at)
                record.join(new)
                lost.join(newly_lost)
                tables = cell.assert_there(record, new, LOSSY, tally)
                assert_forgotten(tables, record, lost, newly_lost, tally)
                cell.clear(machines)
            row.survived += 1


def test_what_two_primaries_granted_is_there_or_forgotten(
    cell: Cell, tmp_path: Path, dose: Dose, tally: Tallier
) -> None:
    """A standby is promoted while its primary works on: both have clients, until one is fenced."""
    record, lost = Record(), Record()
    for number in range(dose(short=1, long=20)):
        with tally("standby promoted beside its primary, which is fenced later") as row:
            row.tried += 1
            cell.pair.make_standby(synchronous=False)
            cell.wait_for_answers(ANSWERS_MAX)
            cell.pair.cut_off()
            kept = Tables.read(cell.pair.standby.url)
            cell.pair.standby.promote()
            theirs = work_beside(cell, tmp_path / f"beside-{number}")
            until, since = cell.pair.fence()
            cell.wait_for_all(since, "fence of the old primary", tally)
            with cell.load.paused():
                cell.settle()
                new, newly_lost = parts_of(cell.take(), kept, until, since)
                new.join(theirs)
                record.join(new)
                lost.join(newly_lost)
                tables = cell.assert_there(record, new, LOSSY, tally)
                assert_forgotten(tables, record, lost, newly_lost, tally)
                cell.clear(NO_MACHINES)
            row.survived += 1


def work_beside(cell: Cell, folder: Path) -> Record:
    """Have others work on a promoted standby while the cell's own do on the primary.

    Returns what the others were told.
    """
    folder.mkdir()
    url = cell.pair.standby.url
    with closing(PostgresStore(url)) as store, workers(url, folder, submitters=1) as load:
        beside = RecordedCell(url, store, load)
        beside.wait_for_answers(ANSWERS_MAX)
        cell.wait_for_answers(ANSWERS_MAX)
        with load.paused():
            beside.settle()
        entries = beside.take()
        assert {0} == set(load.end().values())
    return Record.of([*entries, *load.told()])


def lose_something(cell: Cell, number: int, waiting: int) -> None:
    """Do something of every kind of which the standby does not hear."""
    began = RealClock().now()
    cell.store.add_machines(large_machine(number, "lost"))
    cell.store.register_machine(changing_machine("lost", 6_000))
    cell.wait_for_state(waiting, "succeeded")

    def one_is_over() -> bool:
        """Return whether a job was submitted, placed and ended since."""
        since = Record.of(told for told in cell.hear() if told.asked > began)
        return any(job in since.jobs for job, _ in since.placed & since.ended)

    wait_until(one_is_over, "a job to come and go")


def parts_of(
    entries: list[Told], kept: Tables, until: float, since: float
) -> tuple[Record, Record]:
    """Return what must be there, because it was kept or came from the new primary; and the lost.

    The old primary gave the answers until a moment, the new one those asked for since another. Of
    an answer that was on its way in between nobody knows which gave it.
    """
    there, lost = kept.split(Record.of(told for told in entries if told.at < until))
    new = Record.of(told for told in entries if told.asked > since)
    # Nodes also end what they remember of the lost past; they get an answer, and nothing is done.
    new.ended &= new.placed
    there.join(new)
    return there, lost


def assert_forgotten(
    tables: Tables, record: Record, lost: Record, newly_lost: Record, tally: Tallier
) -> None:
    """Something of all kinds was lost, and no number of a lost job names a job again."""
    with tally("numbers of lost jobs, never given again", of=LOSSY) as row:
        row.tried = len(newly_lost.jobs)

        assert newly_lost.jobs
        assert newly_lost.granted
        assert newly_lost.ended
        assert lost.jobs.keys().isdisjoint(tables.jobs)
        assert lost.jobs.keys().isdisjoint(record.jobs)
        row.survived = row.tried


def large_machine(number: int, zone: str) -> Machines:
    """Return a machine for the job that waits for one, and for no other: it has no disk.

    Those of one number have one name.
    """
    where = {"zone": [zone]}
    return a_cell(1, cpu_milli=LARGE_CPU_MILLI, disk_mib=0, first=1_000 + number, attributes=where)


def changing_machine(zone: str, cpu_milli: int) -> Machines:
    return a_cell(1, cpu_milli=cpu_milli, first=999, attributes={"zone": [zone]})
