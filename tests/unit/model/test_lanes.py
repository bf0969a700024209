"""Lanes, and what their jobs need."""

from typing import get_args

import pytest

from omega.config import Settings
from omega.limits import LIMITS
from omega.model.jobs import Constraint, Operator
from omega.model.lanes import (
    CONSTRAINT_CLASSES,
    SHAPE_CLASSES,
    SIZES,
    Lane,
    QueueOrder,
    demand_left,
    job_demand,
    lane_class,
    shape_class,
    task_demand,
)
from omega.testing.builders import a_group, a_job, a_spec

ZONE_A = Constraint("zone", Operator.IN, ("a",))
ZONE_B = Constraint("zone", Operator.IN, ("b",))
SSD = Constraint("ssd", Operator.EXISTS)


def class_of(*constraints: tuple[Constraint, ...]) -> int:
    return lane_class(a_spec(groups=[a_group(constraints=each) for each in constraints]))


def test_without_constraints_the_class_is_that_of_the_shape() -> None:
    spec = a_spec(tenant="ann")

    assert shape_class(spec) == class_of(()) == class_of((), ())
    assert Lane("ann", shape_class(spec)) == Lane.of(spec)
    assert not Lane.of(spec).has_constraints


def test_the_class_depends_on_the_set_of_constraints() -> None:
    both = class_of((ZONE_A, SSD))

    assert (
        both
        == class_of((SSD, ZONE_A))
        == class_of((ZONE_A,), (SSD,))
        == class_of((SSD,) * 2, (ZONE_A,))
    )
    assert 4 == len({class_of(()), both, class_of((ZONE_A,)), class_of((ZONE_B,))})
    assert Lane("ann", both).has_constraints


def test_jobs_with_the_same_constraints_are_classed_by_shape() -> None:
    classes = [lane_class(a_spec(cpu_milli=cpu, constraints=(SSD,))) for cpu in (1_000, 2_000)]

    assert 2 == len({*classes})


def test_classes_are_few_however_many_constraints_there_are() -> None:
    values = [Constraint("rack", Operator.IN, (str(rack),)) for rack in range(2_000)]

    assert set(range(SHAPE_CLASSES, SHAPE_CLASSES + CONSTRAINT_CLASSES)) == {
        class_of((each,)) for each in values
    }


def size_of(cpu_milli: int = 0, memory_mib: int = 0, disk_mib: int = 0, gpus: int = 0) -> int:
    """Return the size of a job, without the resource of which it needs most."""
    group = a_group(cpu_milli=cpu_milli, memory_mib=memory_mib, disk_mib=disk_mib, gpus=gpus)
    return shape_class(a_spec(groups=[group])) % SIZES


def test_sizes_are_powers_of_two_of_whatever_is_needed_most() -> None:
    cores = [0, 124, 125, 249, 250, 1_000, 1_999, 2_000, 64_000]

    assert [0, 0, 1, 1, 2, 4, 4, 5, 10] == [size_of(cpu_milli=amount) for amount in cores]
    assert size_of(cpu_milli=1_000) == size_of(memory_mib=4_096) == size_of(disk_mib=65_536)
    assert size_of(cpu_milli=12_500) == size_of(gpus=1) == size_of(gpus=1, cpu_milli=4_000)
    assert SIZES - 1 == size_of(cpu_milli=LIMITS.amount_max) == size_of(cpu_milli=2_048_000)


def test_the_resource_that_is_needed_most_tells_shapes_apart() -> None:
    shapes = [
        a_spec(cpu_milli=8_000, memory_mib=1_024),
        a_spec(cpu_milli=1_000, memory_mib=8 * 4_096),
        a_spec(cpu_milli=1_000, disk_mib=8 * 65_536),
        a_spec(cpu_milli=8_000, gpus=1, gpu_slices=1),
    ]

    assert 4 == len({shape_class(spec) for spec in shapes})
    assert {4} == {shape_class(spec) % SIZES - 3 for spec in shapes}


def test_a_gang_is_as_large_as_its_minimum() -> None:
    gangs = [shape_class(a_spec(40, minimum=minimum)) for minimum in (0, 1, 2, 39, 40)]
    alone = shape_class(a_spec(1))

    assert [alone, alone, alone + SIZES + 1] == gangs[:3]
    assert gangs[3] == gangs[4] == shape_class(a_spec(64, minimum=63)) == alone + SIZES + 5


def test_classes_are_few_whatever_is_asked_for() -> None:
    amounts = [0, *(2**power - 1 for power in range(1, 32))]
    classes = {
        shape_class(a_spec(9, minimum=minimum, cpu_milli=cpu, memory_mib=memory, gpus=gpus))
        for minimum in (0, 9)
        for cpu in amounts
        for memory in amounts
        for gpus in (0, 8)
    }

    assert classes < set(range(SHAPE_CLASSES))


def test_the_slices_of_all_gpus_of_a_task_are_one_amount() -> None:
    whole = a_group(cpu_milli=1_500, memory_mib=7, disk_mib=9, gpus=3)
    part = a_group(cpu_milli=1, gpus=1, gpu_slices=250)

    assert [1_500, 7, 9, 3_000] == task_demand(whole).tolist()
    assert [1, 0, 0, 250] == task_demand(part).tolist()


def test_a_job_needs_what_its_groups_need_together_and_has_left_what_is_unplaced() -> None:
    spec = a_spec(
        groups=[a_group(2, cpu_milli=1_000, gpus=1), a_group(3, cpu_milli=10, disk_mib=5)]
    )

    assert [2_030, 0, 15, 2_000] == job_demand(spec).tolist()
    assert [2_030, 0, 15, 2_000] == demand_left(a_job(spec=spec)).tolist()
    assert [1_020, 0, 10, 1_000] == demand_left(a_job(spec=spec, runs_on={0: 1, 4: 2})).tolist()
    assert [0] * 4 == demand_left(a_job(spec=spec, runs_on=dict.fromkeys(range(5), 1))).tolist()


@pytest.mark.parametrize("order", QueueOrder)
def test_an_order_compares_tenants_or_keys_or_is_fifo(order: QueueOrder) -> None:
    assert 1 == (order is QueueOrder.FIFO) + order.is_fair + order.is_by_key


def test_the_setting_has_every_order() -> None:
    setting = Settings.model_fields["queue_order"]

    assert tuple(order.value for order in QueueOrder) == get_args(setting.annotation)
    assert QueueOrder.FIFO.value == setting.default
