"""Randomised first fit: the placement of the Omega paper's simulator, in one vectorised step.

Goal     Place a whole task group at once, and keep replicas from wanting the same machines.
Promise  Equal in distribution to the loop: draw a machine uniformly; place if one more task fits;
         else take it out of the pool.
Source   Omega (EuroSys 2013), section 4, and the simulator published with it.
"""

import numpy as np

from omega.model.arrays import Counts
from omega.placement.feasibility import Room


def first_fit(room: Room, wanted: int, chance: np.random.Generator) -> Counts:
    """Return how many tasks each machine of the room gets; `wanted` is at most the room's total.

    Drawing from the pool is drawing from all machines and rejecting the full ones, so many draws
    may be made at once: each machine keeps those it has room for, the rest are drawn again.
    """
    assert wanted <= room.total
    given = np.zeros_like(room.tasks)
    pool = np.arange(len(room.tasks))
    while wanted:
        drawn, times = np.unique(chance.integers(len(pool), size=wanted), return_counts=True)
        machines = pool[drawn]
        kept = np.minimum(times, room.tasks[machines] - given[machines])
        given[machines] += kept
        wanted -= int(kept.sum())
        if wanted:
            pool = np.flatnonzero(given < room.tasks)
    return given
