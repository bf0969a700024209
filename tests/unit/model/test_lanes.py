"""Lanes, and what their jobs need."""

import pytest

from omega.model.jobs import Constraint, Operator
from omega.model.lanes import (
    CONSTRAINT_CLASSES,
    Lane,
    QueueOrder,
    constraint_class,
    demand_left,
    job_demand,
    task_demand,
)
from omega.testing.builders import a_group, a_job, a_spec

ZONE_A = Constraint("zone", Operator.IN, ("a",))
ZONE_B = Constraint("zone", Operator.IN, ("b",))
SSD = Constraint("ssd", Operator.EXISTS)


def class_of(*constraints: tuple[Constraint, ...]) -> int:
    return constraint_class(a_spec(groups=[a_group(constraints=each) for each in constraints]))


def test_a_job_without_constraints_is_of_class_0() -> None:
    assert 0 == class_of(()) == class_of((), ())
    assert Lane("ann", 0) == Lane.of(a_spec(tenant="ann"))


def test_the_class_depends_on_the_set_of_constraints_alone() -> None:
    both = class_of((ZONE_A, SSD))

    assert (
        both
        == class_of((SSD, ZONE_A))
        == class_of((ZONE_A,), (SSD,))
        == class_of((SSD,) * 2, (ZONE_A,))
    )
    assert 4 == len({0, both, class_of((ZONE_A,)), class_of((ZONE_B,))})


def test_classes_are_few_however_many_constraints_there_are() -> None:
    values = [Constraint("rack", Operator.IN, (str(rack),)) for rack in range(2_000)]

    assert set(range(1, CONSTRAINT_CLASSES + 1)) == {class_of((each,)) for each in values}


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
