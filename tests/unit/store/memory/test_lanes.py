"""The order of the queue in a memory store: what depends on its clock."""

from omega.clock import ManualClock
from omega.limits import LIMITS
from omega.model.lanes import QueueOrder
from omega.store.memory.store import MemoryStore

A_DAY_MS = 24 * 60 * 60 * 1_000


def test_an_agreement_is_over_after_a_minute_whatever_was_asked_for() -> None:
    clock = ManualClock()
    store = MemoryStore(clock)
    store.agree_on_order("batch", "0", QueueOrder.DRF, lease_ms=A_DAY_MS)
    clock.advance(LIMITS.order_ms_max / 1_000 - 1)
    before = store.queue_orders()
    clock.advance(1)

    assert {"batch": QueueOrder.DRF} == before
    assert {} == store.queue_orders()
    assert store.agree_on_order("batch", "1", QueueOrder.FIFO, lease_ms=A_DAY_MS) is None
