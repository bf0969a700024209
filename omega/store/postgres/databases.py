"""Databases of a server: one that is dropped and created again for its caller.

Goal     A demo has a database of its own, empty at each start, beside the user's.
Promise  Two processes never share it: the second is refused while the first uses it. No other
         database is changed.
Source   Advisory locks are per database. This one is taken in the URL's own database, and the other
         is named after that, so processes that would share the other compete for the same lock.
"""

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Final
from urllib.parse import quote

import psycopg
from psycopg import pq, sql
from psycopg.conninfo import conninfo_to_dict

from omega.errors import SettingsError, StoreUnavailable

NAME_LENGTH_MAX: Final = 63
"""The most bytes in a name in Postgres; longer names are cut."""


_URL: Final = re.compile(r"(\w+://(?:[^@/]*@)?[^/?]*)(?:/[^?]*)?(?:\?(.*))?", re.DOTALL)
"""What stands before the database's name and after it; libpq allows a ? in a password."""


def beside(url: str, name: str) -> str:
    """Return the URL of another database of the same server."""
    match = _URL.fullmatch(url)
    assert match is not None, "the settings have looked at it"
    server, query = match.groups()
    rest = "&".join(part for part in (query or "").split("&") if not part.startswith("dbname="))
    return f"{server}/{quote(name, safe='')}{'?' if rest else ''}{rest}"


def name_of(url: str) -> str:
    """Return the name of the URL's database; libpq's default is the user's name."""
    known = _known(url)
    return known.get("dbname") or known["user"]


def host_of(url: str) -> str | None:
    """Return the first host of a database's URL; None if it is this machine, by a socket file."""
    known = _known(url)
    first, _, _ = (known.get("hostaddr") or known.get("host") or "").partition(",")
    return None if not first or first.startswith(("/", "@")) else first


def _known(url: str) -> dict[str, str]:
    """Return what a URL says, and libpq's defaults of what it does not say."""
    known = {
        option.keyword.decode(): option.val.decode()
        for option in pq.Conninfo.get_defaults()
        if option.val is not None
    }
    return {**known, **{key: str(value) for key, value in conninfo_to_dict(url).items()}}


def suffixed(url: str, suffix: str) -> str:
    """Return the URL of the database with the name of the URL's own database and a suffix."""
    return beside(url, name_of(url)[: NAME_LENGTH_MAX - len(suffix)] + suffix)


@contextmanager
def recreated_database(url: str, suffix: str, *, stays: bool = True) -> Iterator[str]:
    """Drop the database beside the URL's own if it exists, create it empty, and yield its URL.

    The database is kept afterwards, unless `stays` is False.

    Raises StoreUnavailable if another process uses the database or the server does not answer,
    SettingsError if the URL's user may not create databases or take the lock.
    """
    there = suffixed(url, suffix)
    name = name_of(there)
    try:
        connection = psycopg.connect(url, autocommit=True, connect_timeout=10)
    except psycopg.OperationalError as silence:
        raise StoreUnavailable(" ".join(str(silence).split())) from silence
    with closing(connection):
        # A busy server needs a long time to copy a database or to end the sessions in it.
        connection.execute("SET statement_timeout = 0")
        _hold(connection, name)
        _make(connection, name)
        try:
            yield there
        finally:
            if not stays:
                _drop(connection, name)


def _hold(connection: psycopg.Connection[tuple[object, ...]], name: str) -> None:
    try:
        held = connection.execute(
            "SELECT pg_try_advisory_lock(hashtext('omega.databases'), hashtext(%s))", (name,)
        ).fetchone()
    except psycopg.errors.InsufficientPrivilege as refused:
        raise SettingsError(
            [f"the user of OMEGA_DATABASE_URL may not take a lock for the database {name}"]
        ) from refused
    if held != (True,):
        raise StoreUnavailable(f"another process works in the database {name} of this server")


def _make(connection: psycopg.Connection[tuple[object, ...]], name: str) -> None:
    try:
        _drop(connection, name)
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    except psycopg.errors.InsufficientPrivilege as refused:
        raise SettingsError(
            [f"the user of OMEGA_DATABASE_URL may not make the database {name}, which this needs"]
        ) from refused


def _drop(connection: psycopg.Connection[tuple[object, ...]], name: str) -> None:
    drop = sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(name))
    try:
        connection.execute(drop + sql.SQL(" WITH (FORCE)"))
    except psycopg.errors.InsufficientPrivilege:
        # Only a superuser may end a superuser's processes, such as autovacuum's. Without FORCE the
        # server asks autovacuum to end, and waits for five seconds.
        try:
            connection.execute(drop)
        except psycopg.errors.ObjectInUse as in_use:
            raise StoreUnavailable(f"another process works in the database {name}") from in_use
