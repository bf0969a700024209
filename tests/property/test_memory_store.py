"""Random histories on a memory store."""

from hypothesis import settings

from omega.clock import ManualClock
from omega.store.base import Store
from omega.store.memory import MemoryStore
from omega.testing.auditor import Auditor
from omega.testing.histories import SchedulersOnOneCell


class OnAMemoryStore(SchedulersOnOneCell):
    """Under audit, so that the auditor is tried on sound histories as well."""

    def new_store(self) -> Store:
        return Auditor(MemoryStore(ManualClock()))


TestMemoryStoreHistories = OnAMemoryStore.TestCase
TestMemoryStoreHistories.settings = settings(max_examples=200, stateful_step_count=40)
