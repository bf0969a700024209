"""Preferences: constraints that a task may do without.

Goal     Place tasks where their users prefer them to run, as long as there is room.
Promise  A task goes to a machine only if no other one that takes it meets preferences of more
         weight. Which tasks find room does not depend on preferences. A group without preferences
         is placed as if there were none.
Source   Preferred node affinity of Kubernetes, affinity of Nomad; Sharma et al. (SoCC 2011), soft
         constraints; docs/decisions/0062-preferences.md.
"""

import numpy as np

from omega.model.arrays import Counts
from omega.placement.feasibility import Choose, Room, meets


def weights_met(room: Room) -> Counts:
    """Return the sum of the weights of those preferences that each machine meets: (machines,)."""
    met = np.zeros(len(room.at), dtype=np.int64)
    for preference in room.task_group.preferences:
        met += preference.weight * meets(room.view, preference.constraint)[room.at]
    return met


def choose_preferred(room: Room, wanted: int, choose: Choose, rng: np.random.Generator) -> Counts:
    """Return how many tasks each machine gets if `choose` chooses among those preferred most.

    If these do not take all, it chooses among the next ones for the rest, and so on. `wanted` is
    less than the room's total.
    """
    if not room.task_group.preferences:
        return choose(room, wanted, rng)
    met, given = weights_met(room), np.zeros_like(room.tasks)
    for weight in np.unique(met)[::-1]:
        these = np.flatnonzero(met == weight)
        part = Room(room.view, room.job, room.group, room.at[these], room.tasks[these])
        if part.total > wanted:
            given[these] = choose(part, wanted, rng)
            break
        given[these] = part.tasks
        wanted -= part.total
        if not wanted:
            break
    return given
