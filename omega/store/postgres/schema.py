"""The schema: brought up to date by Alembic, with the functions installed anew each time.

Goal     One call that makes any database of ours the one that this code expects.
Promise  All in one transaction: a migration that fails leaves the database as it was. Who may do
         what is said afresh each time, by omega.store.postgres.roles. Limits on logins are set
         afterwards, when roles are wanted, by omega.store.postgres.restrictions.
Source   docs/decisions/0007-functions-are-installed-anew.md, 0017-roles.md.
"""

import psycopg
from alembic import command
from sqlalchemy import Connection, text

from omega.errors import NotAllowed, SchemaMismatch
from omega.store.postgres import roles
from omega.store.postgres.connection import SEARCH_PATH
from omega.store.postgres.functions import DROP_ALL, rendered
from omega.store.postgres.restrictions import Restricted, restrict
from omega.store.postgres.revision import alembic_config, answering, engine
from omega.store.postgres.tables import SCHEMA

STRANGERS_TABLE = """
    SELECT min(c.relname::text) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = :schema AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
       AND NOT EXISTS (SELECT FROM pg_class o
                        WHERE o.relnamespace = n.oid AND o.relname = 'alembic_version')
"""


def migrate(url: str, *, make_roles: bool = False) -> Restricted:
    """Bring the database to the newest schema; harmless when it is there already.

    Makes the roles that the server lacks, if wanted; those that it has get what is theirs. Then it
    also limits what logins can use up, as far as the URL's user may, and returns what was set.
    Raises StoreUnavailable if the server does not answer, NotAllowed if the URL's user lacks a
    right, and SchemaMismatch if the database's schema `omega` is somebody else's or cannot be
    migrated; it is as it was then.
    """
    _run(url, "head", make_roles=make_roles)
    return restrict(url) if make_roles else Restricted()


def downgrade(url: str, revision: str) -> None:
    """Take the database back to an earlier revision; `base` leaves an empty schema."""
    _run(url, revision)


def install_functions(connection: Connection) -> None:
    """Drop all functions of ours and make them anew, within the connection's transaction."""
    remove_functions(connection)
    for sql in rendered():
        _execute(connection, sql)


def remove_functions(connection: Connection) -> None:
    """Drop all functions of ours."""
    _execute(connection, DROP_ALL)


def _execute(connection: Connection, sql: str) -> None:
    # Past SQLAlchemy and without parameters: the texts hold % and : of their own.
    raw = connection.connection.driver_connection
    assert isinstance(raw, psycopg.Connection)
    raw.execute(sql.encode())


def _run(url: str, revision: str, *, make_roles: bool = False) -> None:
    config = alembic_config()
    with answering(), engine(url).begin() as connection:
        # Whatever else lies on this user's path, and who may put something there, is not our doing.
        connection.execute(text(f"SET LOCAL search_path = {SEARCH_PATH}"))
        # A migration takes as long as its tables are large.
        connection.execute(text("SET LOCAL statement_timeout = 0"))
        connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
        _refuse_another_encoding(connection)
        _refuse_a_strangers(connection)
        connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
        # One migration at a time: this locks the schema, as none but its owner can. Any login could
        # take an advisory lock, and keep it.
        connection.execute(text(f"COMMENT ON SCHEMA {SCHEMA} IS 'A cell of omega'"))
        remove_functions(connection)
        config.attributes["connection"] = connection
        if revision == "head":
            command.upgrade(config, revision)
            install_functions(connection)
            if make_roles:
                _make_roles(connection)
            _grant(connection)
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
    """Raise SchemaMismatch if names and jobs could not be kept as they were written."""
    encoding = connection.scalar(text("SELECT current_setting('server_encoding')"))
    if encoding != "UTF8":
        raise SchemaMismatch(
            f"this database's encoding is {encoding}, and a cell needs UTF8;"
            " make another, with ENCODING 'UTF8' TEMPLATE template0"
        )


def _refuse_a_strangers(connection: Connection) -> None:
    """Raise SchemaMismatch if there are tables in a schema `omega` that no migration has made."""
    strange = connection.scalar(text(STRANGERS_TABLE), {"schema": SCHEMA})
    if strange is not None:
        raise SchemaMismatch(
            f"this database has a schema {SCHEMA} that is not ours: it holds {strange}, and no"
            " record of our migrations; name another database"
        )
