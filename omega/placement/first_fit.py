"""Randomised first fit: the placement of the Omega paper's simulator, in vectorised steps.

Goal     Place a whole task group at once, and keep replicas from wanting the same machines.
Promise  Equal in distribution to the loop: draw a machine uniformly; place if one more task fits;
         else take it out of the pool. While most machines have room, it looks at those drawn only.
Source   Omega (EuroSys 2013), section 4, and the simulator published with it.
"""

import numpy as np

from omega.cell.view import View
from omega.model.arrays import Counts, Index, counted, integers
from omega.model.jobs import LeasedJob
from omega.placement.feasibility import Room, room_on

ROUNDS_MAX = 4
"""Of draws from all machines. Where tasks are left after these, most machines are full, and to look
at all of them once is cheaper than to draw on."""


def first_fit(room: Room, wanted: int, chance: np.random.Generator) -> Counts:
    """Return how many tasks each machine of the room gets; `wanted` is at most the room's total."""
    assert wanted <= room.total
    return _drawn_on(np.zeros_like(room.tasks), room.tasks, wanted, chance)


def draw(
    view: View, job: LeasedJob, group: int, wanted: int, chance: np.random.Generator
) -> tuple[Index, Counts]:
    """Return machines and how many tasks of a group each gets: all that are wanted, if they fit.

    Drawing from the pool is drawing from all machines and rejecting the full ones, so many draws
    may be made at once: each machine keeps those it has room for, the rest are drawn again.
    """
    if not len(view):
        return integers(), integers()
    drawn, short = integers(), wanted
    for _ in range(ROUNDS_MAX):
        drawn = np.concatenate([drawn, chance.integers(len(view), size=short)])
        at, times = counted(drawn)
        given = np.minimum(times, room_on(view, job, group, at))
        short = wanted - int(given.sum())
        if not short:
            return at, given
    takes = room_on(view, job, group, slice(None))
    so_far = np.zeros_like(takes)
    so_far[at] = given
    short = min(wanted, int(takes.sum())) - (wanted - short)
    return np.arange(len(view)), _drawn_on(so_far, takes, short, chance)


def _drawn_on(given: Counts, takes: Counts, wanted: int, chance: np.random.Generator) -> Counts:
    """Give so many more tasks to machines, each of which takes so many in all."""
    while wanted:
        pool = np.flatnonzero(given < takes)
        drawn, times = counted(chance.integers(len(pool), size=wanted))
        machines = pool[drawn]
        kept = np.minimum(times, takes[machines] - given[machines])
        given[machines] += kept
        wanted -= int(kept.sum())
    return given
