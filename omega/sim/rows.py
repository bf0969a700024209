"""The rows of a simulated cell, and how they were when a scheduler looked at them.

Goal     Show each scheduler the cell as it was when the scheduler looked, without copying the cell.
Promise  All schedulers of the cell share one set of rows and one view, because in virtual time only
         one of them places at a time. While a look is kept, each change logs the earlier rows.
         `as_of` shows them inside its block, in which nothing may be changed.
Source   Omega (EuroSys 2013), section 3.4: private copy of cell state; docs/decisions/0030.
"""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from omega.cell.view import View
from omega.model.arrays import (
    Amounts,
    Ids,
    Index,
    all_true,
    counted,
    distinct,
    every_kind,
    integers,
)
from omega.model.jobs import LeasedJob
from omega.model.machines import MachineRows, MachineState, Snapshot
from omega.model.resources import KINDS, Kind
from omega.sim.changes import ChangeLog, Columns

CPU: Final = int(Kind.CPU_MILLI)
CHANGES_MAX = 16_384
"""The log drops changes that no look needs once it has more than this many."""


class _Shown(AbstractContextManager[None]):
    """Shows other values in some rows inside a `with` block.

    A row may be named twice: the last value is shown, and the row's own value is restored.
    """

    def __init__(self, columns: Columns, at: Index, values: Columns) -> None:
        self._columns, self._at, self._values = columns, at, values

    def __enter__(self) -> None:
        at = self._at
        self._own = [column[at] for column in self._columns]
        for column, value in zip(self._columns, self._values, strict=True):
            column[at] = value

    def __exit__(self, *_: object) -> None:
        for column, value in zip(self._columns, self._own, strict=True):
            column[self._at] = value


@dataclass(eq=False)
class Look:
    """The moment at which a scheduler looked at a cell, and rows that it was shown later."""

    since: int
    """The number of changes at that moment."""
    seen: list[tuple[int, Index]] = field(default_factory=list)
    """Rows that were shown again later, each with the number of changes by then."""


