"""Partitioned synchronisation: each part in its turn, and all of them within the gap."""

from collections import Counter
from math import inf, nan

import numpy as np
import pytest

from omega.cell.partition import WHOLE, Parts, part_of
from omega.clock import ManualClock
from omega.errors import StoreUnavailable
from omega.events import Event, ViewRefreshed, ignore
from omega.model.arrays import integers
from omega.model.machines import Changes, MachineState, Snapshot
from omega.store.memory.store import MemoryStore
from omega.sync.partitioned import PartitionedRefresher
from omega.sync.turns import Turn
from omega.testing.builders import a_cell
from omega.testing.pass_through import PassThrough
from omega.testing.steps import add_a_cell
from omega.testing.twin import row_differences

MACHINES = 64
OF = 4


class Watched(PassThrough):
    """Remembers which parts were asked for, and may be away."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.asked: list[tuple[int, ...]] = []
        self.away = False

    def changes_since(self, mark: int, parts: Parts = WHOLE) -> Changes:
        if self.away:
            raise StoreUnavailable("the server is away")
        assert OF == parts.of
        self.asked.append(parts.numbers)
        return super().changes_since(mark, parts)


class TestPartitioned:
    """One of four schedulers that share out 64 machines; a round lasts a second."""

    def setup_method(self) -> None:
        self.clock = ManualClock()
        self.store = Watched(MemoryStore(self.clock))
        self.events: list[Event] = []
        self.ids = integers(add_a_cell(self.store, MACHINES))
        self.refresher = self.of_scheduler(0)
        self.view = self.refresher.refresh(None)

    def of_scheduler(self, number: int) -> PartitionedRefresher:
        turn = Turn(number, OF, gap_s=OF)
        return PartitionedRefresher(self.store, self.clock, self.events.append, turn)

    def drain(self) -> None:
        self.store.set_state(self.ids, MachineState.DRAINING)

    def closed(self) -> set[int]:
        """Return the parts of which the view has heard that all machines are closed."""
        parts = part_of(self.view.id, OF)
        told = {part: set(self.view.state[parts == part].tolist()) for part in range(OF)}
        assert all(1 == len(states) for states in told.values()), "a part is read whole"
        return {part for part, states in told.items() if states == {MachineState.DRAINING}}

    def test_within_one_round_nothing_is_read(self) -> None:
        self.drain()
        self.clock.advance(0.5)

        assert self.view is self.refresher.refresh(self.view)
        assert set() == self.closed()
        assert [] == self.store.asked

    def test_each_round_brings_one_more_part_and_n_rounds_bring_all(self) -> None:
        self.drain()
        known = []
        for _ in range(OF):
            self.clock.advance(1.0)
            self.refresher.refresh(self.view)
            known.append(len(self.closed()))

        assert [1, 2, 3, 4] == known
        assert [] == row_differences(self.store.snapshot().rows, self.view.rows())

    def test_a_part_keeps_a_mark_of_its_own_so_that_it_misses_nothing(self) -> None:
        for step in range(3 * OF):
            state = MachineState.DRAINING if step % 2 else MachineState.OPEN
            self.store.set_state(self.ids, state)
            self.clock.advance(1.0)
            self.refresher.refresh(self.view)
        for _ in range(OF):
            self.clock.advance(1.0)
            self.refresher.refresh(self.view)

        assert [] == row_differences(self.store.snapshot().rows, self.view.rows())
        assert MACHINES // OF * 2 > max(
            e.rows for e in self.events[1:] if isinstance(e, ViewRefreshed)
        )

    def test_rounds_that_were_missed_are_made_up_for_at_once(self) -> None:
        self.drain()
        self.clock.advance(2.0)
        self.refresher.refresh(self.view)
        two = self.closed()
        self.clock.advance(100.0)
        self.refresher.refresh(self.view)

        assert 2 == len(two)
        assert set(range(OF)) == self.closed()
        assert [2, 4] == [len(parts) for parts in self.store.asked]

    def test_no_part_is_older_than_the_gap_and_the_mean_stays_about_half_of_it(self) -> None:
        read_at = np.zeros(OF)
        means = []
        for second in range(1, 5 * OF):
            self.clock.advance(1.0)
            self.refresher.refresh(self.view)
            read_at[list(self.store.asked[-1])] = second
            if second >= OF:
                ages = second - read_at
                assert ages.max() < OF
                means.append(float(ages.mean()))

        # G (N - 1) / 2N: the lower of the two bounds, which is met as a round begins.
        assert {OF * (OF - 1) / (2 * OF)} == set(means)

    def test_a_view_is_told_when_each_part_was_read(self) -> None:
        assert [0.0] * OF == self.view.parts_read_s.tolist()
        self.clock.advance(1.0)
        self.refresher.refresh(self.view)

        ((part,),) = self.store.asked
        assert [float(one == part) for one in range(OF)] == self.view.parts_read_s.tolist()

    def test_no_two_schedulers_read_a_part_in_the_same_round(self) -> None:
        schedulers = [self.of_scheduler(number) for number in range(OF)]
        views = [one.refresh(None) for one in schedulers]
        for _ in range(2 * OF):
            self.clock.advance(1.0)
            self.store.asked.clear()
            for one, view in zip(schedulers, views, strict=True):
                one.refresh(view)

            assert {(part,) for part in range(OF)} == set(self.store.asked)

    def test_rounds_are_by_the_stores_clock_whenever_one_joined(self) -> None:
        late_clock = ManualClock(1_001.0)  # as of a machine that started at another time
        late = PartitionedRefresher(self.store, late_clock, self.events.append, Turn(1, OF, OF))
        view = late.refresh(None)
        self.clock.advance(1.0)
        late_clock.advance(1.0)
        late.refresh(view)
        self.refresher.refresh(self.view)

        theirs, ours = self.store.asked
        assert ((ours[0] + 1) % OF,) == theirs

    def test_new_machines_lead_to_a_full_read(self) -> None:
        self.store.add_machines(a_cell(2, first=MACHINES + 1))
        self.clock.advance(1.0)

        view = self.refresher.refresh(self.view)

        assert view is not self.view
        assert MACHINES + 2 == len(view)
        assert ViewRefreshed(MACHINES + 2, 1.0, 0.0, full=True) == self.events[-1]

    def test_a_refresh_tells_the_rows_and_the_age_of_the_parts_that_it_read(self) -> None:
        self.drain()
        self.clock.advance(2.0)
        self.refresher.refresh(self.view)
        rows = int(np.isin(part_of(self.ids, OF), self.store.asked[0]).sum())

        assert ViewRefreshed(rows, 2.0, 0.0, full=False) == self.events[-1]

    def test_a_refresh_that_failed_is_made_up_for_by_the_next(self) -> None:
        self.drain()
        self.clock.advance(1.0)
        self.store.away = True
        with pytest.raises(StoreUnavailable):
            self.refresher.refresh(self.view)
        self.store.away = False
        self.refresher.refresh(self.view)

        assert 1 == len(self.closed())

    def test_one_alone_reads_everything_once_a_gap(self) -> None:
        store = MemoryStore(self.clock)
        add_a_cell(store, 3)
        alone = PartitionedRefresher(store, self.clock, self.events.append, Turn(gap_s=2.0))
        view = alone.refresh(None)
        store.set_state(integers([1, 2, 3]), MachineState.DRAINING)
        self.clock.advance(1.0)
        early = alone.refresh(view).state.tolist()
        self.clock.advance(1.0)
        late = alone.refresh(view).state.tolist()

        assert [MachineState.OPEN] * 3 == early
        assert [MachineState.DRAINING] * 3 == late


class Given:
    """A turn that somebody changes."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn

    def current(self) -> Turn:
        return self.turn

    def close(self) -> None:
        pass


