"""Gangs: tasks that communicate with each other, placed on the fewest machines.

Goal     Place a gang close together, and leave machines with much room for the next one.
Promise  No choice of machines for equal tasks uses fewer. The last machine is the one with the
         least room that suffices. `in_one_rack` uses as few machines, of one rack if possible. Ties
         are broken at random.
Source   Consolidated placement in Gandiva and Gavel; best fit for the remainder.
"""

import numpy as np

from omega.model.arrays import Counts, Mask
from omega.placement.feasibility import Choose, Room


def on_fewest_machines(room: Room, wanted: int, rng: np.random.Generator) -> Counts:
    """Return how many tasks each machine gets; `wanted` is from 1 to the room's total."""
    assert 0 < wanted <= room.total
    given = np.zeros_like(room.tasks)
    size = room.tasks + rng.random(len(room.tasks))  # below 1: breaks ties only
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
    """Return `on_fewest_machines` with a preference for machines of equal value in an attribute.

    The preference never costs an additional machine. Of several racks that suffice, the one with
    the least room is taken, because a larger gang may need the others.
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
    """Return the least number of machines that take so many tasks."""
    return int(np.searchsorted(np.cumsum(np.sort(takes)[::-1]), wanted)) + 1


def _only_there(room: Room, there: Mask, wanted: int, rng: np.random.Generator) -> Counts:
    part = Room(room.view, room.job, room.group, room.at[there], room.tasks[there])
    given = np.zeros_like(room.tasks)
    given[there] = on_fewest_machines(part, wanted, rng)
    return given
