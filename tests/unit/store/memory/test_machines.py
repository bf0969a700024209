"""The table of machines: copies out, counters up."""

import numpy as np
import pytest

from omega.errors import BadInput
from omega.model.arrays import integers
from omega.model.resources import KINDS, Kind, amounts
from omega.store.memory import row_log
from omega.store.memory.machines import MachineTable
from omega.testing.builders import a_cell, some_rows
from omega.testing.twin import row_differences


@pytest.fixture
def table() -> MachineTable:
    table = MachineTable()
    table.add(a_cell(3), number=1)
    return table


def test_ids_count_from_one(table: MachineTable) -> None:
    assert [4, 5] == table.add(a_cell(2, first=4), number=2).tolist()
    assert [1, 1, 1, 2, 2] == table.changed_by.tolist()


def test_machines_that_exist_are_found_each_once(table: MachineTable) -> None:
    assert [0, 2] == table.named(integers([3, 1, 3, 0, -1, 4])).tolist()


def test_rows_handed_out_are_copies(table: MachineTable) -> None:
    rows = table.rows(np.array([0, 2]))
    table.used[:] = 7

    assert [1, 3] == rows.id.tolist()
    assert not rows.used.any()


def test_freeing_leaves_the_sequence_and_notes_the_change(table: MachineTable) -> None:
    table.used[1] = amounts(cpu_milli=3_000)
    taken = np.stack([amounts(cpu_milli=1_000), amounts(cpu_milli=500)])

    table.free(integers([2, 2]), taken, number=9)

    assert 1_500 == table.used[1, Kind.CPU_MILLI]
    assert [0, 0, 0] == table.sequence.tolist()
    assert [0, 1, 0] == table.revision.tolist()
    assert [1, 9, 1] == table.changed_by.tolist()


def test_only_newer_rows_are_written(table: MachineTable) -> None:
    rows = some_rows(
        a_cell(3),
        used={1: {"cpu_milli": 1}, 2: {"cpu_milli": 2}},
        sequence={1: 1},
        revision={1: 1},
    )

    table.write(rows, number=5)

    assert [1, 0, 0] == table.used[:, Kind.CPU_MILLI].tolist()
    assert [5, 1, 1] == table.changed_by.tolist()


def test_changes_are_those_above_a_number(table: MachineTable) -> None:
    table.free(integers([2]), amounts()[np.newaxis], number=4)

    told = {since: table.changes_since(since, mark=4).rows.id.tolist() for since in (0, 1, 3, 4)}

    assert {0: [1, 2, 3], 1: [2], 3: [2], 4: []} == told


def test_adding_nothing_changes_nothing(table: MachineTable) -> None:
    generation = table.generation

    assert [] == table.add(a_cell(0), number=2).tolist()
    assert generation == table.generation


def test_a_taken_name_is_told(table: MachineTable) -> None:
    before = table.rows(np.arange(3))

    with pytest.raises(BadInput, match="'machine-3' is in the cell already"):
        table.add(a_cell(2, first=3), number=2)

    assert [] == row_differences(before, table.rows(np.arange(len(table))))


@pytest.mark.parametrize("logged_max", [2, 4_096], ids=["forgotten", "known"])
def test_what_changed_since_is_told_whether_or_not_it_is_still_known(
    table: MachineTable, monkeypatch: pytest.MonkeyPatch, logged_max: int
) -> None:
    monkeypatch.setattr(row_log, "LOGGED_MAX", logged_max)
    for number, machine in enumerate([3, 1, 1, 2], start=2):
        table.free(integers([machine]), np.zeros((1, KINDS), np.int64), number)

    told = [table.changes_since(since, mark=5).rows.id.tolist() for since in range(6)]

    assert [[1, 2, 3], [1, 2, 3], [1, 2], [1, 2], [2], []] == told
