"""The machines of a memory store: an array for each column, with a row for each machine.

Goal     Keep and return the cell's rows without an object for each machine.
Promise  Returned rows are copies. Ids are 1, 2, 3 in the order of adding. Each change of a row
         raises its revision, and records the number of the transaction that made it.
Source   docs/glossary.md: sequence, revision, generation and mark.
"""

from dataclasses import dataclass

import numpy as np

from omega.cell.partition import WHOLE, Parts
from omega.errors import BadInput
from omega.model.arrays import Amounts, Codes, Ids, Index, all_true, distinct, integers
from omega.model.machines import (
    Catalogue,
    Changes,
    MachineRows,
    Machines,
    MachineState,
    Snapshot,
)
from omega.model.resources import KINDS
from omega.store.memory.row_log import RowLog


@dataclass(frozen=True, eq=False)
class Notice:
    """The amounts that may be used above a machine's capacity, and until when."""

    tolerated: Amounts
    ends_s: float


class MachineTable:
    """All machines of a cell; the machine with id n is row n - 1."""

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()
        self.catalogue = Catalogue()
        self.codes = np.zeros((0, 0), dtype=np.int32)
        self.capacity = np.zeros((0, KINDS), dtype=np.int64)
        self.used = np.zeros((0, KINDS), dtype=np.int64)
        self.sequence = integers()
        self.revision = integers()
        self.state = np.zeros(0, dtype=np.int8)
        self.changed_by = integers()
        """The number of the transaction that last changed each row."""
        self._log = RowLog()
        self.generation = 0
        self.notices: dict[int, Notice] = {}
        """By machine id; a machine without a notice uses no more than its capacity."""
        self._addresses: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self.names)

    def add(self, machines: Machines, number: int) -> Ids:
        """Add open, unused machines; return their ids. Raises BadInput for a name that is taken."""
        _refuse_taken_names(self.names, machines.names)
        if not len(machines):
            return integers()
        rows = MachineRows.empty(machines.capacity)
        ids = rows.id + len(self)
        self.codes = np.concatenate(self._widened(machines))
        self.names += machines.names
        self.capacity = np.concatenate([self.capacity, rows.capacity])
        self.used = np.concatenate([self.used, rows.used])
        self.sequence = np.concatenate([self.sequence, rows.sequence])
        self.revision = np.concatenate([self.revision, rows.revision])
        self.state = np.concatenate([self.state, rows.state])
        self.changed_by = np.concatenate([self.changed_by, np.full(len(rows), number)])
        self._log.note(ids - 1, number)
        self.generation += 1
        return ids

    def describe(self, machine: int, described: Machines) -> None:
        """Change the attributes of a machine to those of the one described, if they differ."""
        _, codes = self.catalogue.encode(described)
        before = self.codes[machine - 1]
        if (codes[0, : len(before)] != before).any() or codes[0, len(before) :].any():
            self.codes, codes = self._widened(described)
            self.codes[machine - 1] = codes[0]
            self.generation += 1

    def has_address(self, machine: int, address: str | None) -> None:
        """Note the address of a machine; None changes nothing."""
        if address is not None:
            self._addresses[machine] = address

    def address(self, machine: int) -> str:
        """Return the address of a machine, or its name if it has none."""
        return self._addresses.get(machine, self.names[machine - 1])

    def _widened(self, machines: Machines) -> tuple[Codes, Codes]:
        """Add attributes of machines to the catalogue; return the codes of all, and of these."""
        self.catalogue, codes = self.catalogue.encode(machines)
        more_columns = codes.shape[1] - self.codes.shape[1]
        return np.pad(self.codes, ((0, 0), (0, more_columns))), codes

    def named(self, ids: Ids) -> Index:
        """Return the positions of those of these ids that exist, distinct and ascending."""
        at = distinct(ids) - 1
        there = (at >= 0) & (at < len(self))
        return at if all_true(there) else at[there]

    def rows(self, at: Index) -> MachineRows:
        """Return a copy of the rows at distinct, ascending positions."""
        return MachineRows.trusted(
            at + 1,
            self.capacity.take(at, axis=0),
            self.used.take(at, axis=0),
            self.sequence[at],
            self.revision[at],
            self.state[at],
        )

    def write(self, rows: MachineRows, number: int) -> None:
        """Copy use, sequence and revision of those rows that are newer than the table's."""
        newer = rows.revision > self.revision[rows.id - 1]
        if not all_true(newer):
            rows = rows.take(newer.nonzero()[0])
        at = rows.id - 1
        self.used[at] = rows.used
        self.sequence[at] = rows.sequence
        self.revision[at] = rows.revision
        self.changed(at, number)

    def free(self, machine: Ids, amounts: Amounts, number: int) -> None:
        """Free amounts on machines; the rows' revisions rise and their sequences do not."""
        np.subtract.at(self.used, machine - 1, amounts)
        at = distinct(machine) - 1
        self.revision[at] += 1
        self.changed(at, number)

    def set_state(self, machine: Ids, state: MachineState, number: int) -> int:
        """Change the state of machines that are not gone; return how many changed.

        Raises BadInput for an id that never existed.
        """
        at = self._known(machine)
        at = at[(self.state[at] != state) & (self.state[at] != MachineState.GONE)]
        self.state[at] = state
        self._claimable_changed(at, number)
        return len(at)

    def resize(self, machine: int, capacity: Amounts, ends_s: float, number: int) -> None:
        """Change a capacity; use above it is tolerated until `ends_s`, and recorded as a notice.

        Raises BadInput for an id that never existed or a machine that is gone.
        """
        at = self._known(integers([machine]))
        if self.state[at] == MachineState.GONE:
            raise BadInput(f"machine {machine} has left the cell", field="machine")
        self.capacity[at] = capacity
        excess = self.excess(machine)
        self.notices.pop(machine, None)
        if excess.any():
            self.notices[machine] = Notice(excess, ends_s)
        self._claimable_changed(at, number)

    def excess(self, machine: int) -> Amounts:
        """Return the amounts used on a machine above its capacity: (kinds,)."""
        return np.asarray(np.maximum(self.used[machine - 1] - self.capacity[machine - 1], 0))

    def end_notice_if_it_fits(self, machine: int) -> None:
        """Remove a machine's notice if its use is within its capacity."""
        if not self.excess(machine).any():
            del self.notices[machine]

    def _known(self, machine: Ids) -> Index:
        """Return distinct, ascending positions of these ids; raise BadInput if one is unknown."""
        at = self.named(machine)
        if unknown := sorted(set(machine.tolist()) - set((at + 1).tolist())):
            raise BadInput(f"there is no machine {unknown[0]}", field="machine")
        return at

    def _claimable_changed(self, at: Index, number: int) -> None:
        self.sequence[at] += 1
        self.revision[at] += 1
        self.changed(at, number)

    def snapshot(self, mark: int) -> Snapshot:
        """Return a copy of all machines."""
        return Snapshot(
            self.rows(np.arange(len(self))),
            self.names,
            self.catalogue,
            self.codes.copy(),
            mark,
            self.generation,
        )

    def changes_since(self, since: int, mark: int, parts: Parts = WHOLE) -> Changes:
        """Return the rows in these parts that were changed by transactions after number `since`."""
        at = self._log.since(since)
        if at is None:
            at = np.flatnonzero(self.changed_by > since)
        if parts != WHOLE:
            at = at[parts.hold(at + 1)]
        return Changes(self.rows(at), mark, self.generation)

    def changed(self, at: Index, number: int) -> None:
        """Record the number of the transaction that changed these rows last."""
        self.changed_by[at] = number
        self._log.note(at, number)


def _refuse_taken_names(taken: tuple[str, ...], wanted: tuple[str, ...]) -> None:
    known = set(taken)
    for name in wanted:
        if name in known:
            raise BadInput(f"a machine named {name!r} is in the cell already", field="name")
        known.add(name)
