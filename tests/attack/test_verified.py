"""What is wrong with a cell is listed: by rows that are written past all functions."""

import pytest

from tests.attack.calls import Claim, Lease, commit, lease, one, submit
from tests.attack.machine_rows import add_machines
from tests.attack.sessions import Session, Stage
from tests.attack.wires import KINDS, Wire, a_group, a_job, demand_of

CHECKS = """
    SELECT p.proname FROM pg_proc p
     WHERE p.pronamespace = 'omega'::regnamespace AND p.proname LIKE 'verify%'
       AND p.pronargs = 0 AND has_function_privilege('omega_reader', p.oid, 'EXECUTE')
     ORDER BY p.proname
"""
"""All functions by which a reader may ask what is wrong."""


@pytest.fixture
def reader(stage: Stage) -> Session:
    return stage.session("reader", "omega_reader")


def listed(stage: Stage, reader: Session) -> list[str]:
    """Return what a reader is told is wrong, a line each."""
    names = [name for (name,) in stage.see(CHECKS)]
    return [str(row) for name in names for row in reader.do(f"SELECT * FROM omega.{name}()")]


GPUS = a_group(tasks=2, gpus=2, memory_mib=10, disk_mib=5)
PART = a_group(tasks=2, gpus=1, gpu_slices=250)


@pytest.fixture
def mine(owner: Session, submitter: Session, scheduler: Session) -> tuple[Lease, Wire]:
    """A job with tasks of three shapes, of which each has one that runs as it should."""
    add_machines(owner, 6)
    wire = a_job(a_group(tasks=2), GPUS, PART)
    submit(submitter, wire)
    (mine,) = lease(scheduler)
    claims = (Claim(mine, task, task + 1, demand_of(wire, task)) for task in (0, 2, 4))
    assert (0, 0, 0) == commit(scheduler, one(1, *claims)).verdicts
    return mine, wire


def test_what_is_as_it_was_asked_for_is_not_listed(
    stage: Stage, reader: Session, mine: tuple[Lease, Wire]
) -> None:
    assert mine
    assert stage.see(CHECKS)
    assert [] == listed(stage, reader)


BENT = (
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
"""A task, and an amount that it does not ask for."""


def test_an_allocation_of_other_amounts_is_listed(
    stage: Stage, scheduler: Session, reader: Session, mine: tuple[Lease, Wire]
) -> None:
    """A scheduler that claims them is refused, or shows."""
    held, wire = mine
    number = len(listed(stage, reader))
    for n, (task, at, amount) in enumerate(BENT, start=2):
        amounts = list(demand_of(wire, task))
        amounts[at] = amount
        claim = Claim(held, task, task + 1, tuple(amounts))
        outcome = commit(scheduler, one(n, claim))
        lines = listed(stage, reader)
        assert (0,) != outcome.verdicts or number < len(lines), (task, at, amount)
        assert all(str(held.job) in line for line in lines)
        undo(stage, held.job, task)


def undo(stage: Stage, job: int, task: int) -> None:
    """Take a task's allocation back, past all functions."""
    stage.onlooker.execute(
        "WITH gone AS (DELETE FROM omega.allocation WHERE job_id = %s AND task = %s RETURNING *)"
        " UPDATE omega.job SET placed = placed - 1,"
        " unplaced = unplaced + int4multirange(int4range(task, task + 1))"
        " FROM gone WHERE id = gone.job_id",
        [job, task],
    )
    held = "SELECT coalesce(sum({}), 0) FROM omega.allocation WHERE machine_id = id"
    used = ", ".join(f"{kind}_used = ({held.format(kind)})" for kind in KINDS)
    stage.onlooker.execute(f"UPDATE omega.machine SET revision = 0, {used}".encode())


def test_another_device_is_as_good(
    stage: Stage, scheduler: Session, reader: Session, mine: tuple[Lease, Wire]
) -> None:
    held, wire = mine
    amounts = [*demand_of(wire, 3)[:3], 0, 0, 0, 0, 0, 0, 1_000, 1_000]
    assert (0,) == commit(scheduler, one(2, Claim(held, 3, 4, tuple(amounts)))).verdicts

    assert [] == listed(stage, reader)


BROKEN = {
    "an amount": "UPDATE omega.allocation SET cpu_milli = 1 WHERE task = 0",
    "what is used": "UPDATE omega.machine SET cpu_milli_used = cpu_milli_used + 1",
    "a sequence": "UPDATE omega.machine SET sequence = 0",
    "a task that is gone": "DELETE FROM omega.allocation WHERE task = 0",
    "what waits": "UPDATE omega.job SET unplaced = unplaced + '{[0,1)}'",
    "a count": "UPDATE omega.job SET placed = placed + 1",
    "a job that is over": "UPDATE omega.job SET state = 'cancelled', lease_token = NULL",
    "a description": "DELETE FROM omega.job_spec",
    "a profile": "DELETE FROM omega.machine_profile",
    "a machine": "DELETE FROM omega.machine",
    "a job": "DELETE FROM omega.job",
}


def test_what_is_written_by_hand_is_listed(
    stage: Stage, owner: Session, mine: tuple[Lease, Wire]
) -> None:
    assert mine
    assert [] == listed(stage, owner)
    for what, statement in BROKEN.items():
        owner.do("BEGIN")
        owner.do(statement)
        assert listed(stage, owner), what
        owner.do("ROLLBACK")
