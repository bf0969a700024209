"""Full synchronisation: the whole cell each time."""

from omega.cell.view import View
from omega.clock import ManualClock
from omega.events import Event, ViewRefreshed, ignore
from omega.store.memory.store import MemoryStore
from omega.sync.full import FullRefresher
from omega.testing.builders import a_spec
from omega.testing.steps import a_running_job, add_a_cell


def test_each_refresh_gives_a_new_view_of_the_cell_as_it_is() -> None:
    store = MemoryStore(ManualClock())
    add_a_cell(store)
    refresher = FullRefresher(store, ManualClock(), ignore)

    before = refresher.refresh(None)
    a_running_job(store, a_spec(), [1])
    after = refresher.refresh(before)

    assert after is not before
    assert [4_000, 3_000] == [int(view.free[0, 0]) for view in (before, after)]


def test_a_refresh_tells_its_rows_and_how_old_the_view_had_become() -> None:
    clock, events = ManualClock(), list[Event]()
    store = MemoryStore(clock)
    add_a_cell(store, 3)
    refresher = FullRefresher(store, clock, events.append)

    view = None
    for seconds in (5.0, 2.0, 0.5):
        clock.advance(seconds)
        view = refresher.refresh(view)

    assert isinstance(view, View)
    assert [ViewRefreshed(3, age, 0.0, full=True) for age in (0.0, 2.0, 0.5)] == events
