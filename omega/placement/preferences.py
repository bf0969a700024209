"""Preferences: constraints that a task may do without.

Goal     Place tasks where their users prefer them to run, as long as there is room.
Promise  A machine's score is the sum of the weights of the preferences that it meets. A task goes
         to a machine only if no machine of a higher score takes it. The exception is a gang that
         lacks several tasks: these go to any of the machines of the highest scores that together
         take them. How many tasks of one group find room does not depend on preferences. For a
         group without preferences, only the scheduler's own choice counts. Scores are ignored
         elsewhere for gangs of several groups that fit only if they are packed (`place_each`), and
         for claims with evictions (`victims.py`).
Source   Preferred node affinity of Kubernetes, affinity of Nomad; Sharma et al. (SoCC 2011), soft
         constraints; docs/decisions/0062-preferences.md.
"""

from dataclasses import replace

import numpy as np

from omega.model.arrays import Counts, Mask
from omega.placement.feasibility import Choose, Room, meets


def scores(room: Room) -> Counts:
    """Return the sum of the weights of those preferences that each machine meets: (machines,)."""
    met = np.zeros(len(room.at), dtype=np.int64)
    for preference in room.task_group.preferences:
        met += preference.weight * meets(room.view, preference.constraint)[room.at]
    return met


def most_preferred(room: Room) -> Room:
    """Return the machines of the highest score; all of them for a group without preferences."""
    if not room.task_group.preferences or not len(room.at):
        return room
    score = scores(room)
    return _part(room, score == score.max())


def choose_preferred(room: Room, wanted: int, choose: Choose, rng: np.random.Generator) -> Counts:
    """Return how many tasks each machine gets, those of higher scores first.

    `choose` chooses among the machines of the highest score. If these do not take all tasks, they
    are filled, and `choose` chooses among the machines of the next score for the rest, and so on.
    For a gang, machines of lower scores are added until all tasks fit. Then `choose` places all of
    them on these machines together, so that the gang is not divided more than it has to be.
    `wanted` is less than the room's total.
    """
    if not room.task_group.preferences:
        return choose(room, wanted, rng)
    score, given = scores(room), np.zeros_like(room.tasks)
    is_gang = room.job.lacking > 1
    for level in np.unique(score)[::-1]:
        these = score >= level if is_gang else score == level
        part, left = _part(room, these), wanted - int(given.sum())
        if part.total <= left:
            given[these] = part.tasks
        else:
            given[these] = choose(_beside(part, room, given), left, rng)
        if given.sum() == wanted:
            break
        if is_gang:
            given[:] = 0
    return given


def _part(room: Room, which: Mask) -> Room:
    return Room(room.view, room.job, room.group, room.at[which], room.tasks[which])


def _beside(part: Room, room: Room, given: Counts) -> Room:
    """Return the part as if the tasks that are given to machines of the whole room were placed.

    Only spreading depends on where other tasks of the group are.
    """
    if room.task_group.spread_over is None or not given.any():
        return part
    machine = room.view.id[np.repeat(room.at, given)]
    task = room.job.unplaced_in(room.group)[: len(machine)]
    job = replace(
        room.job,
        placed_task=np.concatenate([room.job.placed_task, task]),
        placed_machine=np.concatenate([room.job.placed_machine, machine]),
    )
    return Room(part.view, job, part.group, part.at, part.tasks)
