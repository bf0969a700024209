"""Databases of a server: one that is made anew for whoever asks.

Goal     Let a demo have a database of its own, empty each time, beside the user's.
Promise  Two processes never share it: the second is refused while the first holds it. No other
         database is touched.
Source   Advisory locks are per database: this one is taken in the database that the URL names.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql
from sqlalchemy import make_url

from omega.errors import SettingsError, StoreUnavailable


def beside(url: str, name: str) -> str:
    """Return the URL of another database of the same server."""
    return make_url(url).set(database=name).render_as_string(hide_password=False)


@contextmanager
def made_anew(url: str, name: str) -> Iterator[str]:
    """Drop the database of that name, make it empty, and give its URL; it stays afterwards.

    Raises StoreUnavailable if another process holds it or the server does not answer, and
    SettingsError if the URL's user may not make databases.
    """
    try:
        with psycopg.connect(url, autocommit=True, connect_timeout=10) as connection:
            _hold(connection, name)
            _make(connection, name)
            yield beside(url, name)
    except psycopg.OperationalError as silence:
        raise StoreUnavailable(" ".join(str(silence).split())) from silence


def _hold(connection: psycopg.Connection[tuple[object, ...]], name: str) -> None:
    held = connection.execute(
        "SELECT pg_try_advisory_lock(hashtext('omega.databases'), hashtext(%s))", (name,)
    ).fetchone()
    if held != (True,):
        raise StoreUnavailable(f"another process works in the database {name} of this server")


def _make(connection: psycopg.Connection[tuple[object, ...]], name: str) -> None:
    quoted = sql.Identifier(name)
    try:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(quoted))
        connection.execute(sql.SQL("CREATE DATABASE {}").format(quoted))
    except psycopg.errors.InsufficientPrivilege as refused:
        raise SettingsError(
            [f"the user of OMEGA_DATABASE_URL may not make the database {name}, which this needs"]
        ) from refused
