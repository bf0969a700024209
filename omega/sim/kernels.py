"""Loops over the machine rows of one cell, compiled by numba.

Goal     Draw, claim and release the tasks of one plain group without temporary arrays. Rows are
         counted from 0.
Promise  The draws are those of `omega.placement.first_fit.draw` with numpy's PCG64, number by
         number. Claims are granted only all together, when the order of judging does not matter. A
         call that grants nothing changes nothing.
Source   PCG XSL RR 128/64: O'Neill, HMC-CS-2014-0905. Bounded integers: Lemire, ACM TOMACS 29(1),
         2019. docs/decisions/0034-compiled-loops.md. Needs the extra `fast`.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

from omega.model.arrays import Amounts, Ids, Index, Mask, Sequences
from omega.model.resources import Kind

_F = TypeVar("_F", bound=Callable[..., Any])

Words = NDArray[np.uint64]

ONE: Final = np.uint64(1)
UINT32_MAX: Final = np.uint64(0xFFFFFFFF)
HALF: Final = np.uint64(32)
TOP_SIX: Final = np.uint64(58)
TOP: Final = np.uint64(63)
BITS: Final = np.uint64(64)
MULTIPLIER_HIGH: Final = np.uint64(0x2360ED051FC65DA4)
MULTIPLIER_LOW: Final = np.uint64(0x4385DF649FCCF645)
STATE_WORDS: Final = 6
"""The words of a generator, in this order: its state, high and low half; its increment, high and
low half; whether a half of its last draw is still to be used, 1 or 0; and that half."""

CPU: Final = int(Kind.CPU_MILLI)
NOTHING_KEPT: Final = -1
NOT_CLAIMED: Final = -2
"""These two stand where a position in the log is expected."""

DRAWN_FIRST: Final = 1.2
DRAWN_AGAIN: Final = 3.0
DRAWN_BESIDES: Final = 4
"""The same constants as in `omega.placement.first_fit`."""


class Rows(NamedTuple):
    """The machines of a cell; the arrays are changed in place."""

    free: Amounts
    """(machines, kinds)"""
    open: Mask
    sequence: Sequences
    revision: Sequences


class RowHistory(NamedTuple):
    """The log of earlier contents of rows, oldest change first."""

    at: Index
    free: Amounts
    """(changes, kinds)"""
    sequence: Sequences


class Scratch(NamedTuple):
    """Arrays that a call works in."""

    state: Words
    """The generator's words: (6,)."""
    seen: Sequences
    """Sequences of the machines drawn: (tasks,) or longer."""
    taken: Sequences
    """Tasks drawn on each machine: (machines,); all 0 between two calls."""


def compiled(function: _F) -> _F:
    """Return a function compiled at its first call; the code is cached on disk where possible."""
    try:
        made = njit(cache=True, nogil=True, boundscheck=True)(function)
    except RuntimeError:  # neither the package's folder nor the user's cache is writable
        made = njit(nogil=True, boundscheck=True)(function)
    return cast("_F", made)


@compiled
def _step(state: Words) -> None:
    """Multiply the 128 bits of the state and add the increment, modulo 2**128."""
    low, high = state[1], state[0]
    low_0, low_1 = low & UINT32_MAX, low >> HALF
    by_0, by_1 = MULTIPLIER_LOW & UINT32_MAX, MULTIPLIER_LOW >> HALF
    cross_0, cross_1 = low_0 * by_1, low_1 * by_0
    middle = ((low_0 * by_0) >> HALF) + (cross_0 & UINT32_MAX) + (cross_1 & UINT32_MAX)
    carried = low_1 * by_1 + (cross_0 >> HALF) + (cross_1 >> HALF) + (middle >> HALF)
    high = carried + high * MULTIPLIER_LOW + low * MULTIPLIER_HIGH + state[2]
    product = low * MULTIPLIER_LOW
    low = product + state[3]
    if low < product:
        high += ONE
    state[0], state[1] = high, low


@compiled
def seed(words: Words, state: Words) -> None:
    """Seed a generator by four words, as numpy's PCG64 is by those of a SeedSequence."""
    state[0] = state[1] = state[4] = state[5] = np.uint64(0)
    state[2] = (words[2] << ONE) | (words[3] >> TOP)
    state[3] = (words[3] << ONE) | ONE
    _step(state)
    low = state[1] + words[1]
    state[0] += words[0]
    if low < words[1]:
        state[0] += ONE
    state[1] = low
    _step(state)


@compiled
def _draw_32(state: Words) -> np.uint64:
    """Return 32 random bits: first the lower half of a 64-bit draw, then the upper."""
    if state[4]:
        state[4] = np.uint64(0)
        return np.uint64(state[5])
    _step(state)
    mixed, turns = state[0] ^ state[1], state[0] >> TOP_SIX
    if turns:
        mixed = (mixed >> turns) | (mixed << (BITS - turns))
    state[4] = ONE
    state[5] = mixed >> HALF
    return np.uint64(mixed & UINT32_MAX)


@compiled
def draw_below(state: Words, limit: np.uint64) -> np.uint64:
    """Return a random integer in [0, limit) as `Generator.integers` does; limit is under 2**32."""
    if limit == ONE:
        return np.uint64(0)
    product = _draw_32(state) * limit
    if (product & UINT32_MAX) < limit:
        threshold = (UINT32_MAX - (limit - ONE)) % limit
        while (product & UINT32_MAX) < threshold:
            product = _draw_32(state) * limit
    return product >> HALF


@compiled
def _holds(rows: Rows, at: int, tasks: int, demand: Amounts) -> bool:
    """Return whether so many tasks fit into what is free of a machine."""
    for kind in range(len(demand)):
        free = rows.free[at, kind] if kind < rows.free.shape[1] else 0
        if demand[kind] and tasks * demand[kind] > free:
            return False
    return True


