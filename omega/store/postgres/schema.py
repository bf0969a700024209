"""The schema: migrated by Alembic; all functions are installed again each time.

Goal     One call that brings any database of Omega to the schema that this code expects.
Promise  Everything is done in one transaction: a migration that fails leaves the database as it
         was. Rights are granted again each time, by omega.store.postgres.roles. If roles are
         wanted, limits on logins are set afterwards, by omega.store.postgres.restrictions.
Source   docs/decisions/0007-functions-are-installed-anew.md, 0017-roles.md.
"""

import psycopg
from alembic import command
from sqlalchemy import Connection, text

from omega.errors import NotAllowed, SchemaMismatch
from omega.store.postgres import roles
from omega.store.postgres.column_types import SCHEMA
from omega.store.postgres.connecting import SEARCH_PATH
from omega.store.postgres.functions import DROP_ALL, rendered
from omega.store.postgres.restrictions import RestrictionResult, restrict
from omega.store.postgres.revision import alembic_config, answering, engine

STRANGERS_TABLE = """
    SELECT min(c.relname::text) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = :schema AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
       AND NOT EXISTS (SELECT FROM pg_class o
                        WHERE o.relnamespace = n.oid AND o.relname = 'alembic_version')
"""


def migrate(url: str, *, make_roles: bool = False) -> RestrictionResult:
    """Bring the database to the newest schema; a database that is there already is not harmed.

    With `make_roles` missing roles are created, and what logins can use up is limited as far as the
    URL's user may do so; the limits are returned. Roles that exist get their rights in any case.
    Raises StoreUnavailable if the server does not answer, NotAllowed if the URL's user lacks a
    right, SchemaMismatch if the schema `omega` is not Omega's own or cannot be migrated. After an
    error the database is as it was.
    """
    _run(url, "head", make_roles=make_roles)
    return restrict(url) if make_roles else RestrictionResult()


def downgrade(url: str, revision: str) -> None:
    """Take the database back to an earlier revision; `base` leaves an empty schema."""
    _run(url, revision)


def install_functions(connection: Connection) -> None:
    """Drop all of Omega's functions and create them again, in the connection's transaction."""
    remove_functions(connection)
    for sql in rendered():
        _execute(connection, sql)


def remove_functions(connection: Connection) -> None:
    """Drop all of Omega's functions."""
    _execute(connection, DROP_ALL)


def _execute(connection: Connection, sql: str) -> None:
    # Without SQLAlchemy and without parameters, because the texts contain % and : themselves.
    raw = connection.connection.driver_connection
    assert isinstance(raw, psycopg.Connection)
    raw.execute(sql.encode())


def _run(url: str, revision: str, *, make_roles: bool = False) -> None:
    config = alembic_config()
    with answering(), engine(url).begin() as connection:
        # Objects of other schemas on this user's search_path must not be used.
        connection.execute(text(f"SET LOCAL search_path = {SEARCH_PATH}"))
        # A migration of large tables takes long.
        connection.execute(text("SET LOCAL statement_timeout = 0"))
        connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
        _refuse_another_encoding(connection)
        _refuse_a_strangers(connection)
        connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
        # One migration at a time: this locks the schema, as only its owner can. Any login could
        # take an advisory lock and keep it.
        connection.execute(text(f"COMMENT ON SCHEMA {SCHEMA} IS 'A cell of omega'"))
        remove_functions(connection)
        config.attributes["connection"] = connection
        if revision == "head":
            command.upgrade(config, revision)
            install_functions(connection)
            if make_roles:
                _make_roles(connection)
            _grant(connection)
            _execute(connection, f"SELECT {SCHEMA}.begin_incarnation()")
        else:
            command.downgrade(config, revision)


def _make_roles(connection: Connection) -> None:
    try:
        _execute(connection, roles.making())
    except psycopg.errors.InsufficientPrivilege as refusal:
        raise NotAllowed(
            "the database's user may not create roles; have one with CREATEROLE, or a superuser,"
            " run: omega db init --roles"
        ) from refusal


def _grant(connection: Connection) -> None:
    there = connection.scalars(text("SELECT rolname::text FROM pg_roles")).all()
    _execute(connection, roles.granting(there))


def _refuse_another_encoding(connection: Connection) -> None:
    """Raise SchemaMismatch if the encoding cannot keep names and jobs as they were written."""
    encoding = connection.scalar(text("SELECT current_setting('server_encoding')"))
    if encoding != "UTF8":
        raise SchemaMismatch(
            f"this database's encoding is {encoding}, and a cell needs UTF8;"
            " make another, with ENCODING 'UTF8' TEMPLATE template0"
        )


def _refuse_a_strangers(connection: Connection) -> None:
    """Raise SchemaMismatch if a schema `omega` has tables that no migration created."""
    strange = connection.scalar(text(STRANGERS_TABLE), {"schema": SCHEMA})
    if strange is not None:
        raise SchemaMismatch(
            f"this database has a schema {SCHEMA} that is not ours: it holds {strange}, and no"
            " record of our migrations; name another database"
        )
