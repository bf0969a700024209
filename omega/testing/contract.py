"""The base of all contracts: what comes before and after each test.

Goal     One place for the fixture that a subclass provides and for the check after each test.
Promise  A test fails if it leaves a violated invariant in the store.
Source   omega/store/protocols.py, `verify`.
"""

from collections.abc import Iterator

import pytest

from omega.store.protocols import Store


class Contract:
    """Base of the contracts: an empty store before each test, no violated invariant after it."""

    @pytest.fixture
    def store(self) -> Store:
        """Return an empty store. The subclass provides it."""
        raise NotImplementedError("provide a fixture named store")

    @pytest.fixture(autouse=True)
    def _invariants_hold_afterwards(self, store: Store) -> Iterator[None]:
        yield
        assert [] == list(store.verify())