@compiled
def _draw(rows: Rows, demand: Amounts, words: Words, scratch: Scratch, machine: Ids) -> bool:
    """Draw a machine with room for each task; return whether enough were found.

    Writes the rows of the machines, ascending, to `machine`: (tasks,). Writes their
    sequences to `scratch.seen`.
    """
    seed(words, scratch.state)
    limit, wanted, drawn = np.uint64(len(rows.open)), len(machine), 0
    for times in (DRAWN_FIRST, DRAWN_AGAIN):
        for _ in range(int(times * wanted) + DRAWN_BESIDES):
            if drawn == wanted:
                break
            at = int(draw_below(scratch.state, limit))
            tasks = scratch.taken[at] + 1
            if rows.open[at] and _holds(rows, at, tasks, demand):
                scratch.taken[at] = tasks
                machine[drawn] = at
                drawn += 1
    for nth in range(drawn):
        scratch.taken[machine[nth]] = 0
    if drawn < wanted:
        return False
    machine.sort()
    for nth in range(wanted):
        scratch.seen[nth] = rows.sequence[machine[nth]]
    return True


@compiled
def _exchange(rows: Rows, kept: RowHistory, nth: int) -> None:
    """Swap the contents of a row with those in the log."""
    at = kept.at[nth]
    for kind in range(rows.free.shape[1]):
        amount = rows.free[at, kind]
        rows.free[at, kind] = kept.free[nth, kind]
        kept.free[nth, kind] = amount
    sequence = rows.sequence[at]
    rows.sequence[at] = kept.sequence[nth]
    kept.sequence[nth] = sequence


@compiled
def _keep(rows: Rows, kept: RowHistory, nth: int, at: int) -> None:
    kept.at[nth] = at
    for kind in range(rows.free.shape[1]):
        kept.free[nth, kind] = rows.free[at, kind]
    kept.sequence[nth] = rows.sequence[at]


@compiled
def _fit_together(rows: Rows, demand: Amounts, machine: Ids) -> bool:
    """Return whether one task an entry fits on these open machines; equal entries adjoin."""
    tasks = 0
    for nth in range(len(machine)):
        at = machine[nth]
        tasks = tasks + 1 if nth and machine[nth - 1] == at else 1
        if not (rows.open[at] and _holds(rows, at, tasks, demand)):
            return False
    return True


@compiled
def _change(
    rows: Rows, kept: RowHistory, end: int, demand: Amounts, machine: Ids, tasks: int
) -> int:
    """Add so many tasks, 1 or -1, on each of these rows; return the new end of the log.

    Equal rows adjoin. Only claims raise sequences. If `end` is NOTHING_KEPT nothing is logged.
    """
    for nth in range(len(machine)):
        at = machine[nth]
        if not nth or machine[nth - 1] != at:
            if end >= 0:
                _keep(rows, kept, end, at)
                end += 1
            rows.sequence[at] += max(tasks, 0)
            rows.revision[at] += 1
        for kind in range(rows.free.shape[1]):
            rows.free[at, kind] -= tasks * demand[kind]
    return end


@compiled
def claim(
    rows: Rows, kept: RowHistory, end: int, demand: Amounts, seen: Sequences, machine: Ids
) -> int:
    """Claim a task on each of these rows if all of them fit; equal rows adjoin.

    If `seen` is not empty, the rows must also have these sequences. Returns the new end of the
    log, or NOT_CLAIMED. If `end` is NOTHING_KEPT nothing is logged, and NOTHING_KEPT is returned.
    """
    for nth in range(len(seen)):
        if rows.sequence[machine[nth]] != seen[nth]:
            return NOT_CLAIMED
    if not _fit_together(rows, demand, machine):
        return NOT_CLAIMED
    return _change(rows, kept, end, demand, machine, 1)


@compiled
def draw_and_claim(
    rows: Rows,
    kept: RowHistory,
    changes: tuple[int, int, bool],
    demand: Amounts,
    draw: tuple[Words, bool],
    scratch: Scratch,
    machine: Ids,
) -> int:
    """Draw a machine for each task from the rows as they were; claim on the rows as they are.

    `changes` are the first change that the drawing must not see, the end of the log, and whether
    to log. `draw` are the seed's words and whether the sequence rule applies. Returns what
    `claim` returns. Writes the rows of the machines to `machine`: (tasks,).
    """
    first, end, keeps = changes
    words, by_sequence = draw
    for nth in range(end - 1, first - 1, -1):
        _exchange(rows, kept, nth)
    drawn = _draw(rows, demand, words, scratch, machine)
    for nth in range(first, end):
        _exchange(rows, kept, nth)
    if not drawn:
        return NOT_CLAIMED
    seen = scratch.seen[: len(machine) if by_sequence else 0]
    return claim(rows, kept, end if keeps else NOTHING_KEPT, demand, seen, machine)


@compiled
def release(rows: Rows, kept: RowHistory, end: int, demand: Amounts, machine: Ids) -> int:
    """Free the amounts of a task on each of these rows; equal rows adjoin.

    Returns the new end of the log. If `end` is NOTHING_KEPT nothing is logged.
    """
    return _change(rows, kept, end, demand, machine, -1)


@compiled
def move_free(free: Amounts, other: Amounts, machine: Ids) -> int:
    """Move what is free of machines, given by id, to another array of rows; return its CPU."""
    cpu_milli = 0
    for nth in range(len(machine)):
        at = machine[nth] - 1
        cpu_milli += free[at, CPU]
        for kind in range(free.shape[1]):
            other[at, kind] += free[at, kind]
            free[at, kind] = 0
    return cpu_milli
