"""The cell as it would be: what goes when notices end."""

from omega.model.arrays import integers
from omega.model.machines import MachineState
from omega.model.occupants import Occupants
from omega.model.resources import Kind, amounts
from omega.reports.why.suppositions import after_notices, emptied_where_open, opened
from omega.store.status import Notice
from omega.testing.builders import a_cell, a_view

ALL_OF_IT = {1: {"cpu_milli": 5_000}}


def test_as_much_goes_as_is_too_much_and_no_more() -> None:
    """The lowest precedence goes first, and what it leaves is exactly enough."""
    view = a_view(a_cell(1, cpu_milli=4_000), used=ALL_OF_IT)
    there = Occupants(
        job=integers([7, 8]),
        task=integers([0, 0]),
        machine=integers([1, 1]),
        amounts=integers([amounts(cpu_milli=4_000), amounts(cpu_milli=1_000)]),
        started_ms=integers([1, 1]),
        distinct_job=integers([7, 8]),
        precedence=integers([0, -1]),
        yields_to=integers([10, 9]),
        minimum=integers([0, 0]),
        placed=integers([1, 1]),
        running=integers([1, 1]),
        scheduler=("batch", "batch"),
        tenant=("default", "default"),
    )

    then = after_notices(view, [Notice(1, amounts(cpu_milli=1_000), 9)], there)

    assert not view.open[0]
    assert then.open[0]
    assert 0 == then.free[0, Kind.CPU_MILLI]


def test_a_cell_is_opened_and_emptied_as_is_said() -> None:
    state = {1: MachineState.DRAINING, 2: MachineState.GONE}
    view = a_view(a_cell(3), used={1: {"cpu_milli": 500}}, state=state)

    assert [True, False, True] == opened(view).open.tolist()
    assert 3_500 == opened(view).free[0, Kind.CPU_MILLI]
    assert [False, False, True] == emptied_where_open(view).open.tolist()
    assert 4_000 == emptied_where_open(view).free[0, Kind.CPU_MILLI]
