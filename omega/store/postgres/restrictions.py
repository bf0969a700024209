"""Limits on what a login can use up: those that the user may set are set, the others returned.

Goal     Keep one login from using up locks, connections and disk space of all others.
Promise  The call may be repeated: a limit that is set is kept, also one that an operator chose. A
         limit that the user may not set is returned with who may and the statement to run; that is
         no error. Owners and superusers get no connection limit; the timeouts apply to their
         sessions as well.
Source   docs/decisions/0017-roles.md; docs/guide/roles.md says what remains possible.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import psycopg
from psycopg import sql

from omega.store.postgres.access import FUNCTIONS, Access, Member, catalogue_connection, read_access
from omega.store.postgres.column_types import SCHEMA

TIMEOUTS_SET: Final = {
    "statement_timeout": "5min",
    "idle_in_transaction_session_timeout": "1min",
}
"""For sessions by hand: Omega's connections set the first, and never reach the second."""
CONNECTIONS_MAX: Final = 20
"""For one login: a scheduler has two connections, and twice as many while it starts again."""

SUPERUSER: Final = "A superuser"

REVOKING_PUBLIC: Final = "REVOKE CREATE ON SCHEMA public FROM PUBLIC"
REVOKING_FUNCTIONS: Final = f"""
    DO $$ DECLARE
        f regprocedure;
        owner regrole := (SELECT nspowner FROM pg_namespace WHERE nspname = '{SCHEMA}');
    BEGIN
        FOR f IN SELECT oid FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace
            AND proname ~ '{FUNCTIONS}'
        LOOP
            EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', f);
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %s', f, owner);
        END LOOP;
    END $$
"""
"""Only for the cell's database, because every database has its own functions."""


@dataclass(frozen=True)
class Restriction:
    """A limit that is not set."""

    about: str
    """What is limited; it identifies the limit."""
    what: str
    """What is true once the limit is set."""
    sql: str
    who: str
    """Who may set it; begins a sentence."""


@dataclass(frozen=True)
class RestrictionResult:
    """The limits that were missing: those that were set, and those that could not be."""

    done: tuple[Restriction, ...] = ()
    left: tuple[Restriction, ...] = ()
    """Limits that the user may not set."""


def restrict(url: str) -> RestrictionResult:
    """Set every limit that is missing and that the URL's user may set.

    Raises StoreUnavailable if the server does not answer.
    """
    with catalogue_connection(url) as connection:
        before = missing(read_access(connection))
        for one in before:
            # Some refusals are only warnings, and another database's owner may set the same limit
            # at this moment. So the result is what is missing afterwards.
            with suppress(psycopg.DatabaseError):
                connection.execute(one.sql.encode())
        left = {one.about: one for one in missing(read_access(connection))} if before else {}
    return RestrictionResult(
        done=tuple(one for one in before if one.about not in left), left=tuple(left.values())
    )


def missing(access: Access) -> list[Restriction]:
    """Return the limits that are not set yet."""
    return [
        *_rights(access),
        *_timeouts(access),
        *_functions(access),
        *(_connections(member) for member in access.members if is_unlimited(member)),
    ]


def is_unlimited(member: Member) -> bool:
    """Return whether a login may open any number of connections although it is no superuser."""
    return member.connections_max < 0 and "SUPERUSER" not in member.powers


def revoking(access: Access, right: str) -> str:
    """Return the statement that revokes a right on the database from PUBLIC."""
    return f"REVOKE {right} ON DATABASE {named(access.database)} FROM PUBLIC"


def setting(access: Access, timeout: str) -> str:
    """Return the statement that sets a timeout for the database."""
    value = TIMEOUTS_SET[timeout]
    return f"ALTER DATABASE {named(access.database)} SET {timeout} = '{value}'"


def limiting(member: Member) -> str:
    """Return the statement that limits a login to the usual connections, or to twice its own."""
    return f"ALTER ROLE {named(member.name)} CONNECTION LIMIT {_connections_max(member)}"


def named(name: str) -> str:
    """Return a name quoted as in SQL."""
    return sql.Identifier(name).as_string(None)


def _rights(access: Access) -> Iterator[Restriction]:
    for right, what in (
        ("TEMPORARY", "PUBLIC may make no temporary tables in this database"),
        ("CREATE", "PUBLIC may make no schemas in this database"),
    ):
        if right in access.of_public:
            yield Restriction(
                f"{right} on the database", what, revoking(access, right), _owner(access)
            )
    if access.public_is_open:
        what = "PUBLIC may make nothing in the schema public"
        yield Restriction(
            "CREATE on the schema public",
            what,
            REVOKING_PUBLIC,
            f"{access.public_owner}, its owner,",
        )


def _timeouts(access: Access) -> Iterator[Restriction]:
    for name, value in TIMEOUTS_SET.items():
        if name not in access.timeouts:
            what = f"{name} is {value} in this database, where a session sets no other"
            yield Restriction(name, what, setting(access, name), _owner(access))


def _functions(access: Access) -> Iterator[Restriction]:
    if access.open_functions or access.owner_lacks:
        yield Restriction(
            "functions",
            f"only {access.cell_owner} may take advisory locks, make large objects and write"
            " messages to the log in this database",
            " ".join(REVOKING_FUNCTIONS.split()),
            SUPERUSER,
        )


def _connections(member: Member) -> Restriction:
    return Restriction(
        f"connections of {member.name}",
        f"{member.name} may have {_connections_max(member)} connections at a time",
        limiting(member),
        f"{SUPERUSER}, or who has CREATEROLE and may administer {member.name},",
    )


def _owner(access: Access) -> str:
    return f"{access.owner}, the database's owner,"


def _connections_max(member: Member) -> int:
    return max(CONNECTIONS_MAX, 2 * member.connections)
