"""The cell that a verb works on, and access to its store.

Goal     Open the store in the same way for all verbs.
Promise  A demo's cell is a separate database: only `omega demo` and verbs with `--demo` use it.
         Verbs that only read do so on a standby if they are told one, and say how old its state is.
Source   omega.store.opening; omega.store.postgres.databases; PostgreSQL's manual, "Hot Standby".
"""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer

from omega.config import Settings, load_settings
from omega.store.opening import server, store_at
from omega.store.postgres.databases import suffixed
from omega.store.postgres.standbys import state_of_standby
from omega.store.postgres.store import PostgresStore
from omega.terminal.consoles import warn

DEMO: Final = "_demo"
"""Suffix that turns the name of the cell's database into that of the demo's."""

DemoOption = Annotated[
    bool, typer.Option("--demo", help="Look at the cell that the last demo left.")
]
ReadFrom = Annotated[
    str | None,
    typer.Option(
        "--read-from",
        metavar="URL",
        help="Read from this server, a standby of the cell's; OMEGA_READ_FROM: always.",
        show_default=False,
    ),
]


@contextmanager
def cell_settings(
    data_dir: Path | None, *, demo: bool = False, **said: object
) -> Iterator[tuple[Settings, str]]:
    """Yield the settings and the URL of the cell's database; an embedded server runs meanwhile."""
    settings = load_settings(data_dir=data_dir, **said)
    with server(settings) as url:
        yield settings, suffixed(url, DEMO) if demo else url


@contextmanager
def cell_url(data_dir: Path | None, *, demo: bool = False) -> Iterator[str]:
    """Yield only the URL of the cell's database."""
    with cell_settings(data_dir, demo=demo) as (_, url):
        yield url


@contextmanager
def cell_store(
    data_dir: Path | None, *, demo: bool = False, name: str = "omega"
) -> Iterator[PostgresStore]:
    """Yield the store of the cell, and close it at the end of the block."""
    with (
        cell_settings(data_dir, demo=demo) as (settings, url),
        closing(store_at(url, settings, name)) as store,
    ):
        yield store


@contextmanager
def reader_url(
    data_dir: Path | None, read_from: str | None, *, demo: bool = False
) -> Iterator[tuple[Settings, str]]:
    """Yield the settings and the URL of the database that verbs read from which write nothing.

    If it is a standby's, how old its state is is said first.
    """
    settings = load_settings(data_dir=data_dir, read_from=read_from)
    if settings.read_from is None:
        with cell_settings(data_dir, demo=demo) as cell:
            yield cell
        return
    url = settings.read_from.get_secret_value()
    standby = suffixed(url, DEMO) if demo else url
    warn(state_of_standby(standby, statement_timeout_ms=settings.statement_timeout_ms))
    yield settings, standby


@contextmanager
def reader_opener(
    data_dir: Path | None, read_from: str | None, *, demo: bool = False, name: str = "omega"
) -> Iterator[Callable[[], PostgresStore]]:
    """Yield what opens stores that verbs read from which write nothing, one for each thread.

    The caller closes them. If they are a standby's, how old its state is is said first.
    """
    with reader_url(data_dir, read_from, demo=demo) as (settings, url):
        yield lambda: store_at(url, settings, name)


@contextmanager
def cell_reader(
    data_dir: Path | None,
    read_from: str | None,
    *,
    demo: bool = False,
    name: str = "omega",
) -> Iterator[PostgresStore]:
    """Yield the store that verbs read from which write nothing; it may be a standby's.

    If it is, how old its state is is said on standard error.
    """
    with (
        reader_opener(data_dir, read_from, demo=demo, name=name) as opened,
        closing(opened()) as store,
    ):
        yield store
