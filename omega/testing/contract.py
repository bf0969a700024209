"""What every contract begins and ends with.

Goal     One place for the fixture that a subclass provides and the check after each test.
Promise  A test that leaves a broken invariant behind fails, whatever it was about.
Source   omega/store/protocols.py, `verify`.
"""

from collections.abc import Iterator

import pytest

from omega.store.protocols import Store


class Contract:
    """Base of the contracts: an empty store before, no broken invariant after."""

    @pytest.fixture
    def store(self) -> Store:
        """Return an empty store. The subclass provides it."""
        raise NotImplementedError("provide a fixture named store")

    @pytest.fixture(autouse=True)
    def _invariants_hold_afterwards(self, store: Store) -> Iterator[None]:
        yield
        assert [] == list(store.verify())
