"""A store on Postgres, for every test of this folder."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from omega.store.postgres.store import PostgresStore
from tests.fixtures.sessions import OpenStore


@pytest.fixture
def store(database_url: str, open_store: OpenStore) -> Iterator[PostgresStore]:
    """An empty cell on each kind of server."""
    with closing(open_store(database_url)) as store:
        yield store
