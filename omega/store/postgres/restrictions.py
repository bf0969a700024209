"""Limits on what a login can use up: sets what the user may set; returns the rest.

Goal     Keep one login from taking all locks, connections and disk from the others.
Promise  Harmless when repeated: what is set stays, also what an operator has set otherwise.
         Whatever the user may not set is returned, with who may and by which statement; that is no
         error. Owners and superusers get no connection limit; the timeouts apply to their sessions
         as well.
Source   docs/decisions/0017-roles.md; docs/guide/roles.md says what remains possible.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import psycopg
from psycopg import sql

from omega.store.postgres.access import FUNCTIONS, Access, Member, catalogue_connection, read_access
from omega.store.postgres.tables import SCHEMA

TIMEOUTS_SET: Final = {
    "statement_timeout": "5min",
    "idle_in_transaction_session_timeout": "1min",
}
"""For sessions by hand: our own connections set the first, and never meet the second."""
CONNECTIONS_MAX: Final = 20
"""Of one login: a scheduler holds two, and twice as many for a while when it starts anew."""

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
"""For the cell's database alone: other databases have functions of their own."""


@dataclass(frozen=True)
class Restriction:
    """One limit that is missing."""

    about: str
    """What it limits; no two limits are about the same."""
    what: str
    """What holds once it is set."""
    sql: str
    who: str
    """Who may set it, at the beginning of a sentence."""


@dataclass(frozen=True)
class Restricted:
    """What was missing, and what has come of it."""

    done: tuple[Restriction, ...] = ()
    left: tuple[Restriction, ...] = ()
    """What the user may not set."""


def restrict(url: str) -> Restricted:
    """Set every limit that is missing and that the URL's user may set.

    Raises StoreUnavailable if the server does not answer.
    """
    with catalogue_connection(url) as connection:
        before = missing(read_access(connection))
        for one in before:
            # Some refusals are only warnings, and another database's owner may be setting the same
            # login's limit: what there is afterwards is what counts.
            with suppress(psycopg.DatabaseError):
                connection.execute(one.sql.encode())
        left = {one.about: one for one in missing(read_access(connection))} if before else {}
    return Restricted(
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
    """Say whether a login may open any number of connections, and should not."""
    return member.connections_max < 0 and "SUPERUSER" not in member.powers


def revoking(access: Access, right: str) -> str:
    """Return what takes a right on the database from PUBLIC."""
    return f"REVOKE {right} ON DATABASE {named(access.database)} FROM PUBLIC"


def setting(access: Access, timeout: str) -> str:
    """Return what sets a timeout for the database."""
    value = TIMEOUTS_SET[timeout]
    return f"ALTER DATABASE {named(access.database)} SET {timeout} = '{value}'"


def limiting(member: Member) -> str:
    """Return what limits a login to the usual number of connections, or to twice what it has."""
    return f"ALTER ROLE {named(member.name)} CONNECTION LIMIT {_connections_max(member)}"


def named(name: str) -> str:
    """Return a name as SQL has it."""
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
