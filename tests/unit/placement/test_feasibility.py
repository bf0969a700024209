"""Which machines take a task, and how many."""

import pytest

from omega.cell.view import View
from omega.model.jobs import Constraint, LeasedJob, Operator
from omega.model.machines import MachineState
from omega.placement.feasibility import matching, meets, room
from omega.testing.builders import a_cell, a_group, a_job, a_spec, a_view


def takes(view: View, job: LeasedJob, group: int = 0) -> dict[int, int]:
    """Tasks that each machine takes, by machine id."""
    found = room(view, job, group)
    return dict(zip(view.id[found.at].tolist(), found.tasks.tolist(), strict=True))


def a_zoned_view() -> View:
    return a_view(a_cell(4, attributes={"zone": ["a", "b", None, "a"]}))


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [
        (Operator.IN, ("a",), [True, False, False, True]),
        (Operator.IN, ("a", "b"), [True, True, False, True]),
        (Operator.IN, ("nowhere",), [False] * 4),
        (Operator.NOT_IN, ("a",), [False, True, True, False]),
        (Operator.NOT_IN, ("nowhere",), [True] * 4),
        (Operator.EXISTS, (), [True, True, False, True]),
        (Operator.MISSING, (), [False, False, True, False]),
    ],
)
def test_a_constraint_is_a_mask(
    operator: Operator, values: tuple[str, ...], expected: list[bool]
) -> None:
    assert expected == meets(a_zoned_view(), Constraint("zone", operator, values)).tolist()


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [
        (Operator.IN, ("a",), [False] * 4),
        (Operator.NOT_IN, ("a",), [True] * 4),
        (Operator.EXISTS, (), [False] * 4),
        (Operator.MISSING, (), [True] * 4),
    ],
)
def test_an_attribute_that_no_machine_has_is_missing_everywhere(
    operator: Operator, values: tuple[str, ...], expected: list[bool]
) -> None:
    assert expected == meets(a_zoned_view(), Constraint("rack", operator, values)).tolist()


def test_all_constraints_must_be_met() -> None:
    view = a_view(a_cell(3, attributes={"zone": ["a", "a", "b"], "ssd": ["yes", None, "yes"]}))
    both = (Constraint("zone", Operator.IN, ("a",)), Constraint("ssd", Operator.EXISTS))

    assert [True, False, False] == matching(view, a_group(constraints=both)).tolist()


def test_to_spread_over_an_attribute_that_no_machine_has_matches_nothing() -> None:
    assert not matching(a_zoned_view(), a_group(spread_over="rack")).any()
    assert matching(a_zoned_view(), a_group(spread_over="zone")).all()


def test_the_scarcest_kind_limits_a_machine() -> None:
    view = a_view(a_cell(3, cpu_milli=4_000, memory_mib=1_000), used={3: {"memory_mib": 950}})

    assert {1: 3, 2: 3} == takes(view, a_job(9, cpu_milli=1_000, memory_mib=300))


def test_a_task_that_asks_for_nothing_fits_everywhere() -> None:
    view = a_view(a_cell(2), used={1: {"cpu_milli": 4_000}})

    assert [1, 2] == list(takes(view, a_job(5, cpu_milli=0)))


def test_closed_machines_have_no_room() -> None:
    view = a_view(a_cell(3), state={1: MachineState.DOWN, 2: MachineState.DRAINING})

    assert {3: 4} == takes(view, a_job(9))


def test_whole_gpus_are_counted_in_slots_that_nobody_shares() -> None:
    view = a_view(a_cell(3, gpus=4), used={1: {"gpu_2": 1}, 2: {"gpu_0": 1_000, "gpu_1": 500}})

    assert {1: 3, 2: 2, 3: 4} == takes(view, a_job(9, cpu_milli=0, gpus=1))
    assert {1: 1, 2: 1, 3: 2} == takes(view, a_job(9, cpu_milli=0, gpus=2))
    assert {1: 1, 3: 1} == takes(view, a_job(9, cpu_milli=0, gpus=3))


def test_fractions_are_counted_slot_by_slot() -> None:
    view = a_view(a_cell(2, gpus=2), used={1: {"gpu_0": 300, "gpu_1": 700}})

    assert {1: 1, 2: 2} == takes(view, a_job(9, cpu_milli=0, gpus=1, gpu_slices=600))
    assert {1: 3, 2: 6} == takes(view, a_job(9, cpu_milli=0, gpus=1, gpu_slices=300))


def test_the_other_kinds_limit_gpu_tasks_too() -> None:
    view = a_view(a_cell(1, cpu_milli=2_000, gpus=8))

    assert {1: 2} == takes(view, a_job(9, cpu_milli=1_000, gpus=1))


def test_different_machines_take_one_task_each_but_for_those_that_have_one() -> None:
    view = a_view(a_cell(3))
    job = a_job(9, different_machines=True, runs_on={4: 2})

    assert {1: 1, 3: 1} == takes(view, job)


def test_a_machine_that_left_the_view_does_not_disturb_different_machines() -> None:
    job = a_job(9, different_machines=True, runs_on={0: 99})

    assert {1: 1, 2: 1, 3: 1} == takes(a_view(a_cell(3)), job)


def test_another_group_may_share_the_machine() -> None:
    groups = [a_group(2, different_machines=True), a_group(2, different_machines=True)]
    job = a_job(spec=a_spec(groups=groups), runs_on={0: 1})
    view = a_view(a_cell(2))

    assert {2: 1} == takes(view, job, 0)
    assert {1: 1, 2: 1} == takes(view, job, 1)


def test_the_total_is_over_all_machines() -> None:
    assert 12 == room(a_view(a_cell(3)), a_job(99), 0).total
