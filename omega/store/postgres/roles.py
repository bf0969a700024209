"""The roles, the functions that each may call and the tables that each may read.

Goal     One table has all rights; what is not in it is left to the cell's owner.
Promise  A function that a role may call runs as its owner under a fixed search_path; all others are
         called only by functions. No role writes a table, and none reads a lease's token. Grants
         are made again each time, so that grants made to these roles by hand are lost.
Source   docs/decisions/0017-roles.md; PostgreSQL's manual, "Writing SECURITY DEFINER Functions
         Safely".
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from omega.store.postgres.column_types import SCHEMA
from omega.store.postgres.connecting import SEARCH_PATH
from omega.store.postgres.tables import metadata

SECRETS: Final = {"job": frozenset({"lease_token"})}
"""Columns that no role may read: whoever knows a lease's token can use the lease."""
TABLES: Final = tuple(table.name for table in metadata.sorted_tables)
REVISION: Final = "alembic_version"
"""Every role reads it, so that a program can report that the database has another revision."""


@dataclass(frozen=True)
class Role:
    """A group of logins of the whole server; it cannot log in itself."""

    name: str
    calls: tuple[str, ...]
    """Functions, by their names in Omega's schema."""
    reads: tuple[str, ...] = ()
    """Tables, apart from the columns in SECRETS."""


ROLES: Final = (
    Role(
        "omega_scheduler",
        calls=(
            "begin_incarnation",
            "read_mark",
            "read_machines",
            "read_profiles",
            "read_changes",
            "read_quotas",
            "lease_jobs",
            "renew_leases",
            "hand_back_jobs",
            "park_jobs",
            "parked_jobs",
            "wake_jobs",
            "rescue_jobs",
            "begin_round",
            "note_round",
            "recall_jobs",
            "unfinished_jobs",
            "take_turn",
            "read_lanes",
            "read_tenant_use",
            "agree_on_order",
            "lease_reclaim",
            "read_allocations_of",
            "read_occupants",
            "read_yielding",
            "commit_claims",
            "lose_tasks",
            "expire_machines",
            "notices_that_end",
            "enforce_notice",
            "report_process",
            "read_report",
            "forget_process",
            "read_progress",
            "add_helpers",
            "end_helpers",
            "elastic_jobs",
            "read_phases",
        ),
    ),
    Role(
        "omega_node",
        calls=(
            "begin_incarnation",
            "own_allocations",
            "end_tasks",
            "report_process",
            "read_report",
            "forget_process",
            "read_mark",
            "read_machines",
            "read_profiles",
            "read_allocations_of",
            "read_progress",
            "report_progress",
            "read_phases",
            "report_phases",
            "machine_revision",
            "are_running",
            "read_programs",
            "read_addresses",
            "report_exits",
            "report_outputs",
            "read_catalogue",
            "register_machine",
            "hold_machine",
            "leave_machine",
            "free_machine",
            "lose_own_tasks",
        ),
    ),
    Role(
        "omega_submitter",
        calls=(
            "begin_incarnation",
            "submit_jobs",
            "submit_pipelines",
            "cancel_job",
            "hold_job",
            "release_job",
            "requeue_job",
            "set_job_precedence",
            "read_quotas",
            "read_progress",
            "read_phases",
            "read_rounds",
        ),
        reads=(
            "job",
            "job_spec",
            "allocation",
            "machine_profile",
            "process",
            "task_exit",
            "task_output",
            "pipeline",
            "pipeline_stage",
            "stage_cost",
        ),
    ),
    Role(
        "omega_reader",
        calls=(
            "begin_incarnation",
            "read_mark",
            "read_machines",
            "read_profiles",
            "read_changes",
            "read_allocations",
            "read_allocations_of",
            "read_occupants",
            "read_yielding",
            "read_notices",
            "read_quotas",
            "read_progress",
            "read_phases",
            "read_rounds",
            "read_holdings",
            "read_idle_jobs",
            "read_usage",
            "read_judged",
            "read_unfinished_tasks",
            "sum_tenant_use",
            "verify",
            "verify_amounts",
        ),
        reads=TABLES,
    ),
)
OWNERS: Final = (
    "add_machines",
    "set_state",
    "resize_machine",
    "set_precedence_gap",
    "set_quota",
    "count_quota",
    "remove_quota",
    "set_tenant",
    "remove_tenant",
    "assign_machines",
    "submit_planned",
    "forget_changes",
    "prune_history",
)
"""Functions that the owner's commands call. A function in no list is called only by functions."""


def making() -> str:
    """Return the SQL that creates the missing roles; roles that exist are left as they are."""
    return "\n".join(_making(role.name) for role in ROLES)


def granting(there: Collection[str]) -> str:
    """Return the SQL that grants each role its rights and revokes all others.

    It is to be run after all functions were created. `there` are the names of the roles of
    this server; a role that is missing gets nothing.
    """
    roles = [role for role in ROLES if role.name in there]
    return ";\n".join([*_revocations(roles), *_definitions(), *_grants(roles)])


def _making(name: str) -> str:
    # Another database of this server may create the same role at this moment.
    return f"""
        DO $$ BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{name}') THEN
                CREATE ROLE {name} NOLOGIN;
            END IF;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
        END $$;
    """


def _revocations(roles: Collection[Role]) -> Iterator[str]:
    everyone = ", ".join(["PUBLIC", *(role.name for role in roles)])
    tables = ", ".join(f"{SCHEMA}.{table}" for table in (*TABLES, REVISION))
    yield f"REVOKE ALL ON SCHEMA {SCHEMA} FROM {everyone}"
    yield f"REVOKE ALL ON TABLE {tables} FROM {everyone}"
    yield f"REVOKE ALL ON ALL SEQUENCES IN SCHEMA {SCHEMA} FROM {everyone}"
    yield f"REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {SCHEMA} FROM {everyone}"


def _definitions() -> Iterator[str]:
    for name in sorted({name for role in ROLES for name in role.calls}):
        yield (f"ALTER FUNCTION {SCHEMA}.{name} SECURITY DEFINER SET search_path = {SEARCH_PATH}")


def _grants(roles: Collection[Role]) -> Iterator[str]:
    for role in roles:
        yield f"GRANT USAGE ON SCHEMA {SCHEMA} TO {role.name}"
        yield f"GRANT SELECT ON {SCHEMA}.{REVISION} TO {role.name}"
        for name in role.calls:
            yield f"GRANT EXECUTE ON FUNCTION {SCHEMA}.{name} TO {role.name}"
        for table in role.reads:
            yield f"GRANT SELECT {_columns(table)}ON {SCHEMA}.{table} TO {role.name}"


def _columns(table: str) -> str:
    """Return the columns that may be read, in parentheses; nothing if all may be."""
    secret = SECRETS.get(table)
    if secret is None:
        return ""
    columns = [column.name for column in metadata.tables[f"{SCHEMA}.{table}"].columns]
    assert secret <= set(columns), "a secret that is not there protects nothing"
    return f"({', '.join(name for name in columns if name not in secret)}) "
