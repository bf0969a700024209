"""A view: what one scheduler believes of the cell now.

Goal     Let placement read the whole cell as arrays, and let news arrive cheaply.
Promise  Read-only to placement. A row is replaced whole, never added to, and only by a row of a
         higher revision: applying news twice, or late, is harmless. Claims tried on for size leave
         no trace.
Source   Omega (EuroSys 2013), section 3.4: private copy of cell state.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from omega.cell.partition import part_of
from omega.cell.signals import NO_SIGNALS, NOW, Seconds, Signals
from omega.model.arrays import (
    Amounts,
    Codes,
    Ids,
    Index,
    Mask,
    Sequences,
    States,
    every_kind,
    holds,
    positions,
)
from omega.model.claims import Claims
from omega.model.machines import Catalogue, Changes, MachineRows, MachineState, Snapshot
from omega.model.resources import KINDS

_T = TypeVar("_T", bound=np.generic)
OPEN: Final = int(MachineState.OPEN)


class View:
    """The whole cell as one scheduler last heard of it, as arrays with a row a machine.

    Amounts are held with the kinds' columns contiguous, so that a comparison touches only the
    kinds that a task asks for.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        rows = snapshot.rows
        self._id = rows.id
        self._capacity = rows.capacity.copy(order="F")
        self._free = np.asfortranarray(rows.free)
        self._sequence = rows.sequence.copy()
        self._revision = rows.revision.copy()
        self._state = rows.state.copy()
        self._names = snapshot.names
        self._catalogue = snapshot.catalogue
        self._codes = np.asfortranarray(snapshot.codes)
        self.mark = snapshot.mark
        self.generation = snapshot.generation
        self.signals: Signals = NO_SIGNALS
        """What a scheduler may know besides rows; the framework sets them before a placement."""
        self.parts_read_s: Seconds = NOW
        """When each part was read, by the clock of whoever keeps the view fresh; never changed in
        place."""
        self._part: Index | None = None
        self._parts = 0
        self._open = _takes_claims(rows, rows.free)
        self._kinds = _kinds_of(rows)
        """Of so many kinds there are columns that are ever other than 0: of a cell without disks
        and GPUs, two of eleven."""
        self._shown_free = _read_only(self._free)
        self._shown_sequence = _read_only(self._sequence)
        self._shown_open = _read_only(self._open)
        self._undo: list[tuple[Index, Amounts]] | None = None

    def __len__(self) -> int:
        return len(self._id)

    @property
    def id(self) -> Ids:
        """Machine ids, ascending."""
        return self._id

    @property
    def capacity(self) -> Amounts:
        """What each machine has: (machines, kinds)."""
        return _read_only(self._capacity)

    @property
    def free(self) -> Amounts:
        """What is left of each machine, claims being tried on included: (machines, kinds)."""
        return self._shown_free

    @property
    def sequence(self) -> Sequences:
        """The sequence of each machine, for claims to carry."""
        return self._shown_sequence

    @property
    def revision(self) -> Sequences:
        """The revision of each machine's row: which of two copies is the newer."""
        return _read_only(self._revision)

    @property
    def state(self) -> States:
        """The state of each machine."""
        return _read_only(self._state)

    @property
    def open(self) -> Mask:
        """Which machines take claims: not those used above their capacity in some kind."""
        return self._shown_open

    @property
    def names(self) -> tuple[str, ...]:
        """Machine names."""
        return self._names

    @property
    def catalogue(self) -> Catalogue:
        """What the attribute codes stand for."""
        return self._catalogue

    @property
    def codes(self) -> Codes:
        """Attribute codes: (machines, attributes)."""
        return _read_only(self._codes)

    @property
    def part(self) -> Index:
        """In which part each machine lies, of as many as there are ages of."""
        parts = len(self.signals.parts_read_s)
        if self._part is None or self._parts != parts:
            self._part, self._parts = part_of(self._id, parts), parts
        return _read_only(self._part)

    def rows(self) -> MachineRows:
        """Return a copy of the rows as this view believes them."""
        return MachineRows(
            self._id,
            self._capacity.copy(),
            self._capacity - self._free,
            self._sequence.copy(),
            self._revision.copy(),
            self._state.copy(),
        )

    def where(self, ids: Ids) -> Index:
        """Return the row of each machine id; -1 for one that this view does not know."""
        return positions(self._id, ids)

    def patch(self, rows: MachineRows) -> int:
        """Replace ours by rows that are newer; return how many were.

        Rows of machines that this view has not met are left out: a full read brings them, and
        the cell's generation says when one is due. Must not be called while claims are tried on:
        taking them off again would bring the old rows back.
        """
        assert self._undo is None, "claims are being tried on"
        at = self.where(rows.id)
        known = at >= 0
        if not holds(known):
            at, rows = at[known], rows.take(known.nonzero()[0])
        newer = rows.revision > self._revision[at]
        if not holds(newer):
            at, rows = at[newer], rows.take(newer.nonzero()[0])
        if not len(at):
            return 0
        free = rows.free
        if _any_from(self._kinds, rows.capacity) or _any_from(self._kinds, rows.used):
            self._kinds = KINDS
        columns = slice(self._kinds)
        self._capacity[:, columns][at] = rows.capacity[:, columns]
        self._free[:, columns][at] = free[:, columns]
        self._sequence[at] = rows.sequence
        self._revision[at] = rows.revision
        self._state[at] = rows.state
        self._open[at] = _takes_claims(rows, free)
        return len(at)

    def catch_up(self, changes: Changes) -> int:
        """Patch what changed since our mark and move the mark; return how many rows were newer."""
        assert changes.generation == self.generation, "a full read is due"
        self.mark = changes.mark
        return self.patch(changes.rows)

    @contextmanager
    def trying(self) -> Iterator[None]:
        """Let claims be tried on inside the block; afterwards the view is as it was before.

        Blocks nest: placement tries groups of a job on while a runner tries jobs on.
        """
        outer, self._undo = self._undo, []
        try:
            yield
        finally:
            for at, free in reversed(self._undo):
                self._free[at] = free
            self._undo = outer

    def try_on(self, claims: Claims) -> None:
        """Count claims as taken, inside a `trying` block, so that later jobs see them."""
        assert self._undo is not None, "claims are tried on inside a `trying` block"
        at = self.where(claims.machine)
        known = at >= 0  # a claim on a machine that is not here takes nothing: it will be refused
        at, demand = at[known], claims.demand[known]
        self._undo.append((at, self._free[at]))  # a row may come twice: what it was is the same
        np.subtract.at(self._free, at, demand)

    def take_off(self, machine: Ids, amounts: Amounts) -> None:
        """Count what runs there as gone, inside a `trying` block: what if it were elsewhere?"""
        self._free_more(machine, amounts)

    def put_back(self, machine: Ids, amounts: Amounts) -> None:
        """Count what was taken off as running there again, whether there is room or not."""
        self._free_more(machine, -amounts)

    def _free_more(self, machine: Ids, amounts: Amounts) -> None:
        assert self._undo is not None, "what runs is taken off inside a `trying` block"
        at = self.where(machine)
        known = at >= 0
        at, amounts = at[known], amounts[known]
        self._undo.append((at, self._free[at]))
        np.add.at(self._free, at, amounts)


def _takes_claims(rows: MachineRows, free: Amounts) -> Mask:
    is_open = rows.state == OPEN
    if free.size and free.min() < 0:
        is_open &= every_kind(free >= 0)
    return np.asarray(is_open)


def _any_from(kind: int, amounts: Amounts) -> bool:
    return bool(np.count_nonzero(amounts[:, kind:]))


def _kinds_of(rows: MachineRows) -> int:
    """Return how many of the first kinds there are; of those behind, no machine has or uses any."""
    there = rows.capacity.any(axis=0) | rows.used.any(axis=0)
    return int(np.flatnonzero(there)[-1]) + 1 if there.any() else 0


def _read_only(array: NDArray[_T]) -> NDArray[_T]:
    window = array.view()
    window.flags.writeable = False
    return window
