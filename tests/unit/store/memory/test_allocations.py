"""The table of allocations: slots stay, and are used again."""

import numpy as np

from omega.model.arrays import Index
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


def test_live_ones_are_told_from_a_number_on() -> None:
    table = AllocationTable()
    for number in (1, 2, 3):
        add(table, range(1), job=number, number=number)

    assert [[1, 2, 3], [3], []] == [sorted(table.live(since=n).job.tolist()) for n in (0, 2, 3)]


def test_adding_and_ending_nothing_is_fine() -> None:
    table = AllocationTable()
    table.end(add(table, range(0)))

    assert 0 == len(table) == len(table.live())