class Failing(PassThrough):
    """Does not answer the next full read."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.fails = False

    def snapshot(self) -> Snapshot:
        if self.fails:
            self.fails = False
            raise StoreUnavailable("the server is away")
        return super().snapshot()


def test_a_full_read_that_failed_as_the_turn_changed_is_made_up_for_by_the_next() -> None:
    clock = ManualClock(1_000.0)
    store = Failing(MemoryStore(clock))
    add_a_cell(store, 16)
    turns = Given(Turn(0, 4, 4.0))
    refresher = PartitionedRefresher(store, clock, ignore, turns)
    view = refresher.refresh(None)
    turns.turn = Turn(0, 3, 4.0)
    store.add_machines(a_cell(16, first=17))
    clock.advance(2.0)
    store.fails = True
    with pytest.raises(StoreUnavailable):
        refresher.refresh(view)
    clock.advance(2.0)

    assert 32 == len(refresher.refresh(view))


@pytest.mark.parametrize(("of", "parts"), [(1, 1), (1, 6), (4, 4), (4, 12), (20, 40)])
def test_in_one_round_no_part_is_read_twice_and_in_n_rounds_each_by_everybody(
    of: int, parts: int
) -> None:
    schedulers = [Turn(number, of, 1.0, parts) for number in range(of)]
    rounds = [[one.parts_of(round_) for one in schedulers] for round_ in range(5, 5 + of)]

    for read in rounds:
        assert list(range(parts)) == sorted(part for one in read for part in one)
        assert {parts // of} == {len(one) for one in read}
    for mine in zip(*rounds, strict=True):
        assert list(range(parts)) == sorted(part for one in mine for part in one)


@pytest.mark.parametrize(
    ("of", "gap_s", "parts"),
    [(4, 1.0, 6), (4, 1.0, 2), (4, 1.0, 1_028), (4, 0.0, 4), (4, nan, 4), (4, inf, 4)],
)
def test_a_turn_that_cannot_be_kept_is_no_turn(of: int, gap_s: float, parts: int) -> None:
    with pytest.raises(AssertionError):
        Turn(0, of, gap_s, parts)


@pytest.mark.parametrize("parts", [1, 2, 3, 7, 20, 32])
def test_parts_are_alike_in_size_and_in_any_run_of_neighbours(parts: int) -> None:
    for first in (1, 1_000, 500_000):
        run = np.arange(first, first + 40 * parts, dtype=np.int64)
        sizes = Counter(part_of(run, parts).tolist())

        assert set(range(parts)) == set(sizes)
        assert max(sizes.values()) <= 60


def test_machines_that_alternate_in_type_are_alike_in_each_part() -> None:
    every_fourth = np.arange(0, 4_000, 4, dtype=np.int64)
    sizes = Counter(part_of(every_fourth, 4).tolist())

    assert 4 == len(sizes)
    assert max(sizes.values()) <= 300
