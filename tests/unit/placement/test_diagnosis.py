"""Why a job cannot be placed."""

from dataclasses import replace

import numpy as np
import pytest

from omega.cell.view import View
from omega.lifecycle.states import ParkReason
from omega.model.jobs import Constraint, LeasedJob, Operator
from omega.model.machines import MachineState
from omega.placement.diagnosis import diagnose, has_room
from omega.testing.builders import a_cell, a_group, a_job, a_spec, a_view, join_cells


def is_in(attribute: str, *values: str) -> tuple[Constraint, ...]:
    return (Constraint(attribute, Operator.IN, values),)


def a_gpu_view() -> View:
    return a_view(
        join_cells(
            a_cell(2, cpu_milli=64_000, gpus=4, attributes={"gpu_model": ["A100", "T4"]}),
            a_cell(1, cpu_milli=96_000, first=3),
        )
    )


def found(view: View, job: LeasedJob) -> tuple[ParkReason, str]:
    diagnosis = diagnose(view, job)
    assert diagnosis is not None
    assert not has_room(view, job)
    return diagnosis.reason, diagnosis.detail


def test_a_job_that_can_be_placed_has_no_diagnosis() -> None:
    assert has_room(a_gpu_view(), a_job(3))
    assert diagnose(a_gpu_view(), a_job(3)) is None


def test_a_job_with_nothing_left_to_place_has_no_diagnosis() -> None:
    assert diagnose(a_gpu_view(), a_job(1, runs_on={0: 1})) is None


def test_a_gang_whose_tasks_somebody_else_has_placed_has_no_diagnosis() -> None:
    job = replace(a_job(3, minimum=3), unplaced=np.array([0, 1]))

    assert not has_room(a_gpu_view(), job)
    assert diagnose(a_gpu_view(), job) is None


@pytest.mark.parametrize(
    ("job", "reason", "detail"),
    [
        (
            a_job(cpu_milli=128_000),
            ParkReason.NEVER_FITS,
            "group 0 asks for 128000 cpu_milli a task; the largest machine has 96000",
        ),
        (
            a_job(cpu_milli=96_000, constraints=is_in("gpu_model", "A100")),
            ParkReason.NEVER_FITS,
            "group 0 asks for 96000 cpu_milli a task; the largest machine that matches has 64000",
        ),
        (
            a_job(gpus=8),
            ParkReason.NEVER_FITS,
            "group 0 asks for 8 whole GPUs a task; the largest machine has 4",
        ),
        (
            a_job(cpu_milli=96_000, gpus=1, gpu_slices=500),
            ParkReason.NEVER_FITS,
            "group 0 asks for 96000 cpu_milli, 1 GPU with 500 slices a task;"
            " no one machine has all of that",
        ),
        (
            a_job(constraints=is_in("gpu_modle", "A100")),
            ParkReason.UNKNOWN_ATTRIBUTE,
            "group 0 names the attribute 'gpu_modle', which no machine has;"
            " did you mean 'gpu_model'?",
        ),
        (
            a_job(spread_over="rack"),
            ParkReason.UNKNOWN_ATTRIBUTE,
            "group 0 names the attribute 'rack', which no machine has",
        ),
        (
            a_job(constraints=is_in("gpu_model", "H100")),
            ParkReason.NO_MACHINE_MATCHES,
            "group 0 asks for gpu_model in H100; machines have gpu_model A100, T4",
        ),
        (
            a_job(
                constraints=(
                    *is_in("gpu_model", "T4"),
                    Constraint("gpu_model", Operator.NOT_IN, ("T4",)),
                )
            ),
            ParkReason.NO_MACHINE_MATCHES,
            "no machine meets at once all that group 0 asks for:"
            " gpu_model in T4 and gpu_model not_in T4",
        ),
        (
            a_job(9, gpus=1, minimum=9),
            ParkReason.GANG_TOO_LARGE,
            "the gang needs 9 tasks at once; even the empty cell holds only 8",
        ),
        (
            a_job(9, different_machines=True, minimum=4),
            ParkReason.GANG_TOO_LARGE,
            "the gang needs 4 tasks at once; even the empty cell holds only 3",
        ),
        (
            a_job(spec=a_spec(groups=[a_group(8, gpus=1), a_group(1, gpus=1)], minimum=9)),
            ParkReason.GANG_TOO_LARGE,
            "the gang needs 9 tasks at once; even the empty cell holds only 8",
        ),
        (
            a_job(spec=a_spec(groups=[a_group(8), a_group(1, gpus=5)], minimum=9)),
            ParkReason.NEVER_FITS,
            "group 1 asks for 5 whole GPUs a task; the largest machine has 4",
        ),
    ],
)
def test_what_even_the_empty_cell_could_not_take_is_permanent(
    job: LeasedJob, reason: ParkReason, detail: str
) -> None:
    assert reason.is_permanent
    assert (reason, detail) == found(a_gpu_view(), job)


def test_a_full_cell_is_something_to_wait_for() -> None:
    view = a_view(a_cell(2), used={1: {"cpu_milli": 3_500}, 2: {"cpu_milli": 3_200}})

    assert (
        ParkReason.NO_ROOM,
        "group 0 asks for 1000 cpu_milli a task; the roomiest open machine has 800 free",
    ) == found(view, a_job())


