"""Randomised first fit: the placement of the Omega paper's simulator, in vectorised steps.

Goal     Place a whole task group at once, and make replicas choose different machines.
Promise  Equal in distribution to the loop: draw a machine uniformly; place a task if one more fits;
         otherwise remove the machine from the pool. While most machines have room, only machines
         that are drawn are checked.
Source   Omega (EuroSys 2013), section 4, and the simulator published with it.
"""

import numpy as np

from omega.cell.view import View
from omega.model.arrays import Counts, Index, counted, integers
from omega.model.jobs import LeasedJob
from omega.placement.feasibility import Room, room_on

DRAWS = (1.2, 3.0)
DRAWN_BESIDES = 4
"""A first draw has DRAWS[0] machines for each task, a second one DRAWS[1], each DRAWN_BESIDES more.
If too few of these have room, most machines are full, and checking all machines once is cheaper
than drawing more."""


def first_fit(room: Room, wanted: int, rng: np.random.Generator) -> Counts:
    """Return how many tasks each machine of the room gets; `wanted` is at most the room's total."""
    assert wanted <= room.total
    return _drawn_on(np.zeros_like(room.tasks), room.tasks, wanted, rng)


def draw(
    view: View, job: LeasedJob, group: int, wanted: int, rng: np.random.Generator
) -> tuple[Index, Counts]:
    """Return rows of the view and how many tasks of a group each gets, `wanted` in all if they fit.

    Drawing from the pool is the same as drawing from all machines and rejecting full ones. So all
    draws are made at once. Each machine keeps as many of its draws, the first ones, as it has room
    for, and the first `wanted` of all draws kept are returned.
    """
    if wanted >= len(view):  # to check each machine once is cheaper than so many draws
        takes = room_on(view, job, group, slice(None))
        if takes.sum() <= wanted:
            at = takes.nonzero()[0]
            return at, takes[at]
    drawn = integers()
    for more in DRAWS:
        more_drawn = rng.integers(len(view), size=int(more * wanted) + DRAWN_BESIDES)
        drawn = np.concatenate([drawn, more_drawn])
        kept = _with_room(view, job, group, drawn)
        if len(kept) >= wanted:
            kept.sort()
            return counted(drawn[kept[:wanted]])

    takes = room_on(view, job, group, slice(None))
    given = np.bincount(drawn[kept], minlength=len(view))
    more = min(wanted, int(takes.sum())) - len(kept)
    given = _drawn_on(given, takes, more, rng)
    at = given.nonzero()[0]
    return at, given[at]


def draw_from(
    pool: Index, view: View, job: LeasedJob, group: int, wanted: int, rng: np.random.Generator
) -> tuple[Index, Counts] | None:
    """Return the same for machines in these rows; None if too few of those drawn have room."""
    if not len(pool):
        return None
    drawn = pool[rng.integers(len(pool), size=int(sum(DRAWS) * wanted) + DRAWN_BESIDES)]
    kept = _with_room(view, job, group, drawn)
    if len(kept) < wanted:
        return None
    kept.sort()
    return counted(drawn[kept[:wanted]])


def _with_room(view: View, job: LeasedJob, group: int, drawn: Index) -> Index:
    """Return which draws, by position, are of a machine that takes one more task at that draw."""
    order = drawn.argsort(kind="stable")
    at, times = counted(drawn)
    nth_here = np.arange(len(drawn)) - (times.cumsum() - times).repeat(times)
    return order[nth_here < room_on(view, job, group, at).repeat(times)]


def _drawn_on(given: Counts, takes: Counts, wanted: int, rng: np.random.Generator) -> Counts:
    """Draw machines for `wanted` more tasks; return how many tasks each machine has then.

    `given` (machines,) is how many tasks each has so far, and is changed; `takes` (machines,) is
    how many it takes in all.
    """
    while wanted:
        pool = np.flatnonzero(given < takes)
        drawn, times = counted(rng.integers(len(pool), size=wanted))
        machines = pool[drawn]
        kept = np.minimum(times, takes[machines] - given[machines])
        given[machines] += kept
        wanted -= int(kept.sum())
    return given
