"""Which GPUs a task gets."""

import numpy as np

from omega.model.arrays import Amounts, integers
from omega.model.jobs import TaskGroup
from omega.model.resources import DEVICES, KINDS, Kind
from omega.placement.devices import choose_slots, free_devices, gpus_left
from omega.testing.builders import a_group


def slots(*free: int) -> Amounts:
    """One machine's free slices, zero where not told."""
    return integers([*free, *[0] * (8 - len(free))])[np.newaxis]


def chosen(devices: Amounts, tasks: list[int], group: TaskGroup, seed: int = 1) -> Amounts:
    """What each task gets of each slot."""
    shape, shapes = choose_slots(devices, integers(tasks), group, np.random.default_rng(seed))
    return shapes[shape][:, DEVICES]


def test_a_whole_gpu_is_a_slot_that_nobody_shares() -> None:
    assert [1, 0, 0, 1, 0, 0, 0, 0] == gpus_left(slots(1_000, 999, 0, 1_000), 1_000)[0].tolist()


def test_a_fraction_fits_into_a_slot_more_than_once() -> None:
    assert [3, 3, 0, 1, 0, 0, 0, 0] == gpus_left(slots(1_000, 999, 299, 300), 300)[0].tolist()


def test_a_slot_that_is_oversold_gives_nothing() -> None:
    assert 0 == gpus_left(slots(-500), 300).sum()


def test_free_devices_are_the_gpu_columns_of_the_rows() -> None:
    free = np.asfortranarray(np.arange(3 * KINDS).reshape(3, KINDS))

    assert free[[0, 2]][:, DEVICES].tolist() == free_devices(free, np.array([0, 2])).tolist()


def test_a_fraction_goes_to_the_fullest_slot_that_takes_it() -> None:
    taken = chosen(slots(1_000, 400, 300, 500), [1], a_group(gpus=1, gpu_slices=400))

    assert [[0, 400, 0, 0, 0, 0, 0, 0]] == taken.tolist()


def test_fractions_fill_a_slot_before_they_open_the_next() -> None:
    taken = chosen(slots(1_000, 700, 200), [5], a_group(5, gpus=1, gpu_slices=300))

    assert [900, 600, 0, 0, 0, 0, 0, 0] == taken.sum(axis=0).tolist()
    assert [300] * 5 == taken.max(axis=1).tolist()


def test_whole_gpus_avoid_slots_that_are_shared() -> None:
    taken = chosen(slots(1_000, 500, 1_000, 1_000, 0, 1_000), [2], a_group(2, gpus=2))

    assert [1_000, 0, 1_000, 1_000, 0, 1_000, 0, 0] == taken.sum(axis=0).tolist()
    assert [2_000, 2_000] == taken.sum(axis=1).tolist()


def test_each_machine_serves_its_own_tasks() -> None:
    devices = np.concatenate([slots(1_000), slots(0, 1_000, 1_000), slots(500)])
    taken = chosen(devices, [1, 2, 0], a_group(3, gpus=1))

    assert [0, 1, 2] == sorted(taken.argmax(axis=1).tolist())
    assert 0 == int(taken[0].argmax())


def test_shapes_are_distinct_and_hold_the_other_kinds() -> None:
    devices = np.concatenate([slots(1_000)] * 5)
    group = a_group(5, cpu_milli=700, memory_mib=30, gpus=1)
    shape, shapes = choose_slots(devices, integers([1] * 5), group, None)

    assert [0] * 5 == shape.tolist()
    assert (1, KINDS) == shapes.shape
    assert (700, 30) == (shapes[0, Kind.CPU_MILLI], shapes[0, Kind.MEMORY_MIB])


def test_chance_decides_between_equal_slots() -> None:
    free, group = slots(*[1_000] * 8), a_group(gpus=1)
    picks = {int(chosen(free, [1], group, seed).argmax()) for seed in range(100)}

    assert set(range(8)) == picks


def test_without_chance_the_lowest_slot_is_chosen() -> None:
    shape, shapes = choose_slots(slots(*[1_000] * 8), integers([1]), a_group(gpus=3), None)

    assert [1_000] * 3 + [0] * 5 == shapes[shape][0, DEVICES].tolist()
