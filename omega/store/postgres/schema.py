"""The schema: brought up to date by Alembic, with the functions installed anew each time.

Goal     One call that makes any database of ours the one that this code expects.
Promise  All in one transaction: a migration that fails leaves the database as it was.
Source   docs/decisions/0007-functions-are-installed-anew.md.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine, make_url, text
from sqlalchemy.engine import Engine
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

import omega
from omega.errors import StoreUnavailable
from omega.store.postgres.functions import DROP_ALL, rendered
from omega.store.postgres.tables import SCHEMA


def migrate(url: str) -> None:
    """Bring the database to the newest schema; harmless when it is there already.

    Raises StoreUnavailable if the server does not answer.
    """
    _run(url, "head")


def downgrade(url: str, revision: str) -> None:
    """Take the database back to an earlier revision; `base` leaves an empty schema."""
    _run(url, revision)


def current(url: str) -> str | None:
    """Return the revision that the database is at; None for none.

    Raises StoreUnavailable if the server does not answer.
    """
    with _answering(), _engine(url).connect() as connection:
        if connection.scalar(text("SELECT to_regclass('omega.alembic_version')")) is None:
            return None
        found = connection.scalar(text("SELECT version_num FROM omega.alembic_version"))
        return None if found is None else str(found)


def head() -> str:
    """Return the newest revision."""
    revision = ScriptDirectory.from_config(_config()).get_current_head()
    assert revision is not None
    return revision


def mismatch(url: str) -> str | None:
    """Say what to run before this code can use the database; None if its revision is the right one.

    Raises StoreUnavailable if the server does not answer.
    """
    found, needed = current(url), head()
    if found is None:
        return "this database has no cell yet; run: omega db init"
    if found != needed:
        return (
            f"this database is at revision {found}, this program needs {needed};"
            " run: omega db migrate"
        )
    return None


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


def _run(url: str, revision: str) -> None:
    config = _config()
    with _answering(), _engine(url).begin() as connection:
        connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('omega.migrate'))"))
        remove_functions(connection)
        config.attributes["connection"] = connection
        if revision == "head":
            command.upgrade(config, revision)
            install_functions(connection)
        else:
            command.downgrade(config, revision)


@contextmanager
def _answering() -> Iterator[None]:
    try:
        yield
    except OperationalError as silence:
        raise StoreUnavailable(" ".join(str(silence.orig).split())) from silence


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(_scripts()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def _scripts() -> Path:
    """Find the migrations: beside the package in a checkout, inside it in a wheel."""
    package = Path(omega.__file__).parent
    inside = package / "migrations"
    return inside if inside.is_dir() else package.parent / "migrations"


def _engine(url: str) -> Engine:
    return create_engine(make_url(url).set(drivername="postgresql+psycopg"), poolclass=NullPool)
