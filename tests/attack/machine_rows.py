"""Machines, put in and read back as rows of tables."""

from collections.abc import Sequence

from tests.attack.sessions import Session, Stage
from tests.attack.wires import DEVICES, KINDS

CAPACITY = ", ".join(f"{kind}_capacity" for kind in KINDS)
ROOMY = (64_000, 65_536, 65_536) + (1_000,) * DEVICES
OPEN, DRAINING, DOWN, GONE = range(4)


def add_machines(owner: Session, count: int, amounts: Sequence[int] = ROOMY) -> list[int]:
    """Put machines into the cell, all alike; return their ids."""
    rows = owner.do(
        f"INSERT INTO omega.machine (id, {CAPACITY})"
        f" SELECT n + coalesce((SELECT max(id) FROM omega.machine), 0), {', '.join(['%s'] * 11)}"
        " FROM generate_series(1, %s) AS n RETURNING id",
        [*amounts, count],
    )
    owner.do(
        "INSERT INTO omega.machine_profile (id, name, codes) SELECT id, 'machine-' || id, '{}'"
        " FROM omega.machine WHERE id NOT IN (SELECT id FROM omega.machine_profile)"
    )
    owner.do("UPDATE omega.cell SET generation = generation + 1")
    return sorted(machine for (machine,) in rows)


def empty(owner: Session) -> None:
    """Make all tables but those of the schema's own what they were at first."""
    ((tables,),) = owner.do(
        "SELECT string_agg(format('omega.%I', tablename), ', ') FROM pg_tables"
        " WHERE schemaname = 'omega' AND tablename NOT IN ('alembic_version', 'cell')"
    )
    owner.do(f"TRUNCATE {tables} RESTART IDENTITY")


def sequences(stage: Stage) -> dict[int, int]:
    """Return each machine's sequence."""
    rows = stage.see("SELECT id, sequence FROM omega.machine")
    return {int(machine): int(sequence) for machine, sequence in rows}


def places(stage: Stage) -> list[tuple[int, int, int]]:
    """Return job, task and machine of whatever runs."""
    found = stage.see("SELECT job_id, task, machine_id FROM omega.allocation ORDER BY 1, 2")
    return [(job, task, machine) for job, task, machine in found]


def state_of(stage: Stage, job: int) -> str:
    """Return where a job stands."""
    ((state,),) = stage.see("SELECT state FROM omega.job WHERE id = %s", [job])
    return str(state)
