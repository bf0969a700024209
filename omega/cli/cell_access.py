"""Which cell a verb works on, and how it comes to its store.

Goal     One way to the store for all verbs.
Promise  A demo's cell is a database of its own: no verb touches it unless told to.
Source   omega.store.opening; omega.store.postgres.databases.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Final

import typer

from omega.config import Settings, load_settings
from omega.store.opening import server, store_at
from omega.store.postgres.databases import suffixed
from omega.store.postgres.store import PostgresStore

DEMO: Final = "_demo"
"""What the name of the demo's database has behind that of the cell's."""

OfDemo = Annotated[bool, typer.Option("--demo", help="Look at the cell that the last demo left.")]


@contextmanager
def cell_settings(
    data_dir: Path | None, *, demo: bool = False, **said: object
) -> Iterator[tuple[Settings, str]]:
    """Give the settings, and the URL of the cell's database; an embedded server is up meanwhile."""
    settings = load_settings(data_dir=data_dir, **said)
    with server(settings) as url:
        yield settings, suffixed(url, DEMO) if demo else url


@contextmanager
def cell_url(data_dir: Path | None, *, demo: bool = False) -> Iterator[str]:
    """Give the URL of the cell's database alone."""
    with cell_settings(data_dir, demo=demo) as (_, url):
        yield url


@contextmanager
def cell_store(
    data_dir: Path | None, *, demo: bool = False, name: str = "omega"
) -> Iterator[PostgresStore]:
    """Give the store of the cell, and close it in the end."""
    with (
        cell_settings(data_dir, demo=demo) as (settings, url),
        closing(store_at(url, settings, name)) as store,
    ):
        yield store
