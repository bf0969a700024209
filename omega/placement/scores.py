"""Scores: how much a machine is liked for a task. Higher is better, everywhere.

Goal     Let a scheduler say what it prefers in one function from arrays to an array.
Promise  One score for each machine of the room; equal scores are ties, which chance breaks.
Source   Filter and score, as in Kubernetes; best fit against stranded resources.
"""

from collections.abc import Callable

import numpy as np

from omega.model.arrays import Index, Score
from omega.model.resources import KINDS
from omega.placement.feasibility import Room

Preference = Callable[[Room], Score]
"""Scores the machines of a room for one more task."""


def left_fullest(room: Room) -> Score:
    """Prefer the machine of which least would be left, summed over all kinds that it has.

    Kinds that the task does not ask for count too, so that tasks without GPUs stay off machines
    whose GPUs are free.
    """
    demand = room.asked.demand
    left = np.zeros(len(room.at))
    for kind in range(KINDS):
        capacity = room.view.capacity[room.at, kind]
        if capacity.any():
            left += (room.view.free[room.at, kind] - demand[kind]) / np.maximum(capacity, 1)
    return -left


def best_first(score: Score, rng: np.random.Generator | None) -> Index:
    """Return the order from the best score to the worst, ties by chance (or in order without)."""
    if rng is None:
        return np.argsort(-score, kind="stable")
    shuffled = rng.permutation(len(score))
    return np.asarray(shuffled[np.argsort(-score[shuffled])])
