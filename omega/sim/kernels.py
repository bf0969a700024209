"""Loops over the machine rows of one cell, compiled by numba.

Goal     Draw, claim and release the tasks of one plain group without an array for each step. Rows
         are counted from 0.
Promise  The draws are those of `omega.placement.first_fit.draw` on numpy's PCG64, number by number.
         Claims are granted only all together, which is the case in which every order of judging
         them gives the same. A call that does not grant changes nothing.
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
"""Of a generator: state and increment, each high and low; whether half a draw is left, and it."""

CPU: Final = int(Kind.CPU_MILLI)
NOTHING_KEPT: Final = -1
NOT_CLAIMED: Final = -2
"""In place of the end of what is kept."""

DRAWN_FIRST: Final = 1.2
DRAWN_AGAIN: Final = 3.0
DRAWN_BESIDES: Final = 4
"""As `omega.placement.first_fit` draws."""


class Rows(NamedTuple):
    """The machines of a cell; these arrays are changed in place."""

    free: Amounts
    """(machines, kinds)"""
    open: Mask
    sequence: Sequences
    revision: Sequences


class Kept(NamedTuple):
    """What rows were before they changed, oldest change first."""

    at: Index
    free: Amounts
    """(changes, kinds)"""
    sequence: Sequences


class Scratch(NamedTuple):
    """Room to work in."""

    state: Words
    """Of the generator: (6,)."""
    seen: Sequences
    """Sequences of the machines drawn: (tasks,), or more."""
    taken: Sequences
    """Tasks on each machine, (machines,); all 0 between two calls."""


def compiled(function: _F) -> _F:
    """Compile a function when it is first called; keep the machine code on disk, if possible."""
    try:
        made = njit(cache=True, nogil=True, boundscheck=True)(function)
    except RuntimeError:  # neither our folder nor the user's cache can be written to
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
    """Seed a generator by four words, as PCG64 does by those of a seed sequence."""
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
    """Return 32 random bits: the lower half of a draw, then the upper."""
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
    """Return a random integer in [0, limit), as `Generator.integers` does; limit is below 2**32."""
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
    """Say whether so many tasks fit into what is free of a machine."""
    for kind in range(len(demand)):
        free = rows.free[at, kind] if kind < rows.free.shape[1] else 0
        if demand[kind] and tasks * demand[kind] > free:
            return False
    return True


@compiled
def _draw(rows: Rows, demand: Amounts, words: Words, scratch: Scratch, machine: Ids) -> bool:
    """Draw a machine with room for each task, in order of id; say whether there were enough.

    Writes the rows of the machines to `machine`, and their sequences to `scratch.seen`.
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
def _exchange(rows: Rows, kept: Kept, nth: int) -> None:
    """Exchange what a row is and what it was before a change."""
    at = kept.at[nth]
    for kind in range(rows.free.shape[1]):
        amount = rows.free[at, kind]
        rows.free[at, kind] = kept.free[nth, kind]
        kept.free[nth, kind] = amount
    sequence = rows.sequence[at]
    rows.sequence[at] = kept.sequence[nth]
    kept.sequence[nth] = sequence


@compiled
def _keep(rows: Rows, kept: Kept, nth: int, at: int) -> None:
    kept.at[nth] = at
    for kind in range(rows.free.shape[1]):
        kept.free[nth, kind] = rows.free[at, kind]
    kept.sequence[nth] = rows.sequence[at]


@compiled
def _fit_together(rows: Rows, demand: Amounts, machine: Ids) -> bool:
    """Say whether a task for each entry fits on these open machines; equal ones adjoin."""
    tasks = 0
    for nth in range(len(machine)):
        at = machine[nth]
        tasks = tasks + 1 if nth and machine[nth - 1] == at else 1
        if not (rows.open[at] and _holds(rows, at, tasks, demand)):
            return False
    return True


@compiled
def _change(rows: Rows, kept: Kept, end: int, demand: Amounts, machine: Ids, tasks: int) -> int:
    """Add so many tasks, 1 or -1, on each of these rows; return the end of what is kept.

    Equal rows adjoin. Only claims raise sequences. With `end` NOTHING_KEPT nothing is kept.
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
def claim(rows: Rows, kept: Kept, end: int, demand: Amounts, seen: Sequences, machine: Ids) -> int:
    """Claim a task on each of these rows, if all of them fit; equal ones adjoin.

    With `seen`, only where these are the rows' sequences. Returns the end of what is kept, or
    NOT_CLAIMED. With `end` NOTHING_KEPT nothing is kept, and it returns that.
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
    kept: Kept,
    changes: tuple[int, int, bool],
    demand: Amounts,
    draw: tuple[Words, bool],
    scratch: Scratch,
    machine: Ids,
) -> int:
    """Draw a machine for each task on the rows as they were; claim on them as they are.

    `changes` are the first change that the drawer has not seen, the end of what is kept, and
    whether to keep more; `draw` the seed's words and whether claims are by the sequence rule.
    Returns as `claim`, which grants; the rows of the machines are in `machine`.
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
def release(rows: Rows, kept: Kept, end: int, demand: Amounts, machine: Ids) -> int:
    """Free a task's amounts on each of these rows; equal ones adjoin.

    Returns the end of what is kept; with `end` NOTHING_KEPT nothing is.
    """
    return _change(rows, kept, end, demand, machine, -1)


@compiled
def hand_over(free: Amounts, other: Amounts, machine: Ids) -> int:
    """Move what is free of machines, given by id, to other rows of them; return how much CPU."""
    cpu_milli = 0
    for nth in range(len(machine)):
        at = machine[nth] - 1
        cpu_milli += free[at, CPU]
        for kind in range(free.shape[1]):
            other[at, kind] += free[at, kind]
            free[at, kind] = 0
    return cpu_milli
