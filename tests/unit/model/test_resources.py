"""Resource kinds, declared once."""

import pytest

from omega.model.resources import (
    COLUMNS,
    DEVICES,
    DEVICES_MAX,
    GPU_SLICES,
    KINDS,
    Kind,
    amounts,
    machine_capacity,
    named,
)


def test_columns_follow_the_order_of_kinds() -> None:
    assert list(range(KINDS)) == list(Kind)
    assert ("cpu_milli", "memory_mib", "disk_mib", "gpu_0") == COLUMNS[:4]
    assert KINDS == len(COLUMNS)


def test_devices_are_the_gpu_slots() -> None:
    assert [kind.is_device for kind in Kind] == [kind in list(Kind)[DEVICES] for kind in Kind]
    assert [f"gpu_{slot}" for slot in range(DEVICES_MAX)] == list(COLUMNS[DEVICES])


def test_amounts_are_named_and_the_rest_is_zero() -> None:
    row = amounts({"cpu_milli": 1_500}, gpu_7=500)

    assert {"cpu_milli": 1_500, "gpu_7": 500} == named(row)
    assert 2_000 == row.sum()


def test_a_kind_that_does_not_exist_is_refused() -> None:
    with pytest.raises(KeyError):
        amounts(cpus=4)


def test_a_machine_has_its_first_slots_filled_with_whole_gpus() -> None:
    capacity = machine_capacity(4_000, 8_192, 100, gpus=2)

    assert {
        "cpu_milli": 4_000,
        "memory_mib": 8_192,
        "disk_mib": 100,
        "gpu_0": GPU_SLICES,
        "gpu_1": GPU_SLICES,
    } == named(capacity)
    assert not capacity.flags.writeable


def test_a_machine_has_no_more_gpus_than_slots() -> None:
    with pytest.raises(AssertionError):
        machine_capacity(1, 1, gpus=DEVICES_MAX + 1)
