"""Machines: rows of amounts and states, attributes, and snapshots of the whole cell.

Goal     Hold thousands of machines as a few arrays.
Promise  Rows are ascending by id and read-only. A machine that leaves keeps its row, marked GONE.
Source   shared-state cell of Omega (EuroSys 2013), section 3.4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from omega.model.arrays import (
    Amounts,
    Codes,
    Ids,
    Index,
    Mask,
    Sequences,
    States,
    ascends,
    freeze,
    positions,
)
from omega.model.resources import KINDS


class MachineState(IntEnum):
    """Whether a machine takes claims."""

    OPEN = 0
    DRAINING = 1  # keeps its tasks, takes no new claims
    DOWN = 2
    GONE = 3  # left the cell; the row stays so that views can read the change


DEAD = (MachineState.DOWN, MachineState.GONE)
"""States of machines on which nothing runs, although `used` may still count tasks there."""


@dataclass(frozen=True, eq=False)
class MachineRows:
    """The rows of some machines at one moment, ascending by id."""

    id: Ids
    capacity: Amounts
    used: Amounts
    sequence: Sequences
    """Raised by each transaction that is granted a claim here, and by changes of capacity or
    state."""
    revision: Sequences
    """Raised by every change of the row, ends of tasks included; orders two copies of the row."""
    state: States

    def __post_init__(self) -> None:
        assert self.capacity.shape == self.used.shape == (len(self.id), KINDS)
        assert len(self.sequence) == len(self.revision) == len(self.state) == len(self.id)
        assert ascends(self.id), "rows must be distinct and ascending by id"
        freeze(self.id, self.capacity, self.used, self.sequence, self.revision, self.state)

    def __len__(self) -> int:
        return len(self.id)

    @property
    def free(self) -> Amounts:
        """What is left of each machine, as a new array."""
        return self.capacity - self.used

    def where(self, ids: Ids) -> Index:
        """Return the row of each machine id; -1 for one that is not here."""
        return positions(self.id, ids)

    def take(self, at: Index) -> "MachineRows":
        """Return the rows at these ascending positions."""
        return MachineRows.trusted(
            self.id[at],
            self.capacity[at],
            self.used[at],
            self.sequence[at],
            self.revision[at],
            self.state[at],
        )

    def after_commit(self, granted: Mask, touched: Mask, used: Amounts) -> "MachineRows":
        """Return the rows as a commit leaves them.

        `granted` (machines,) marks where a claim was granted, which raises the sequence; `touched`
        (machines,) marks all rows that change, which raises the revision; `used` is the new use.
        """
        return MachineRows.trusted(
            self.id,
            self.capacity,
            used,
            self.sequence + granted,
            self.revision + touched,
            self.state,
        )

    @classmethod
    def trusted(
        cls,
        id: Ids,  # noqa: A002 - the column's name
        capacity: Amounts,
        used: Amounts,
        sequence: Sequences,
        revision: Sequences,
        state: States,
    ) -> "MachineRows":
        """Return rows of these columns, frozen but not checked; the caller has checked them."""
        freeze(id, capacity, used, sequence, revision, state)
        rows = object.__new__(cls)
        vars(rows).update(
            id=id, capacity=capacity, used=used, sequence=sequence, revision=revision, state=state
        )
        return rows

    @classmethod
    def empty(cls, capacity: Amounts) -> "MachineRows":
        """Return open, unused machines with ids from 1 in the order of `capacity`."""
        machines = len(capacity)
        return cls(
            id=np.arange(1, machines + 1, dtype=np.int64),
            capacity=capacity.astype(np.int64),
            used=np.zeros((machines, KINDS), dtype=np.int64),
            sequence=np.zeros(machines, dtype=np.int64),
            revision=np.zeros(machines, dtype=np.int64),
            state=np.zeros(machines, dtype=np.int8),
        )

    @classmethod
    def none(cls) -> "MachineRows":
        """Return no rows."""
        return cls.empty(np.zeros((0, KINDS), dtype=np.int64))


@dataclass(frozen=True, eq=False)
class Machines:
    """Machines to be added to a cell: what a trace loader returns and a store accepts."""

    names: tuple[str, ...]
    capacity: Amounts
    attributes: Mapping[str, Sequence[str | None]]
    """By attribute name, one value for each machine; None if it lacks the attribute."""

    def __post_init__(self) -> None:
        assert self.capacity.shape == (len(self.names), KINDS)
        assert (self.capacity >= 0).all()
        assert all(len(values) == len(self.names) for values in self.attributes.values())

    def __len__(self) -> int:
        return len(self.names)

    def part(self, rows: slice) -> "Machines":
        """Return the machines in a slice of rows."""
        attributes = {name: values[rows] for name, values in self.attributes.items()}
        return Machines(self.names[rows], self.capacity[rows], attributes)


@dataclass(frozen=True)
class Catalogue:
    """Attribute names and values interned as integers, so that constraints become masks.

    An attribute's position in `names` is its column in an array of codes. A value's code is its
    position in `values[column]` plus one. Code 0 means that a machine lacks the attribute.
    """

    names: tuple[str, ...] = ()
    values: tuple[tuple[str, ...], ...] = ()

    def column(self, name: str) -> int | None:
        """Return the attribute's column, or None if no machine of the cell has it."""
        return self.names.index(name) if name in self.names else None

    def codes(self, column: int, values: Sequence[str]) -> Codes:
        """Return the codes of the given values, without those that no machine has."""
        known = self.values[column]
        return np.array([known.index(v) + 1 for v in values if v in known], dtype=np.int32)

    def value(self, column: int, code: int) -> str | None:
        """Return the value that a code stands for; None for code 0."""
        return self.values[column][code - 1] if code else None

    def encode(self, machines: Machines) -> tuple["Catalogue", Codes]:
        """Return this catalogue extended by the machines' attributes, and the machines' codes."""
        names = (*self.names, *(n for n in sorted(machines.attributes) if n not in self.names))
        tables = [dict.fromkeys(values) for values in self.values]
        tables += [{} for _ in range(len(names) - len(tables))]
        codes = np.zeros((len(machines), len(names)), dtype=np.int32)
        for column, name in enumerate(names):
            if name not in machines.attributes:
                continue
            table = tables[column]
            table.update(dict.fromkeys(v for v in machines.attributes[name] if v is not None))
            code = {value: number for number, value in enumerate(table, start=1)}
            codes[:, column] = [0 if v is None else code[v] for v in machines.attributes[name]]
        return Catalogue(names, tuple(tuple(table) for table in tables)), codes


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The whole cell at one moment, immutable."""

    rows: MachineRows
    names: tuple[str, ...]
    catalogue: Catalogue
    codes: Codes
    mark: int
    """Low-water mark: every change by a transaction below it is in these rows."""
    generation: int
    """Raised when machines are added or attributes change, which `Changes` do not carry."""

    def __post_init__(self) -> None:
        assert len(self.names) == len(self.rows) == len(self.codes)
        assert self.codes.shape[1] == len(self.catalogue.names)
        freeze(self.codes)


@dataclass(frozen=True, eq=False)
class Changes:
    """The rows that changed since a mark, and the mark for the next read.

    Two reads may return the same row; a view keeps the copy with the higher revision.
    """

    rows: MachineRows
    mark: int
    generation: int