class CellRows(View):
    """All machines of a simulated cell; the machine with id n is row n - 1."""

    def __init__(self, snapshot: Snapshot, *, machines_change: bool) -> None:
        """Pass `machines_change` if capacities and states may change."""
        super().__init__(snapshot)
        self._machines_change = machines_change
        if machines_change:
            self._kinds = KINDS
        self._columns: list[NDArray[np.generic]] = [self._free[:, : self._kinds], self._sequence]
        """The columns that can change and that views show."""
        if machines_change:
            self._columns += [self._capacity, self._state, self._open]
        self._looks: dict[Look, None] = {}
        self._log = ChangeLog(self._columns)

    def look(self) -> Look:
        """Start to keep changes, so that `as_of` can show the cell as it is now."""
        look = Look(self._log.number)
        self._looks[look] = None
        return look

    def look_again(self, look: Look, machine: Ids) -> None:
        """Let a look show some machines as they are now."""
        look.seen.append((self._log.number, machine - 1))

    def forget(self, look: Look) -> None:
        """End a look; its changes may be dropped."""
        del self._looks[look]
        log = self._log
        if not self._looks:
            log.drop(log.number)
        elif log.kept > CHANGES_MAX:
            seen_by_all = min(one.since for one in self._looks)
            if 2 * log.nth(seen_by_all) >= log.kept:  # otherwise the rest would be copied too often
                log.drop(seen_by_all)

    def as_of(self, look: Look) -> AbstractContextManager[None]:
        """Show the cell inside a `with` block as of this look."""
        at, were = self._since(look)
        return _Shown(self._columns, at, were) if len(at) else nullcontext()

    def patch(self, rows: MachineRows) -> int:
        """Do nothing: these are the cell's own rows."""
        del rows
        return 0

    def at(self, machine: Ids) -> MachineRows:
        """Return a copy of the rows of these machines as they are now, distinct and ascending."""
        at = distinct(machine) - 1
        at = at[(at >= 0) & (at < len(self))]
        return MachineRows.trusted(
            at + 1,
            self._capacity[at],
            self._capacity[at] - self._free[at],
            self._sequence[at],
            self._revision[at],
            self._state[at],
        )

    def draw_and_claim(
        self, job: LeasedJob, seed: bytes, look: Look | None, *, by_sequence: bool
    ) -> Ids | None:
        """Draw a machine for each unplaced task of a job of one plain group, and claim them all.

        Draws from the cell as of `look`, or as it is now if that is None. Returns the ids,
        ascending: (tasks,). Returns None, and claims nothing, if not all of them fit. This class
        always returns None; compiled rows draw.
        """
        del job, seed, look, by_sequence
        return None

    def claim(self, machine: Ids, seen: Ids | None, demand: Amounts) -> bool:
        """Grant tasks of one shape, one an entry, if all of them fit; otherwise change nothing.

        With `seen`, the machines' sequences must be these. Returns whether they were granted.
        """
        at, times = counted(machine)
        at -= 1
        if at[0] < 0 or at[-1] >= len(self) or not all_true(self._open[at]):
            return False
        if seen is not None and not all_true(self._sequence[machine - 1] == seen):
            return False
        left = []
        for kind in demand.nonzero()[0].tolist():
            amount = self._free[:, kind][at] - times * int(demand[kind])
            if amount.min() < 0:
                return False
            left.append((kind, amount))
        self._keep(at)
        for kind, amount in left:
            self._free[:, kind][at] = amount
        self._sequence[at] += 1
        self._revision[at] += 1
        return True

    def claim_one_shape(self, machine: Ids, demand: Amounts) -> None:
        """Grant tasks of one shape, one an entry, all of which fit; the machine ids ascend."""
        granted = self.claim(machine, None, demand)
        assert granted, "all of them fit"

    def write(self, rows: MachineRows) -> None:
        """Copy the rows that a commit has changed into the cell."""
        newer = (rows.revision > self._revision[rows.id - 1]).nonzero()[0]
        rows = rows.take(newer)
        at = rows.id - 1
        self._keep(at)
        self._free[at] = rows.free
        self._sequence[at] = rows.sequence
        self._revision[at] = rows.revision
        self._settle(at)

    def release(self, machine: Ids, amounts: Amounts) -> None:
        """Free what tasks used: one entry of `machine` and one row of `amounts` for each task."""
        at = distinct(machine) - 1
        self._keep(at)
        for kind in range(self._kinds):
            np.add.at(self._free[:, kind], machine - 1, amounts[:, kind])
        self._revision[at] += 1
        self._settle(at)

    def release_one_shape(self, machine: Ids, demand: Amounts) -> None:
        """Free what tasks of one shape used, one an entry."""
        at, times = counted(machine)
        at -= 1
        self._keep(at)
        for kind in demand.nonzero()[0].tolist():
            self._free[:, kind][at] += times * int(demand[kind])
        self._revision[at] += 1
        self._settle(at)

    def set_state(self, machine: int, state: MachineState) -> bool:
        """Change the state of a machine; return whether it was another."""
        at = integers([machine - 1])
        if self._state[machine - 1] == state:
            return False
        self._keep(at)
        self._state[at] = state
        self._claimable_changed(at)
        return True

    def resize(self, machine: int, capacity: Amounts) -> None:
        """Change the capacity of a machine; what is free of it may become negative."""
        at = integers([machine - 1])
        self._keep(at)
        self._free[at] += capacity - self._capacity[at]
        self._capacity[at] = capacity
        self._claimable_changed(at)

    def move_free(self, machine: Ids, other: "CellRows") -> int:
        """Move what is free of some machines to other rows of the same machines; return the CPU.

        Neither set of rows may have looks.
        """
        assert not self._looks
        assert not other._looks  # noqa: SLF001 - of its own class
        at = distinct(machine) - 1
        its = other._free  # noqa: SLF001 - of its own class
        cpu_milli = int(self._free[:, CPU][at].sum())
        for kind in range(self._kinds):
            its[:, kind][at] += self._free[:, kind][at]
            self._free[:, kind][at] = 0
        return cpu_milli

    def _claimable_changed(self, at: Index) -> None:
        self._sequence[at] += 1
        self._revision[at] += 1
        self._settle(at)

    def _settle(self, at: Index) -> None:
        """Compute which of these rows take claims now."""
        if self._machines_change:
            is_open = self._state[at] == MachineState.OPEN
            self._open[at] = is_open & every_kind(self._free[at] >= 0)

    def _keep(self, at: Index) -> None:
        """Log rows that are about to change, if there is a look."""
        if self._looks:
            self._log.keep(at)

    def _since(self, look: Look) -> tuple[Index, Columns]:
        """Return the rows changed since a look and their earlier contents, latest change first."""
        at, were = self._log.since(look.since)
        if not look.seen:
            return at, were
        hidden = np.zeros(len(at), dtype=np.bool_)
        for until, seen in look.seen:
            before = slice(self._log.number - until, None)
            hidden[before] |= np.isin(at[before], seen)
        return at[~hidden], [column[~hidden] for column in were]
