"""The revision of a database's schema, and the one that this code needs.

Goal     Say what to run when the two differ.
Promise  The database is only read. Errors are raised with one sentence, without a password.
Source   Alembic.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import create_engine, text
from sqlalchemy.engine import Engine
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.pool import NullPool

import omega
from omega.errors import NotAllowed, SchemaMismatch, StoreUnavailable

NOT_ALLOWED = "the database's user may not do this"


def current(url: str) -> str | None:
    """Return the revision of the database; None if it has none.

    Raises StoreUnavailable if the server does not answer.
    """
    with answering(), engine(url).connect() as connection:
        if connection.scalar(text("SELECT to_regclass('omega.alembic_version')")) is None:
            return None
        found = connection.scalar(text("SELECT version_num FROM omega.alembic_version"))
        return None if found is None else str(found)


def head() -> str:
    """Return the newest revision."""
    revision = ScriptDirectory.from_config(alembic_config()).get_current_head()
    assert revision is not None
    return revision


def mismatch(url: str) -> str | None:
    """Return what to run before this code can use the database; None if the revision is right.

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


@contextmanager
def answering() -> Iterator[None]:
    """Raise errors of the block as one of omega.errors, each with one sentence and no password."""
    try:
        yield
    except OperationalError as silence:
        raise StoreUnavailable(_sentence(silence)) from silence
    except DBAPIError as refusal:
        if isinstance(refusal.orig, psycopg.errors.InsufficientPrivilege):
            raise NotAllowed(f"{NOT_ALLOWED}: {_sentence(refusal)}") from refusal
        raise SchemaMismatch(f"the schema cannot be used: {_sentence(refusal)}") from refusal
    except psycopg.errors.InsufficientPrivilege as refusal:
        raise NotAllowed(f"{NOT_ALLOWED}: {refusal.diag.message_primary}") from refusal
    except psycopg.Error as refusal:  # from the functions, which are not run through SQLAlchemy
        said = refusal.diag.message_primary or str(refusal)
        raise SchemaMismatch(
            f"the functions cannot be installed: {' '.join(said.split())}"
        ) from refusal
    except CommandError as refusal:  # for example a revision of a later program
        raise SchemaMismatch(
            f"the schema cannot be migrated by this program: {refusal}"
        ) from refusal
    except SQLAlchemyError as refusal:
        raise StoreUnavailable(f"the database cannot be used: {type(refusal).__name__}") from None


def _sentence(error: DBAPIError) -> str:
    primary = error.orig.diag.message_primary if isinstance(error.orig, psycopg.Error) else None
    return " ".join((primary or str(error.orig)).split())


def alembic_config() -> Config:
    """Return Alembic's configuration, which names the folder of the migrations."""
    config = Config()
    config.set_main_option("script_location", str(_scripts()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def _scripts() -> Path:
    """Return the migrations' folder: beside the package in a checkout, inside it in a wheel."""
    package = Path(omega.__file__).parent
    inside = package / "migrations"
    return inside if inside.is_dir() else package.parent / "migrations"


def engine(url: str) -> Engine:
    """Return an engine that opens a connection for each block and closes it afterwards."""
    # Without SQLAlchemy's parser of URLs, which knows fewer than libpq: none with two hosts.
    return create_engine(
        "postgresql+psycopg://",
        # In a database without an encoding SQLAlchemy can read texts only if it is given one.
        creator=lambda: psycopg.connect(url, connect_timeout=10, client_encoding="utf8"),
        poolclass=NullPool,
    )