def test_room_in_different_places_is_named_as_such() -> None:
    view = a_view(a_cell(2), used={1: {"cpu_milli": 4_000}, 2: {"memory_mib": 16_384}})

    assert (
        ParkReason.NO_ROOM,
        "group 0 asks for 1000 cpu_milli, 1000 memory_mib a task;"
        " no one open machine has all of that free",
    ) == found(view, a_job(memory_mib=1_000))


def test_shared_gpus_are_not_whole_ones() -> None:
    view = a_view(a_cell(1, gpus=2), used={1: {"gpu_0": 100, "gpu_1": 100}})

    assert (
        ParkReason.NO_ROOM,
        "group 0 asks for 1 whole GPU a task; the roomiest open machine has 0 free",
    ) == found(view, a_job(gpus=1))


def test_machines_that_are_down_may_come_back() -> None:
    view = a_view(a_cell(2), state={1: MachineState.DOWN, 2: MachineState.DRAINING})

    assert (
        ParkReason.NO_ROOM,
        "every machine that group 0 may use is down or draining",
    ) == found(view, a_job())


def test_machines_that_are_gone_do_not_count() -> None:
    cell = join_cells(a_cell(1), a_cell(1, cpu_milli=9_000, first=2, attributes={"ssd": ["yes"]}))
    view = a_view(cell, state={2: MachineState.GONE})

    assert ParkReason.NEVER_FITS == found(view, a_job(cpu_milli=5_000))[0]
    assert ParkReason.UNKNOWN_ATTRIBUTE == found(view, a_job(constraints=is_in("ssd", "yes")))[0]


def test_a_domain_whose_machines_are_gone_is_no_mistake() -> None:
    cell = join_cells(a_cell(1, attributes={"rack": ["a"]}), a_cell(1, first=2))
    view = a_view(cell, state={1: MachineState.GONE})

    assert has_room(view, a_job(spread_over="rack"))
    assert ParkReason.NEVER_FITS == found(view, a_job(cpu_milli=5_000, spread_over="rack"))[0]


def test_a_cell_without_machines_says_so() -> None:
    assert (
        ParkReason.NO_MACHINE_MATCHES,
        "the cell has no machines",
    ) == found(a_view(a_cell(0)), a_job())


def test_different_machines_wait_for_their_siblings_to_end() -> None:
    job = a_job(3, different_machines=True, runs_on={0: 1, 1: 2})

    assert (
        ParkReason.NO_ROOM,
        "every machine with room for group 0 runs a task of it already",
    ) == found(a_view(a_cell(2)), job)


def test_a_gang_waits_for_room_for_all() -> None:
    view = a_view(a_cell(2), used={1: {"cpu_milli": 3_000}})

    assert (
        ParkReason.NO_ROOM,
        "the gang needs 6 tasks at once; there is room for 5 now",
    ) == found(view, a_job(6, minimum=6))


def test_a_gang_that_stands_is_placed_task_by_task() -> None:
    view = a_view(a_cell(1), used={1: {"cpu_milli": 3_000}})
    on_others = dict.fromkeys(range(4), 9)

    assert has_room(view, a_job(6, minimum=4, runs_on=on_others))
    assert not has_room(view, a_job(6, minimum=6, runs_on=on_others))


def test_a_group_to_wait_for_outranks_one_that_never_fits() -> None:
    view = a_view(a_cell(1), used={1: {"cpu_milli": 4_000}})
    job = a_job(spec=a_spec(groups=[a_group(1, cpu_milli=99_000), a_group(1)]))
    reason, detail = found(view, job)

    assert ParkReason.NO_ROOM == reason
    assert detail.startswith("group 1 asks for 1000 cpu_milli")


def test_long_lists_of_values_are_cut_short() -> None:
    view = a_view(a_cell(8, attributes={"rack": [f"r{number}" for number in range(8)]}))
    detail = found(view, a_job(constraints=is_in("rack", "r9")))[1]

    assert detail.endswith("machines have rack r0, r1, r2, r3, r4 and 3 more")


def test_the_view_is_left_as_it_was() -> None:
    view = a_view(a_cell(2, gpus=2), used={1: {"gpu_0": 500}})
    before = view.free.copy()
    groups = [a_group(4, gpus=1), a_group(4, gpus=2)]
    diagnose(view, a_job(spec=a_spec(groups=groups, minimum=8)))

    assert np.array_equal(before, view.free)


def test_a_constraint_with_many_values_is_told_in_short() -> None:
    zones = [f"z{number}" for number in range(20_000)]
    view = a_view(a_cell(2, attributes={"zone": ["a", "b"], "rack": ["r1", "r2"]}))

    reason, detail = found(view, a_job(constraints=is_in("zone", *zones)))
    both = found(view, a_job(constraints=is_in("zone", "a", *zones) + is_in("rack", "r2")))

    assert ParkReason.NO_MACHINE_MATCHES is reason
    assert (
        "group 0 asks for zone in z0|z1|z2|z3|z4 and 19,995 more; machines have zone a, b"
    ) == detail
    assert both[1].endswith("zone in a|z0|z1|z2|z3 and 19,996 more and rack in r2")
