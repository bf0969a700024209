"""A store on Postgres, for every test of this folder."""

from collections.abc import Iterator

import pytest

from omega.store.postgres.store import PostgresStore


@pytest.fixture
def store(database_url: str) -> Iterator[PostgresStore]:
    """An empty cell on each kind of server."""
    store = PostgresStore(database_url, application_name="omega tests")
    yield store
    store.close()
