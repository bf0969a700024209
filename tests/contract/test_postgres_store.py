"""The store on Postgres obeys the law for stores, on each kind of server."""

from collections.abc import Iterator

import pytest

from omega.store.postgres.store import PostgresStore
from omega.store.protocols import Store
from omega.testing.contracts import StoreContract


class TestPostgresStore(StoreContract):
    """All of the contract."""

    @pytest.fixture
    def store(self, database_url: str) -> Iterator[Store]:
        """An empty cell."""
        store = PostgresStore(database_url, application_name="omega tests")
        yield store
        store.close()
