"""Delta synchronisation: what changed, and a full read where that is not enough."""

import pytest

from omega.cell.partition import WHOLE, Parts
from omega.clock import ManualClock
from omega.errors import StoreUnavailable
from omega.events import Event, ViewRefreshed
from omega.model.machines import Changes, Snapshot
from omega.store.memory.store import MemoryStore
from omega.sync.delta import DeltaRefresher
from omega.testing.builders import a_cell, a_spec
from omega.testing.pass_through import PassThrough
from omega.testing.steps import a_running_job, add_a_cell, end


class Measured(PassThrough):
    """Lets reads take time, and fail."""

    def __init__(self, store: MemoryStore, clock: ManualClock) -> None:
        super().__init__(store)
        self.clock = clock
        self.away = False

    def snapshot(self) -> Snapshot:
        self.clock.advance(0.5)
        return super().snapshot()

    def changes_since(self, mark: int, parts: Parts = WHOLE) -> Changes:
        self.clock.advance(0.125)
        if self.away:
            raise StoreUnavailable("the server is away")
        return super().changes_since(mark, parts)


class TestDelta:
    """A refresher on three machines."""

    def setup_method(self) -> None:
        self.clock = ManualClock()
        self.store = Measured(MemoryStore(self.clock), self.clock)
        self.events: list[Event] = []
        add_a_cell(self.store, 3)
        self.refresher = DeltaRefresher(self.store, self.clock, self.events.append)

    def test_the_first_refresh_reads_everything(self) -> None:
        view = self.refresher.refresh(None)

        assert 3 == len(view)
        assert [ViewRefreshed(3, 0.0, 0.5, full=True)] == self.events

    def test_later_ones_read_what_changed_into_the_same_view(self) -> None:
        first = self.refresher.refresh(None)
        a_running_job(self.store, a_spec(), [2])

        second = self.refresher.refresh(first)

        assert second is first
        assert [4_000, 3_000, 4_000] == second.free[:, 0].tolist()
        assert ViewRefreshed(1, 0.5, 0.125, full=False) == self.events[-1]

    def test_ends_of_tasks_arrive_too(self) -> None:
        job = a_running_job(self.store, a_spec(), [2])
        view = self.refresher.refresh(None)
        end(self.store, job, 0)

        view = self.refresher.refresh(view)

        assert [4_000] * 3 == view.free[:, 0].tolist()

    def test_without_any_change_nothing_is_read(self) -> None:
        view = self.refresher.refresh(None)

        self.refresher.refresh(view)

        assert ViewRefreshed(0, 0.5, 0.125, full=False) == self.events[-1]

    def test_new_machines_lead_to_a_full_read(self) -> None:
        first = self.refresher.refresh(None)
        self.store.add_machines(a_cell(2, first=4))

        second = self.refresher.refresh(first)

        assert second is not first
        assert 5 == len(second)
        assert ViewRefreshed(5, 0.5, 0.625, full=True) == self.events[-1]

    def test_a_refresh_that_failed_leaves_the_view_for_the_next(self) -> None:
        view = self.refresher.refresh(None)
        a_running_job(self.store, a_spec(), [2])
        self.store.away = True
        with pytest.raises(StoreUnavailable):
            self.refresher.refresh(view)
        self.store.away = False

        self.refresher.refresh(view)

        assert 3_000 == view.free[1, 0]
        assert 2 == len(self.events)
