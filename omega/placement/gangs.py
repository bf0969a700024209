"""Gangs: tasks that talk to each other, on the fewest machines.

Goal     Keep a gang together, and large holes whole for the next one.
Promise  No choice of machines for equal tasks uses fewer; the last machine's hole is the smallest
         that suffices. Ties are broken by chance.
Source   Consolidated placement in Gandiva and Gavel; best fit for the remainder.
"""

import numpy as np

from omega.model.arrays import Counts
from omega.placement.feasibility import Room


def on_fewest_machines(room: Room, wanted: int, chance: np.random.Generator) -> Counts:
    """Return how many tasks each machine of the room gets; `wanted` is at most the room's total."""
    assert 0 < wanted <= room.total
    given = np.zeros_like(room.tasks)
    size = room.tasks + chance.random(len(room.tasks))  # below 1: orders equals only
    if room.tasks.max() < wanted:
        order = np.argsort(-size)
        reached = np.cumsum(room.tasks[order])
        filled = order[: np.searchsorted(reached, wanted)]
        given[filled] = room.tasks[filled]
        size[filled] = 0
    rest = wanted - int(given.sum())
    given[np.argmin(np.where(size >= rest, size, np.inf))] += rest
    return given
