"""A view: read-only to placement, patched by news, tried on without a trace."""

from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from omega.cell.partition import part_of
from omega.cell.signals import Signals
from omega.cell.view import FOUND_MAX, View
from omega.model.arrays import integers
from omega.model.machines import Changes, MachineRows, MachineState
from omega.model.resources import Kind
from omega.testing.builders import a_cell, a_claim, a_snapshot, a_view, some_claims, some_rows
from omega.testing.twin import row_differences


def news(*, revision: int, used: int, cells: int = 3, machine: int = 2) -> MachineRows:
    """Return one machine's row at a revision, with so much CPU used."""
    rows = some_rows(
        a_cell(cells),
        used={machine: {"cpu_milli": used}},
        sequence={machine: revision},
        revision={machine: revision},
    )
    return rows.take(np.array([machine - 1]))


def cpu_free(view: View) -> list[int]:
    free: list[int] = view.free[:, Kind.CPU_MILLI].tolist()
    return free


def test_a_view_shows_the_snapshot() -> None:
    cell = a_cell(3, attributes={"zone": ["east", "west", None]})
    snapshot = a_snapshot(
        cell, used={2: {"cpu_milli": 500}}, state={3: MachineState.DOWN}, sequence={1: 4}
    )

    view = View(snapshot)

    assert 3 == len(view)
    assert [4_000, 3_500, 4_000] == cpu_free(view)
    assert [True, True, False] == view.open.tolist()
    assert [4, 0, 0] == view.sequence.tolist()
    assert cell.names == view.names
    assert ("east", "west") == view.catalogue.values[0]
    assert [[1], [2], [0]] == view.codes.tolist()
    assert [0, -1, 2] == view.where(integers([1, 9, 3])).tolist()
    assert [] == row_differences(snapshot.rows, view.rows())


@pytest.mark.parametrize(
    "column", ["id", "capacity", "free", "sequence", "revision", "state", "open", "codes"]
)
def test_placement_cannot_write_to_a_view(column: str) -> None:
    view = a_view(a_cell(2, attributes={"zone": ["east", "west"]}))

    with pytest.raises(ValueError, match="read-only"):
        getattr(view, column)[0] = 1


@pytest.mark.parametrize("machines", [1, 2])
def test_a_cell_of_any_size_takes_news(machines: int) -> None:
    """One row is contiguous both ways: what was meant as a copy was the frozen snapshot itself."""
    view = a_view(a_cell(machines))

    assert 1 == view.patch(news(revision=1, used=1_000, cells=machines, machine=1))
    assert 3_000 == cpu_free(view)[0]


def test_machines_lie_in_as_many_parts_as_there_are_ages_of() -> None:
    view = a_view(a_cell(50))
    for parts in (1, 4, 2):
        view.signals = Signals(parts_read_s=np.zeros(parts))

        assert part_of(view.id, parts).tolist() == view.part.tolist()


def test_what_depends_on_attributes_is_found_once() -> None:
    view, found = a_view(a_cell(3)), []

    def find_of(key: int) -> int:
        found.append(key)
        return 10 * key

    for key in (1, 2, 1, 2):
        assert 10 * key == view.by_attributes(key, partial(find_of, key))
    assert [1, 2] == found

    for key in range(3, 3 + FOUND_MAX):
        view.by_attributes(key, partial(find_of, key))
    assert 10 == view.by_attributes(1, partial(find_of, 1))
    assert 2 == found.count(1), "only a few are kept"


def test_a_view_leaves_its_snapshot_alone() -> None:
    snapshot = a_snapshot(a_cell(3))
    View(snapshot).patch(news(revision=1, used=1_000))

    assert not snapshot.rows.used.any()


def test_news_replace_a_row_whole() -> None:
    view = a_view(a_cell(3), used={2: {"memory_mib": 7}})

    newer = view.patch(news(revision=1, used=1_000))

    assert 1 == newer
    assert [4_000, 3_000, 4_000] == cpu_free(view)
    assert 16_384 == view.free[1, Kind.MEMORY_MIB]
    assert [0, 1, 0] == view.sequence.tolist() == view.revision.tolist()


def test_the_same_news_again_are_harmless() -> None:
    view = a_view(a_cell(3))
    rows = news(revision=3, used=1_000)

    assert [1, 0] == [view.patch(rows), view.patch(rows)]
    assert [4_000, 3_000, 4_000] == cpu_free(view)


def test_older_news_are_ignored() -> None:
    view = a_view(a_cell(3))
    view.patch(news(revision=3, used=1_000))

    assert 0 == view.patch(news(revision=2, used=2_000))
    assert [4_000, 3_000, 4_000] == cpu_free(view)


def test_news_of_machines_unknown_are_left_out() -> None:
    view = a_view(a_cell(3))
    rows = some_rows(a_cell(5), revision=dict.fromkeys(range(1, 6), 1))

    assert 3 == view.patch(rows)
    assert 3 == len(view)


def test_no_news_are_fine() -> None:
    assert 0 == a_view().patch(MachineRows.none())


