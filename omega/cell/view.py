"""A view: one scheduler's private copy of the cell's state.

Goal     Let placement read the whole cell as arrays, and make updates cheap.
Promise  Placement changes it only inside a `tentative` block, at whose end it is as before. A row
         is only ever replaced as a whole, by a row of a higher revision: applying an update twice,
         or late, is harmless.
Source   Omega (EuroSys 2013), section 3.4: private copy of cell state.
"""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from omega.cell.open_room import OpenRoom
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
    all_true,
    every_kind,
    positions,
)
from omega.model.claims import Claims
from omega.model.machines import Catalogue, Changes, MachineRows, MachineState, Snapshot
from omega.model.resources import KINDS

_T = TypeVar("_T", bound=np.generic)
_V = TypeVar("_V")
OPEN: Final = int(MachineState.OPEN)
FOUND_MAX: Final = 8
"""How many results that depend on attributes a view keeps."""


class View:
    """The whole cell as one scheduler last read it, as arrays with one row for each machine.

    Amounts are stored column by column, so that a comparison reads only the kinds of resources
    that a task asks for.
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
        """What a scheduler may know besides rows; the framework sets it before each placement."""
        self.parts_read_s: Seconds = NOW
        """When each part was read, by the clock of the refresher, which sets it; `signals` has what
        placement is told of it. NOW, of one part, is that of a view that is read as a whole. The
        array is replaced, never changed in place."""
        self._part: Index | None = None
        self._parts = 0
        self._open = _takes_claims(rows, rows.free)
        self._kinds = _kinds_of(rows)
        """How many leading columns of amounts are in use; the others are 0 on every machine. A cell
        without disks and GPUs uses 2 of 11."""
        self._shown_free = _read_only(self._free)
        self._shown_sequence = _read_only(self._sequence)
        self._shown_open = _read_only(self._open)
        self._undo: list[tuple[Index, Amounts]] | None = None
        self._by_attributes: dict[Hashable, object] = {}

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
        """What is left of each machine, less the claims that are assumed: (machines, kinds)."""
        return self._shown_free

    def open_room(self) -> OpenRoom:
        """Return what tasks could be placed in, less the claims that are assumed."""
        is_open = self.open[:, np.newaxis]
        return OpenRoom(np.where(is_open, self.free, 0), np.where(is_open, self.capacity, 0))

    @property
    def sequence(self) -> Sequences:
        """The sequence of each machine, which claims present as `seen`.

        Commits and changes of capacity or state raise it; the end of a task does not, so that room
        that becomes free makes no claim stale.
        """
        return self._shown_sequence

    @property
    def revision(self) -> Sequences:
        """The revision of each machine's row, which every change raises.

        Of two copies of a row, the one of the higher revision is the newer.
        """
        return _read_only(self._revision)

    @property
    def state(self) -> States:
        """The state of each machine."""
        return _read_only(self._state)

    @property
    def open(self) -> Mask:
        """Which machines take claims: those open and not used above their capacity in any kind."""
        return self._shown_open

    @property
    def names(self) -> tuple[str, ...]:
        """Machine names."""
        return self._names

    @property
    def catalogue(self) -> Catalogue:
        """The attribute names and values that the codes stand for."""
        return self._catalogue

    @property
    def codes(self) -> Codes:
        """Attribute codes: (machines, attributes)."""
        return _read_only(self._codes)

    def by_attributes(self, key: Hashable, find: Callable[[], _V]) -> _V:
        """Return what `find` returns, found once: it depends on the key and attributes only.

        Attributes do not change in a view. A few results are kept.
        """
        if key not in self._by_attributes:
            if len(self._by_attributes) == FOUND_MAX:
                self._by_attributes.clear()
            self._by_attributes[key] = find()
        return cast(_V, self._by_attributes[key])

    @property
    def part(self) -> Index:
        """The part in which each machine lies, of as many parts as `signals.parts_read_s` has."""
        parts = len(self.signals.parts_read_s)
        if self._part is None or self._parts != parts:
            self._part, self._parts = part_of(self._id, parts), parts
        return _read_only(self._part)

    def rows(self) -> MachineRows:
        """Return a copy of the rows of this view."""
        return MachineRows(
            self._id,
            self._capacity.copy(),
            self._capacity - self._free,
            self._sequence.copy(),
            self._revision.copy(),
            self._state.copy(),
        )

    def where(self, ids: Ids) -> Index:
        """Return the row of each machine id; -1 for one that this view does not have."""
        return positions(self._id, ids)

    def patch(self, rows: MachineRows) -> int:
        """Replace the rows of this view of which `rows` has a newer copy; return how many.

        Machines that this view does not have are left out: a full read adds them. One is due when
        the cell's generation, which changes with its set of machines, is another than the view's.
        Must not be called inside a `tentative` block, whose end would restore the old rows.
        """
        assert self._undo is None, "claims are assumed"
        at = self.where(rows.id)
        known = at >= 0
        if not all_true(known):
            at, rows = at[known], rows.take(known.nonzero()[0])
        newer = rows.revision > self._revision[at]
        if not all_true(newer):
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
        """Patch with the changes since this view's mark, and advance the mark.

        Returns how many rows were newer than this view's.
        """
        assert changes.generation == self.generation, "a full read is due"
        self.mark = changes.mark
        return self.patch(changes.rows)

    @contextmanager
    def tentative(self) -> Iterator[None]:
        """Let claims be assumed inside the block; at its end the view is as before.

        Blocks nest: placement assumes the groups of a job inside the block of an attempt, which
        assumes jobs.
        """
        outer, self._undo = self._undo, []
        try:
            yield
        finally:
            for at, free in reversed(self._undo):
                self._free[at] = free
            self._undo = outer

    def assume_claims(self, claims: Claims) -> None:
        """Subtract claims from `free`, inside a `tentative` block, so that later jobs see them."""
        assert self._undo is not None, "claims are assumed inside a `tentative` block"
        at = self.where(claims.machine)
        known = at >= 0  # a claim on a machine that is not here will be refused: it takes nothing
        at, demand = at[known], claims.demand[known]
        self._undo.append((at, self._free[at]))  # a row may occur twice, with the same old value
        np.subtract.at(self._free, at, demand)

    def assume_removed(self, machine: Ids, amounts: Amounts) -> None:
        """Add amounts of allocations to `free`, inside a `tentative` block, as if they had ended.

        `machine` (allocations,) and `amounts` (allocations, kinds).
        """
        self._free_more(machine, amounts)

    def undo_removal(self, machine: Ids, amounts: Amounts) -> None:
        """Subtract what `assume_removed` added, whether there is room or not."""
        self._free_more(machine, -amounts)

    def _free_more(self, machine: Ids, amounts: Amounts) -> None:
        assert self._undo is not None, "what runs is taken off inside a `tentative` block"
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
    """Return how many leading kinds are in use; no machine has or uses any of the kinds after."""
    there = rows.capacity.any(axis=0) | rows.used.any(axis=0)
    return int(np.flatnonzero(there)[-1]) + 1 if there.any() else 0


def _read_only(array: NDArray[_T]) -> NDArray[_T]:
    window = array.view()
    window.flags.writeable = False
    return window
