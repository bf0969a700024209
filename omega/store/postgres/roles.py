"""Who may do what: the roles, the functions that each may call and the tables that each may read.

Goal     One table that says it all; whatever is not in it is the owner's alone.
Promise  A function that a role may call runs as its owner under a pinned search_path; every other
         is called by functions only. No role writes a table, and none reads a lease's token.
         Grants are made afresh each time: what was granted by hand to these roles is gone then.
Source   docs/decisions/0017-roles.md; PostgreSQL's manual, "Writing SECURITY DEFINER Functions
         Safely".
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from omega.store.postgres.connection import SEARCH_PATH
from omega.store.postgres.tables import SCHEMA, metadata

SECRETS: Final = {"job": frozenset({"lease_token"})}
"""Columns that are for nobody to read: who knows a lease's token, holds the lease."""
TABLES: Final = tuple(table.name for table in metadata.sorted_tables)
REVISION: Final = "alembic_version"
"""Read by every role: so a program can say that the database is not at its revision."""


@dataclass(frozen=True)
class Role:
    """A group of logins of the whole server; it cannot log in itself."""

    name: str
    calls: tuple[str, ...]
    """Functions, by the names that they have in our schema."""
    reads: tuple[str, ...] = ()
    """Tables, apart from the columns in SECRETS."""


ROLES: Final = (
    Role(
        "omega_scheduler",
        calls=(
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
            "read_allocations_of",
            "commit_claims",
            "lose_tasks",
            "notices_that_end",
            "enforce_notice",
            "report_process",
            "forget_process",
            "read_progress",
        ),
    ),
    Role(
        "omega_node",
        calls=(
            "own_allocations",
            "end_tasks",
            "report_process",
            "forget_process",
            "read_mark",
            "read_machines",
            "read_profiles",
            "read_allocations_of",
            "read_progress",
            "report_progress",
        ),
    ),
    Role(
        "omega_submitter",
        calls=("submit_jobs", "cancel_job", "read_quotas", "read_progress"),
        reads=("job", "job_spec", "allocation", "machine_profile", "process"),
    ),
    Role(
        "omega_reader",
        calls=(
            "read_mark",
            "read_machines",
            "read_profiles",
            "read_changes",
            "read_allocations",
            "read_notices",
            "read_quotas",
            "read_progress",
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
    "set_quota",
    "count_quota",
    "remove_quota",
    "assign_machines",
    "forget_changes",
    "prune_history",
)
"""What the owner's own verbs call. Functions that are in no list are called by functions only."""


def making() -> str:
    """Return what makes those roles that are not there yet; others are left as they are."""
    return "\n".join(_making(role.name) for role in ROLES)


def granting(there: Collection[str]) -> str:
    """Return what gives each role its due, and nobody else anything, once all functions are made.

    `there` are the names of the roles that this server has: the others get nothing.
    """
    roles = [role for role in ROLES if role.name in there]
    return ";\n".join([*_revocations(roles), *_definitions(), *_grants(roles)])


def _making(name: str) -> str:
    # Another database of this server may be making the same role at this moment.
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
    """Name the columns that may be read, or none if all may."""
    secret = SECRETS.get(table)
    if secret is None:
        return ""
    columns = [column.name for column in metadata.tables[f"{SCHEMA}.{table}"].columns]
    assert secret <= set(columns), "a secret that is not there protects nothing"
    return f"({', '.join(name for name in columns if name not in secret)}) "
