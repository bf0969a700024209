"""Makes a recorded start state fit its machines, because real cells are overcommitted.

Goal     Start from a recorded cell, although the cell state here is never overcommitted.
Promise  What remains fits every machine in every kind. Either tasks are dropped, on each machine
         the lowest precedence first, or requests shrink, on each machine by one factor a kind.
Source   The Google cell of 2011 starts with 113 % of its CPU asked for.
"""

import numpy as np

from omega.model.arrays import Amounts, Ids, Index, Mask, every_kind

STEPS = 32
"""Factors are multiples of 1/32, so that a job has few distinct shapes."""


def highest_that_fit(machine: Index, precedence: Ids, amounts: Amounts, capacity: Amounts) -> Mask:
    """Return which tasks stay when each machine drops the lowest precedence until the rest fits.

    Of equal precedence, later tasks are dropped first. `machine` and `precedence` are (tasks,),
    `amounts` is (tasks, kinds), `capacity` (machines, kinds).
    """
    order = np.lexsort((-precedence, machine))
    at = machine[order]
    asked = np.cumsum(amounts[order], axis=0)
    first = np.flatnonzero(np.diff(at, prepend=-1))
    before = (asked - amounts[order])[first]  # what the machines before this one were asked for
    asked -= np.repeat(before, np.diff([*first, len(at)]), axis=0)
    stays = np.zeros(len(machine), dtype=np.bool_)
    stays[order] = every_kind(asked <= capacity[at])
    return stays


def scaled_to_fit(machine: Index, amounts: Amounts, capacity: Amounts) -> Amounts:
    """Return the amounts (tasks, kinds), reduced where a machine has less than was asked for."""
    asked = np.zeros_like(capacity)
    np.add.at(asked, machine, amounts)
    steps = np.where(asked > capacity, STEPS * capacity // np.maximum(asked, 1), STEPS)
    return np.asarray(amounts * steps[machine] // STEPS)
