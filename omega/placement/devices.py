"""Device slots: which GPUs of a machine a task gets.

Goal     Keep whole GPUs free: a fraction goes to the fullest slot that has room for it.
Promise  Tasks of a group on one machine get disjoint slices; a task's GPUs are on one machine.
Source   docs/decisions/0001-arrays-and-integers.md: a slot is a resource kind of its own.
"""

import numpy as np

from omega.model.arrays import Amounts, Counts, Index
from omega.model.jobs import TaskGroup
from omega.model.resources import DEVICES, DEVICES_MAX, GPU_SLICES


def free_devices(free: Amounts, at: Index) -> Amounts:
    """Return the free slices of each slot of the machines in rows `at`: (machines, slots).

    The result's columns are contiguous, as in a view, so that sums over slots are three times as
    fast.
    """
    return free.T[DEVICES].take(at, axis=1).T


def gpus_left(devices: Amounts, slices: int) -> Counts:
    """Return how many GPUs of `slices` slices each slot still has room for: (machines, slots).

    `devices` (machines, slots) has the free slices. A whole GPU is a slot without any use.
    """
    if slices == GPU_SLICES:
        return (devices >= GPU_SLICES).astype(np.int64)
    return np.maximum(devices, 0) // slices


def choose_slots(
    devices: Amounts, tasks: Counts, group: TaskGroup, rng: np.random.Generator | None
) -> tuple[Index, Amounts]:
    """Choose the slots of each task, fullest slot first, machine by machine.

    `devices` (machines, slots) has the free slices and `tasks` (machines,) how many tasks each
    machine gets, which must be no more than it takes. Returns `shape` and `shapes` as in `Claims`:
    for each task the row of its demand, and the distinct demands. Ties are broken at random, or
    towards the lowest slot if `rng` is None.
    """
    assert group.gpus > 0
    units = gpus_left(devices, group.gpu_slices)
    tie = np.arange(DEVICES_MAX) / DEVICES_MAX if rng is None else rng.random(devices.shape)
    order = np.argsort(np.where(units > 0, devices + tie, np.inf), axis=1)
    units = np.take_along_axis(units, order, axis=1)

    wanted = tasks * group.gpus
    before = np.cumsum(units, axis=1) - units
    taken = np.clip(wanted[:, np.newaxis] - before, 0, units)
    assert (taken.sum(axis=1) == wanted).all(), "more tasks than the machine's GPUs take"

    slot = np.repeat(order.ravel(), taken.ravel()).reshape(-1, group.gpus)
    slots, shape = np.unique((1 << slot).sum(axis=1), return_inverse=True)
    shapes = np.tile(group.demand, (len(slots), 1))
    chosen = slots[:, np.newaxis] >> np.arange(DEVICES_MAX) & 1
    shapes[:, DEVICES] = chosen * group.gpu_slices
    return shape.astype(np.intp), shapes
