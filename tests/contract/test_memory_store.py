"""The memory store obeys the law for stores."""

import pytest

from omega.clock import ManualClock
from omega.store.memory.store import MemoryStore
from omega.store.protocols import Store
from omega.testing.contracts import StoreContract


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> Store:
        return MemoryStore(ManualClock(now=1_000_000.0))
