"""The table of allocations: slots stay, and are used again."""

import numpy as np
import pytest

from omega.model.arrays import Index
from omega.store.memory import row_log
from omega.store.memory.allocations import ROW, ROWS_AT_FIRST, AllocationTable


def add(table: AllocationTable, tasks: range, *, job: int = 1, number: int = 1) -> Index:
    rows = np.zeros(len(tasks), dtype=ROW)
    rows["job"], rows["task"], rows["machine"] = job, tasks, np.array(tasks) + 100
    rows["granted_by"] = number
    return table.add(rows)


def test_an_allocation_keeps_its_slot_while_the_table_grows() -> None:
    table = AllocationTable()
    slots = add(table, range(3))
    add(table, range(10 * ROWS_AT_FIRST), job=2)

    assert [100, 101, 102] == table.machines(slots).tolist()
    assert 3 + 10 * ROWS_AT_FIRST == len(table)


def test_every_slot_is_its_own() -> None:
    table = AllocationTable()
    slots = [*add(table, range(700)), *add(table, range(700)), *add(table, range(700))]

    assert 2_100 == len(set(slots))


def test_freed_slots_are_used_again() -> None:
    table = AllocationTable()
    for _ in range(10):
        table.end(add(table, range(ROWS_AT_FIRST)))

    assert 0 == len(table)
    assert ROWS_AT_FIRST == len(table.rows)


def test_live_ones_are_told_without_the_ended() -> None:
    table = AllocationTable()
    slots = add(table, range(4), job=7)
    table.end(slots[[1, 2]])

    live = table.live()

    assert [7, 7] == live.job.tolist()
    assert [0, 3] == sorted(live.task.tolist())
    assert 2 == len(table)


@pytest.mark.parametrize("logged_max", [2, 4_096], ids=["forgotten", "known"])
def test_live_ones_are_told_from_a_number_on(
    monkeypatch: pytest.MonkeyPatch, logged_max: int
) -> None:
    monkeypatch.setattr(row_log, "LOGGED_MAX", logged_max)
    table = AllocationTable()
    slots = [add(table, range(2), job=number, number=number) for number in (1, 2, 3)]
    table.end(slots[1])
    add(table, range(1), job=4, number=5)  # in a slot that job 2 had

    told = [sorted(table.live(since=number).job.tolist()) for number in range(6)]

    assert [[1, 1, 3, 3, 4], [3, 3, 4], [3, 3, 4], [4], [4], []] == told


def test_adding_and_ending_nothing_is_fine() -> None:
    table = AllocationTable()
    table.end(add(table, range(0)))

    assert 0 == len(table) == len(table.live())
