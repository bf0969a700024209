"""Scores: how well a machine suits a task. A higher score is always better.

Goal     Let a scheduler define its preference by one function from arrays to an array.
Promise  One score for each machine of the room. Equal scores are ties, which are broken at random.
Source   Filter and score, as in Kubernetes; best fit against stranded resources.
"""

from collections.abc import Callable

import numpy as np

from omega.model.arrays import Index, Score
from omega.model.resources import KINDS
from omega.placement.feasibility import Room

ScoreFunction = Callable[[Room], Score]
"""Returns a score for each machine of a room, (machines,), for one more task."""


def most_allocated(room: Room) -> Score:
    """Score machines higher the smaller the share of them that one more task would leave free.

    The shares of all kinds that a machine has are added. Kinds that the task does not ask for count
    too, so that tasks without GPUs avoid machines whose GPUs are free.
    """
    demand = room.task_group.demand
    left = np.zeros(len(room.at))
    for kind in range(KINDS):
        capacity = room.view.capacity[room.at, kind]
        if capacity.any():
            left += (room.view.free[room.at, kind] - demand[kind]) / np.maximum(capacity, 1)
    return -left


def best_first(score: Score, rng: np.random.Generator | None) -> Index:
    """Return positions from the best score to the worst.

    Ties are broken at random, or by position if `rng` is None.
    """
    if rng is None:
        return np.argsort(-score, kind="stable")
    shuffled = rng.permutation(len(score))
    return np.asarray(shuffled[np.argsort(-score[shuffled])])
