"""The map of machines as bytes."""

from base64 import b64decode

import numpy as np

from omega.cell.view import View
from omega.model.arrays import integers
from omega.model.machines import MachineState
from omega.testing.builders import a_cell, a_snapshot, a_view, some_rows
from omega.web.cell_map import ABOVE, FULL, NONE, WIDTH, CellMap, looks_of


def looks(view: View) -> list[list[int]]:
    told: list[list[int]] = looks_of(view.capacity, view.free, view.state).tolist()
    return told


def test_a_level_is_a_share_in_half_percents() -> None:
    view = a_view(
        a_cell(4, cpu_milli=4_000, memory_mib=1_000, disk_mib=0, gpus=2),
        used={
            2: {"cpu_milli": 1_000, "memory_mib": 1_000, "gpu_1": 500},
            3: {"cpu_milli": 1},
        },
        state={4: MachineState.DRAINING},
    )

    assert [
        [0, 0, 0, NONE, 0],
        [0, 50, FULL, NONE, 50],
        [0, 1, 0, NONE, 0],
        [MachineState.DRAINING, 0, 0, NONE, 0],
    ] == looks(view)


def test_use_above_the_capacity_has_a_level_of_its_own() -> None:
    capacity = a_cell(1, disk_mib=0).capacity
    free = capacity.copy()
    free[0, 0], free[0, 2] = -1, -5

    (told,) = looks_of(capacity, free, np.zeros(1, np.int8)).tolist()

    assert [ABOVE, 0, ABOVE] == told[1:4]


def test_the_whole_map_is_a_header_ids_and_looks() -> None:
    packed = CellMap(a_view(a_cell(3)), number=7).packed()

    assert [3, 7, 0, WIDTH] == np.frombuffer(packed, "<u4", 4).tolist()
    assert [1, 2, 3] == np.frombuffer(packed, "<u4", 3, offset=16).tolist()
    assert 16 + 3 * 4 + 3 * WIDTH == len(packed)


def test_a_delta_has_only_machines_that_look_different() -> None:
    cell = a_cell(5, cpu_milli=4_000)
    view = a_view(cell)
    shown = CellMap(view, number=1)
    before = shown.packed()
    view.patch(
        some_rows(
            cell,
            used={2: {"cpu_milli": 3_000}, 4: {"cpu_milli": 4_000}},
            revision={2: 1, 3: 1, 4: 1},
        )
    )

    delta = shown.catch_up(view, integers([4, 3, 2, 99]))

    assert delta is not None
    row = delta.row()
    assert (1, 1) == (row["map"], row["version"])
    assert [1, 3] == np.frombuffer(b64decode(str(row["at"])), "<u4").tolist()
    changed = np.frombuffer(b64decode(str(row["looks"])), np.uint8).reshape(-1, WIDTH)
    assert [150, FULL] == changed[:, 1].tolist()
    assert (
        before
        != shown.packed()
        == CellMap(view, number=1).packed()[:8] + bytes([1, 0, 0, 0]) + shown.packed()[12:]
    )
    assert shown.catch_up(view, integers([2, 3, 4])) is None


def test_an_empty_cell_has_an_empty_map() -> None:
    empty = View(a_snapshot(a_cell(0)))

    assert 16 == len(CellMap(empty, number=1).packed())
    assert CellMap(empty, number=1).catch_up(empty, integers()) is None
