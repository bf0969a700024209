"""Random histories on a memory store."""

from hypothesis import settings

from omega.clock import ManualClock
from omega.store.base import Store
from omega.store.memory import MemoryStore
from omega.testing.auditor import Auditor
from omega.testing.histories import SchedulersOnOneCell


class TickingClock(ManualClock):
    """A clock that moves by a millisecond whenever it is read, so that starts differ."""

    def now(self) -> float:
        self.advance(0.001)
        return super().now()


class OnAMemoryStore(SchedulersOnOneCell):
    """Under audit, so that the auditor is tried on sound histories as well."""

    def new_store(self) -> Store:
        return Auditor(MemoryStore(TickingClock()))


TestMemoryStoreHistories = OnAMemoryStore.TestCase
TestMemoryStoreHistories.settings = settings(max_examples=400, stateful_step_count=40)
