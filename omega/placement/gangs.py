"""Gangs: tasks that talk to each other, on the fewest machines.

Goal     Keep a gang together, and large holes whole for the next one.
Promise  No choice of machines for equal tasks uses fewer; the last machine's hole is the smallest
         that suffices. Of as few machines, those of one rack are taken where there are enough. Ties
         are broken by chance.
Source   Consolidated placement in Gandiva and Gavel; best fit for the remainder.
"""

import numpy as np

from omega.model.arrays import Counts, Mask
from omega.placement.feasibility import Room
from omega.placement.groups import Choose


def on_fewest_machines(room: Room, wanted: int, rng: np.random.Generator) -> Counts:
    """Return how many tasks each machine of the room gets; `wanted` is at most the room's total."""
    assert 0 < wanted <= room.total
    given = np.zeros_like(room.tasks)
    size = room.tasks + rng.random(len(room.tasks))  # below 1: orders equals only
    if room.tasks.max() < wanted:
        order = np.argsort(-size)
        reached = np.cumsum(room.tasks[order])
        filled = order[: np.searchsorted(reached, wanted)]
        given[filled] = room.tasks[filled]
        size[filled] = 0
    rest = wanted - int(given.sum())
    given[np.argmin(np.where(size >= rest, size, np.inf))] += rest
    return given


def in_one_rack(attribute: str) -> Choose:
    """Return `on_fewest_machines` with a preference: machines that have this attribute in common.

    It never costs a machine more. Of several racks with as few machines, the one with least room
    is taken: a larger gang may need the others.
    """

    def choose(room: Room, wanted: int, rng: np.random.Generator) -> Counts:
        given = on_fewest_machines(room, wanted, rng)
        column = room.view.catalogue.column(attribute)
        machines = int(np.count_nonzero(given))
        if column is None or machines == 1:
            return given
        codes = room.view.codes[room.at, column]
        racks: list[tuple[int, int]] = []
        for code in np.unique(codes[codes > 0]).tolist():
            takes = room.tasks[codes == code]
            if takes.sum() >= wanted and _machines_for(takes, wanted) == machines:
                racks.append((int(takes.sum()), code))
        if not racks:
            return given
        return _only_there(room, codes == min(racks)[1], wanted, rng)

    return choose


def _machines_for(takes: Counts, wanted: int) -> int:
    """Return how few machines take so many tasks."""
    return int(np.searchsorted(np.cumsum(np.sort(takes)[::-1]), wanted)) + 1


def _only_there(room: Room, there: Mask, wanted: int, rng: np.random.Generator) -> Counts:
    part = Room(room.view, room.job, room.group, room.at[there], room.tasks[there])
    given = np.zeros_like(room.tasks)
    given[there] = on_fewest_machines(part, wanted, rng)
    return given
