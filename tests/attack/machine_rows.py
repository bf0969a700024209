"""Machines and tasks, written and read as rows of tables."""

from collections.abc import Sequence

from tests.attack.sessions import Database, Session
from tests.attack.wires import DEVICES, KINDS

CAPACITY = ", ".join(f"{kind}_capacity" for kind in KINDS)
DEFAULT_CAPACITY = (64_000, 65_536, 65_536) + (1_000,) * DEVICES
OPEN, DRAINING, DOWN, GONE = range(4)


def add_machines(
    owner: Session, count: int, amounts: Sequence[int] = DEFAULT_CAPACITY
) -> list[int]:
    """Insert identical machines; return their ids."""
    rows = owner.execute(
        f"INSERT INTO omega.machine (id, {CAPACITY})"
        f" SELECT n + coalesce((SELECT max(id) FROM omega.machine), 0), {', '.join(['%s'] * 11)}"
        " FROM generate_series(1, %s) AS n RETURNING id",
        [*amounts, count],
    )
    owner.execute(
        "INSERT INTO omega.machine_profile (id, name, codes) SELECT id, 'machine-' || id, '{}'"
        " FROM omega.machine WHERE id NOT IN (SELECT id FROM omega.machine_profile)"
    )
    owner.execute("UPDATE omega.cell SET generation = generation + 1")
    return sorted(machine for (machine,) in rows)


def truncate_tables(owner: Session) -> None:
    """Empty all tables except those of the schema itself."""
    ((tables,),) = owner.execute(
        "SELECT string_agg(format('omega.%I', tablename), ', ') FROM pg_tables"
        " WHERE schemaname = 'omega'"
        "   AND tablename NOT IN ('alembic_version', 'cell', 'incarnation')"
    )
    owner.execute(f"TRUNCATE {tables} RESTART IDENTITY")


def sequences(database: Database) -> dict[int, int]:
    """Return the sequence of each machine."""
    rows = database.query("SELECT id, sequence FROM omega.machine")
    return {int(machine): int(sequence) for machine, sequence in rows}


def running_tasks(database: Database) -> list[tuple[int, int, int]]:
    """Return the job, task and machine of each running task."""
    rows = database.query("SELECT job_id, task, machine_id FROM omega.allocation ORDER BY 1, 2")
    return [(job, task, machine) for job, task, machine in rows]


def job_state(database: Database, job: int) -> str:
    """Return the state of a job."""
    ((state,),) = database.query("SELECT state FROM omega.job WHERE id = %s", [job])
    return str(state)
