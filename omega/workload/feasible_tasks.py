"""Make a recorded start state fit its machines, for real cells promise more than they have.

Goal     Start from a recorded cell although ours never overcommits.
Promise  What remains fits every machine in every kind. Either tasks are dropped, on each machine
         the lowest precedence first, or requests shrink, on each machine by one factor a kind.
Source   The Google cell of 2011 starts with 113 % of its CPU asked for.
"""

import numpy as np

from omega.model.arrays import Amounts, Ids, Index, Mask, every_kind

STEPS = 32
"""A factor is so many thirty-seconds: few factors keep the distinct shapes of a job few."""


def highest_that_fit(machine: Index, precedence: Ids, amounts: Amounts, capacity: Amounts) -> Mask:
    """Say which tasks stay when each machine drops the lowest precedence until the rest fits.

    Of one precedence, those that come later are dropped first.
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
    """Return the amounts, shrunk where a machine was asked for more than it has."""
    asked = np.zeros_like(capacity)
    np.add.at(asked, machine, amounts)
    steps = np.where(asked > capacity, STEPS * capacity // np.maximum(asked, 1), STEPS)
    return np.asarray(amounts * steps[machine] // STEPS)
