"""The verify functions list violations: here tables are changed without the functions."""

import pytest

from tests.attack.calls import Claim, Lease, commit, lease_jobs, make_transaction, submit_jobs
from tests.attack.machine_rows import add_machines
from tests.attack.sessions import Database, Session
from tests.attack.wires import KINDS, Wire, a_group, a_job, demand_of

VERIFY_FUNCTIONS = """
    SELECT p.proname FROM pg_proc p
     WHERE p.pronamespace = 'omega'::regnamespace AND p.proname LIKE 'verify%'
       AND p.pronargs = 0 AND has_function_privilege('omega_reader', p.oid, 'EXECUTE')
     ORDER BY p.proname
"""
"""All verify functions that a reader may execute."""


@pytest.fixture
def reader(database: Database) -> Session:
    return database.session("reader", "omega_reader")


def listed_violations(database: Database, reader: Session) -> list[str]:
    """Return all violations that a session is told, one a line."""
    names = [name for (name,) in database.query(VERIFY_FUNCTIONS)]
    return [str(row) for name in names for row in reader.execute(f"SELECT * FROM omega.{name}()")]


WHOLE_GPUS = a_group(tasks=2, gpus=2, memory_mib=10, disk_mib=5)
PART_OF_GPU = a_group(tasks=2, gpus=1, gpu_slices=250)


@pytest.fixture
def running(owner: Session, submitter: Session, scheduler: Session) -> tuple[Lease, Wire]:
    """A job with tasks of three shapes; the first task of each shape runs correctly."""
    add_machines(owner, 6)
    wire = a_job(a_group(tasks=2), WHOLE_GPUS, PART_OF_GPU)
    submit_jobs(submitter, wire)
    (lease,) = lease_jobs(scheduler)
    claims = (Claim(lease, task, task + 1, demand_of(wire, task)) for task in (0, 2, 4))
    assert (0, 0, 0) == commit(scheduler, make_transaction(1, *claims)).verdicts
    return lease, wire


def test_verify_lists_nothing_in_a_consistent_cell(
    database: Database, reader: Session, running: tuple[Lease, Wire]
) -> None:
    assert running
    assert database.query(VERIFY_FUNCTIONS)
    assert [] == listed_violations(database, reader)


WRONG_AMOUNTS = (
    (1, 0, 999),
    (1, 0, 1_001),
    (1, 0, 0),
    (1, 1, 1),
    (1, 2, 1),
    (1, 3, 1_000),
    (3, 1, 11),
    (3, 3, 500),
    (3, 4, 0),
    (3, 10, 1_000),
    (5, 3, 251),
    (5, 3, 0),
    (5, 4, 250),
)
"""A task, the position of an amount, and an amount that it does not ask for."""


def test_verify_lists_allocations_with_wrong_amounts(
    database: Database, scheduler: Session, reader: Session, running: tuple[Lease, Wire]
) -> None:
    """A claim of wrong amounts is refused, or its allocation is listed."""
    lease, wire = running
    number = len(listed_violations(database, reader))
    for n, (task, at, amount) in enumerate(WRONG_AMOUNTS, start=2):
        amounts = list(demand_of(wire, task))
        amounts[at] = amount
        claim = Claim(lease, task, task + 1, tuple(amounts))
        outcome = commit(scheduler, make_transaction(n, claim))
        lines = listed_violations(database, reader)
        assert (0,) != outcome.verdicts or number < len(lines), (task, at, amount)
        assert all(str(lease.job) in line for line in lines)
        remove_allocation(database, lease.job, task)


def remove_allocation(database: Database, job: int, task: int) -> None:
    """Remove the allocation of a task without the functions."""
    database.observer.execute(
        "WITH gone AS (DELETE FROM omega.allocation WHERE job_id = %s AND task = %s RETURNING *)"
        " UPDATE omega.job SET placed = placed - 1,"
        " unplaced = unplaced + int4multirange(int4range(task, task + 1))"
        " FROM gone WHERE id = gone.job_id",
        [job, task],
    )
    held = "SELECT coalesce(sum({}), 0) FROM omega.allocation WHERE machine_id = id"
    used = ", ".join(f"{kind}_used = ({held.format(kind)})" for kind in KINDS)
    database.observer.execute(f"UPDATE omega.machine SET revision = 0, {used}".encode())


def test_verify_accepts_any_devices(
    database: Database, scheduler: Session, reader: Session, running: tuple[Lease, Wire]
) -> None:
    lease, wire = running
    amounts = [*demand_of(wire, 3)[:3], 0, 0, 0, 0, 0, 0, 1_000, 1_000]
    claim = Claim(lease, 3, 4, tuple(amounts))
    assert (0,) == commit(scheduler, make_transaction(2, claim)).verdicts

    assert [] == listed_violations(database, reader)


DAMAGES = {
    "an amount of an allocation": "UPDATE omega.allocation SET cpu_milli = 1 WHERE task = 0",
    "the used amounts of a machine": "UPDATE omega.machine SET cpu_milli_used = cpu_milli_used + 1",
    "the sequence of a machine": "UPDATE omega.machine SET sequence = 0",
    "a missing allocation": "DELETE FROM omega.allocation WHERE task = 0",
    "the unplaced tasks of a job": "UPDATE omega.job SET unplaced = unplaced + '{[0,1)}'",
    "a count of a job": "UPDATE omega.job SET placed = placed + 1",
    "the state of a job": "UPDATE omega.job SET state = 'cancelled', lease_token = NULL",
    "a missing spec": "DELETE FROM omega.job_spec",
    "a missing profile": "DELETE FROM omega.machine_profile",
    "a missing machine": "DELETE FROM omega.machine",
    "a missing job": "DELETE FROM omega.job",
}


def test_verify_lists_each_kind_of_damage(
    database: Database, owner: Session, running: tuple[Lease, Wire]
) -> None:
    assert running
    assert [] == listed_violations(database, owner)
    for what, statement in DAMAGES.items():
        owner.execute("BEGIN")
        owner.execute(statement)
        assert listed_violations(database, owner), what
        owner.execute("ROLLBACK")
