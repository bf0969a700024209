"""However schedulers share out a cell, ages stay within the bounds that ParSync promises."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from omega.clock import ManualClock
from omega.events import ignore
from omega.store.memory.store import MemoryStore
from omega.sync.partitioned import PartitionedRefresher
from omega.sync.turns import Turn
from omega.testing.steps import add_a_cell

ROUNDING_S = 1e-6


@given(
    number=st.integers(0, 5),
    of=st.integers(1, 6),
    in_each_round=st.integers(1, 3),
    gap_s=st.sampled_from([0.25, 1.0, 3.0]),
    began_ms=st.integers(0, 10_000),
    between=st.lists(st.floats(0.01, 0.99), min_size=1, max_size=4),
)
def test_who_reads_every_round_has_ages_within_the_bounds(
    number: int, of: int, in_each_round: int, gap_s: float, began_ms: int, between: list[float]
) -> None:
    turn = Turn(number % of, of, gap_s, of * in_each_round)
    clock = ManualClock(began_ms / 1_000)
    store = MemoryStore(clock)
    add_a_cell(store, 8)
    refresher = PartitionedRefresher(store, clock, ignore, turn)
    view = refresher.refresh(None)
    lasts_s = gap_s / of
    first = turn.interval_at(clock.now())
    for round_ in range(first + 1, first + 3 * of):
        clock.advance(round_ * lasts_s + ROUNDING_S - clock.now())
        refresher.refresh(view)
        if round_ < first + of:
            continue  # until each part has had a turn, some are as old as the first read
        for part_of_round in [0.0, *sorted(between)]:
            ages_s = clock.now() + part_of_round * lasts_s - view.parts_read_s

            assert ages_s.max() <= gap_s + ROUNDING_S
            assert ages_s.mean() >= gap_s * (of - 1) / (2 * of) - ROUNDING_S
            assert ages_s.mean() <= gap_s * (of + 1) / (2 * of) + ROUNDING_S
            assert np.unique(ages_s.round(3)).size <= of