def test_a_machine_used_above_its_capacity_is_open_again_when_it_is_not() -> None:
    view = a_view(a_cell(2, cpu_milli=1_000), used={1: {"cpu_milli": 1_001}})
    was_open = view.open.tolist()
    view.patch(some_rows(a_cell(2, cpu_milli=1_000), revision={1: 1, 2: 1}))
    opened = view.open.tolist()
    view.patch(some_rows(a_cell(2), used={2: {"gpu_0": 1}}, revision={1: 2, 2: 2}))

    assert [False, True] == was_open
    assert [True, True] == opened
    assert [True, False] == view.open.tolist()


def test_claims_that_are_tried_on_close_nothing() -> None:
    view = a_view(a_cell(1, cpu_milli=1_000))
    with view.tentative():
        view.assume_claims(some_claims([0, 1], [1, 1]))

        assert [True] == view.open.tolist()


def test_a_machine_that_closes_is_no_longer_open() -> None:
    view = a_view(a_cell(3))
    was_open = view.open.tolist()
    row = replace(news(revision=1, used=0), state=np.array([MachineState.DRAINING], np.int8))

    view.patch(row)

    assert [True, True, True] == was_open
    assert [True, False, True] == view.open.tolist()
    assert [0, MachineState.DRAINING, 0] == view.state.tolist()


def test_catching_up_moves_the_mark() -> None:
    view = a_view(a_cell(3))

    newer = view.catch_up(Changes(news(revision=1, used=1), mark=17, generation=1))

    assert (1, 17) == (newer, view.mark)


def test_changes_of_another_generation_need_a_full_read() -> None:
    with pytest.raises(AssertionError, match="full read"):
        a_view().catch_up(Changes(MachineRows.none(), mark=1, generation=2))


class TestTrying:
    def test_claims_tried_on_count_and_leave_no_trace(self) -> None:
        view = a_view(a_cell(3))
        with view.tentative():
            view.assume_claims(some_claims([0, 1, 2], [2, 2, 3]))
            view.assume_claims(a_claim(3, machine=2, cpu_milli=500))
            inside = cpu_free(view)

        assert [4_000, 1_500, 3_000] == inside
        assert [4_000, 4_000, 4_000] == cpu_free(view)

    def test_they_leave_no_trace_after_an_error_either(self) -> None:
        view = a_view(a_cell(1))
        with suppress(KeyError), view.tentative():
            view.assume_claims(a_claim())
            raise KeyError

        assert [4_000] == cpu_free(view)

    def test_blocks_nest_and_the_inner_one_takes_off_its_own_alone(self) -> None:
        view = a_view(a_cell(1))
        with view.tentative():
            view.assume_claims(a_claim())
            with view.tentative():
                view.assume_claims(a_claim())
                inner = cpu_free(view)
            outer = cpu_free(view)

        assert ([2_000], [3_000], [4_000]) == (inner, outer, cpu_free(view))

    def test_a_claim_on_an_unknown_machine_takes_nothing(self) -> None:
        view = a_view(a_cell(2))
        with view.tentative():
            view.assume_claims(some_claims([0, 1], [9, 1]))

            assert [3_000, 4_000] == cpu_free(view)

        assert [4_000, 4_000] == cpu_free(view)

    def test_outside_a_block_nothing_is_tried_on(self) -> None:
        with pytest.raises(AssertionError, match="tentative"):
            a_view().assume_claims(a_claim())

    def test_inside_a_block_no_news_are_taken(self) -> None:
        view = a_view(a_cell(3))
        with view.tentative(), pytest.raises(AssertionError, match="are assumed"):
            view.patch(news(revision=1, used=1))

    def test_what_runs_is_taken_off_and_leaves_no_trace(self) -> None:
        used = {1: {"cpu_milli": 3_000}, 2: {"cpu_milli": 1_000}}
        view = a_view(a_cell(2), used=used)
        runs = some_claims([0, 1, 2, 3], [1, 1, 9, 2])
        with view.tentative():
            view.assume_removed(runs.machine, runs.demand)
            inside = cpu_free(view)

        assert [3_000, 4_000] == inside
        assert [1_000, 3_000] == cpu_free(view)

    def test_what_is_put_back_is_there_again_room_or_not(self) -> None:
        view = a_view(a_cell(1, cpu_milli=4_000), used={1: {"cpu_milli": 3_000}})
        runs = some_claims([0, 1], [1, 1])
        with view.tentative():
            view.assume_removed(runs.machine, runs.demand)
            view.assume_claims(some_claims([0, 1, 2], [1, 1, 1]))
            before = cpu_free(view)
            view.undo_removal(runs.machine, runs.demand)
            inside = cpu_free(view)

        assert ([0], [-2_000]) == (before, inside)
        assert [1_000] == cpu_free(view)

    def test_taking_off_nests_with_trying_on(self) -> None:
        view = a_view(a_cell(1), used={1: {"cpu_milli": 4_000}})
        runs = some_claims([0, 1], [1, 1])
        with view.tentative():
            view.assume_removed(runs.machine, runs.demand)
            with view.tentative():
                view.assume_claims(a_claim())
                view.assume_removed(runs.machine, runs.demand)
                inner = cpu_free(view)
            view.assume_claims(a_claim())
            outer = cpu_free(view)

        assert ([3_000], [1_000], [0]) == (inner, outer, cpu_free(view))

    def test_outside_a_block_nothing_is_taken_off(self) -> None:
        runs = a_claim()
        with pytest.raises(AssertionError, match="tentative"):
            a_view().assume_removed(runs.machine, runs.demand)
