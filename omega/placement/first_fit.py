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

DRAWS = (1.2, 3.0)
DRAWN_BESIDES = 4
"""Machines that are drawn for each task, once and again. Where too few of all these have room, most
machines are full, and to look at all of them once is cheaper than to draw on."""


def first_fit(room: Room, wanted: int, rng: np.random.Generator) -> Counts:
    """Return how many tasks each machine of the room gets; `wanted` is at most the room's total."""
    assert wanted <= room.total
    return _drawn_on(np.zeros_like(room.tasks), room.tasks, wanted, rng)


def draw(
    view: View, job: LeasedJob, group: int, wanted: int, rng: np.random.Generator
) -> tuple[Index, Counts]:
    """Return machines and how many tasks of a group each gets: all that are wanted, if they fit.

    Drawing from the pool is drawing from all machines and rejecting the full ones, so all draws are
    made at once: each machine keeps the first that it has room for, and of those kept the first
    are enough.
    """
    if not len(view):
        return integers(), integers()
    drawn = integers()
    for more in DRAWS:
        more_drawn = rng.integers(len(view), size=int(more * wanted) + DRAWN_BESIDES)
        drawn = np.concatenate([drawn, more_drawn])
        order = drawn.argsort(kind="stable")
        at, times = counted(drawn)
        nth_here = np.arange(len(drawn)) - (times.cumsum() - times).repeat(times)
        kept = order[nth_here < room_on(view, job, group, at).repeat(times)]
        if len(kept) >= wanted:
            kept.sort()
            return counted(drawn[kept[:wanted]])

    takes = room_on(view, job, group, slice(None))
    given = np.bincount(drawn[kept], minlength=len(view))
    more = min(wanted, int(takes.sum())) - len(kept)
    given = _drawn_on(given, takes, more, rng)
    at = given.nonzero()[0]
    return at, given[at]


def _drawn_on(given: Counts, takes: Counts, wanted: int, rng: np.random.Generator) -> Counts:
    """Give so many more tasks to machines, each of which takes so many in all."""
    while wanted:
        pool = np.flatnonzero(given < takes)
        drawn, times = counted(rng.integers(len(pool), size=wanted))
        machines = pool[drawn]
        kept = np.minimum(times, takes[machines] - given[machines])
        given[machines] += kept
        wanted -= int(kept.sum())
    return given
