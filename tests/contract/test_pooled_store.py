"""The store obeys its contract through pgbouncer in transaction mode."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from omega.store.postgres.store import PostgresStore
from omega.store.protocols import Store
from omega.testing.contracts import StoreContract
from tests.fixtures.poolers import Pooler


class TestPooledStore(StoreContract):
    """All of the contract; in `make test` a part of it, by a hash of the test's id."""

    @pytest.fixture
    def store(self, database_url: str, pooler: Pooler) -> Iterator[Store]:
        """An empty cell."""
        with closing(PostgresStore(pooler.through(database_url))) as store:
            yield store
