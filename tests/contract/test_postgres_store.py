"""The store on Postgres obeys the law for stores, on each kind of server."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from omega.store.protocols import Store
from omega.testing.contracts import StoreContract
from tests.fixtures.sessions import OpenStore


class TestPostgresStore(StoreContract):
    """All of the contract."""

    @pytest.fixture
    def store(self, database_url: str, open_store: OpenStore) -> Iterator[Store]:
        """An empty cell."""
        with closing(open_store(database_url)) as store:
            yield store
