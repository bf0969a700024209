"""The ways to synchronise, as one chooses them."""

import pytest

from omega.clock import ManualClock
from omega.events import Event, ViewRefreshed
from omega.store.memory.store import MemoryStore
from omega.sync.choice import Sync
from omega.testing.builders import a_spec
from omega.testing.steps import a_running_job, add_a_cell


@pytest.mark.parametrize(
    ("sync", "rows"), [(Sync.FULL, [3, 3]), (Sync.DELTA, [3, 1]), (Sync.PARTITIONED, [3, 1])]
)
def test_each_way_shows_the_cell_as_it_is_and_reads_what_it_says(
    sync: Sync, rows: list[int]
) -> None:
    events: list[Event] = []
    store = MemoryStore(ManualClock())
    add_a_cell(store, 3)
    clock = ManualClock()
    refresher = sync.refresher(store, clock, events.append)

    view = refresher.refresh(None)
    a_running_job(store, a_spec(), [2])
    clock.advance(1.0)  # by turns, everything has had its turn by now
    view = refresher.refresh(view)

    assert [4_000, 3_000, 4_000] == view.free[:, 0].tolist()
    assert [1.0] == view.parts_read_s.tolist()
    assert rows == [event.rows for event in events if isinstance(event, ViewRefreshed)]
