"""Machines: their rows as the judge sees them, what does not change about them, and snapshots.

Goal     Hold thousands of machines as a few arrays.
Promise  Rows are ascending by id and read-only; a machine is never forgotten, only marked gone.
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
    DRAINING = 1  # keeps what it has, takes nothing new
    DOWN = 2
    GONE = 3  # left the cell; the row stays so that deltas show it


DEAD = (MachineState.DOWN, MachineState.GONE)
"""States of machines on which nothing runs, whatever is still counted there."""


@dataclass(frozen=True, eq=False)
class MachineRows:
    """The rows of some machines at one moment, ascending by id."""

    id: Ids
    capacity: Amounts
    used: Amounts
    sequence: Sequences
    """Raised by each transaction that claims here and by changes of capacity or state."""
    revision: Sequences
    """Raised by every change of the row, ends of tasks included; orders two copies of it."""
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
        """Return the rows once a commit is applied that granted here, and changed those touched."""
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
        """Return rows of columns that were checked before: they are frozen, and that is all."""
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
    """Machines to be added to a cell: what a loader returns and a store takes."""

    names: tuple[str, ...]
    capacity: Amounts
    attributes: Mapping[str, Sequence[str | None]]
    """By attribute name, one value a machine; None where a machine has no such attribute."""

    def __post_init__(self) -> None:
        assert self.capacity.shape == (len(self.names), KINDS)
        assert (self.capacity >= 0).all()
        assert all(len(values) == len(self.names) for values in self.attributes.values())

    def __len__(self) -> int:
        return len(self.names)

    def part(self, rows: slice) -> "Machines":
        """Return some of them."""
        attributes = {name: values[rows] for name, values in self.attributes.items()}
        return Machines(self.names[rows], self.capacity[rows], attributes)


@dataclass(frozen=True)
class Catalogue:
    """Attribute names and values interned to integers, so that a constraint is a mask.

    An attribute's position in `names` is its column in an array of codes; a value's code is its
    position in `values[column]` plus one. Code 0 means that a machine lacks the attribute.
    """

    names: tuple[str, ...] = ()
    values: tuple[tuple[str, ...], ...] = ()

    def column(self, name: str) -> int | None:
        """Return the attribute's column, or None if no machine of the cell has it."""
        return self.names.index(name) if name in self.names else None

    def codes(self, column: int, values: Sequence[str]) -> Codes:
        """Return the codes of those of the values that some machine has."""
        known = self.values[column]
        return np.array([known.index(v) + 1 for v in values if v in known], dtype=np.int32)

    def value(self, column: int, code: int) -> str | None:
        """Return what a code stands for; None for code 0."""
        return self.values[column][code - 1] if code else None

    def encode(self, machines: Machines) -> tuple["Catalogue", Codes]:
        """Return the catalogue extended by the machines' attributes, and their codes."""
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
    """Raised when machines are added or attributes change: what a delta does not carry."""

    def __post_init__(self) -> None:
        assert len(self.names) == len(self.rows) == len(self.codes)
        assert self.codes.shape[1] == len(self.catalogue.names)
        freeze(self.codes)


@dataclass(frozen=True, eq=False)
class Changes:
    """The rows that changed since a mark, and the mark for the next time.

    Rows may repeat between two reads; whoever patches a view keeps the higher revision.
    """

    rows: MachineRows
    mark: int
    generation: int
