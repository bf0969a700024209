"""Arrays on the wire: numpy arrays here, Postgres' binary formats on the other side.

Goal     Send and receive thousands of numbers a call without a Python object for each.
Promise  One-dimensional arrays without nulls go both ways; machine rows come as one packed value. A
         number that is too wide for its type raises BadInput.
Source   PostgreSQL's array_send and int4send; docs/decisions/0008-packed-rows.md.
"""

from struct import Struct
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from psycopg import Connection
from psycopg.adapt import Buffer, Dumper, Loader
from psycopg.pq import Format

from omega.errors import BadInput
from omega.model.machines import MachineRows
from omega.model.resources import KINDS

MACHINE = np.dtype(
    [
        ("id", ">i4"),
        ("capacity", ">i4", (KINDS,)),
        ("sequence", ">i8"),
        ("revision", ">i8"),
        ("state", ">i4"),
        ("used", ">i4", (KINDS,)),
    ]
)
"""A packed machine row, as the table stores it: `packed_capacity`, then `packed_use`."""

_WORD = np.dtype(">i4")
_WORDS = MACHINE.itemsize // _WORD.itemsize
_LOW = 0xFFFFFFFF


def _place(name: str) -> int:
    """Return the position, in words, of a field in a row."""
    assert MACHINE.fields is not None
    return MACHINE.fields[name][1] // _WORD.itemsize


_ID, _CAPACITY, _SEQUENCE, _REVISION, _STATE, _USED = map(
    _place, ("id", "capacity", "sequence", "revision", "state", "used")
)

_HEADER = Struct(">iiI")
"""The number of dimensions, whether there are nulls, and the elements' type."""
_SIDE = Struct(">ii")
"""The length of one dimension, and its first index."""


def _elements(wire: str) -> np.dtype[Any]:
    return np.dtype([("size", ">i4"), ("value", wire)])


class Small:
    """An array parameter of type smallint[]; siblings for integer[] and bigint[]."""

    element_oid = 21
    array_oid = 1005
    elements = _elements(">i2")

    def __init__(self, values: ArrayLike) -> None:
        self.values = np.asarray(values)


class Int(Small):
    """An array parameter of type integer[]."""

    element_oid = 23
    array_oid = 1007
    elements = _elements(">i4")


class Big(Small):
    """An array parameter of type bigint[]."""

    element_oid = 20
    array_oid = 1016
    elements = _elements(">i8")


_KINDS_OF_ARRAY: tuple[type[Small], ...] = (Small, Int, Big)


class _ArrayDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Small) -> bytes:
        count = len(obj.values)
        if count == 0:
            return _HEADER.pack(0, 0, obj.element_oid)
        wire = obj.elements["value"]
        body = np.empty(count, obj.elements)
        body["size"] = wire.itemsize
        body["value"] = obj.values
        # numpy truncates numbers that are too wide
        if not np.can_cast(obj.values.dtype, wire) and (body["value"] != obj.values).any():
            raise BadInput(f"a number does not fit {8 * wire.itemsize} bits")
        return _HEADER.pack(1, 0, obj.element_oid) + _SIDE.pack(count, 1) + body.tobytes()


class _ArrayLoader(Loader):
    format = Format.BINARY
    elements = Int.elements

    def load(self, data: Buffer) -> NDArray[np.int64]:
        dimensions, nulls, _ = _HEADER.unpack_from(data)
        if dimensions == 0:
            return np.zeros(0, dtype=np.int64)
        assert not nulls, "arrays with nulls do not come this way"
        start = _HEADER.size + dimensions * _SIDE.size
        return np.frombuffer(data, self.elements, offset=start)["value"].astype(np.int64)


def register(connection: Connection[Any]) -> None:
    """Let a connection send `Small`, `Int` and `Big`, and return such arrays as int64 arrays."""
    for kind in _KINDS_OF_ARRAY:
        dumper = type(f"{kind.__name__}Dumper", (_ArrayDumper,), {"oid": kind.array_oid})
        loader = type(f"{kind.__name__}Loader", (_ArrayLoader,), {"elements": kind.elements})
        connection.adapters.register_dumper(kind, dumper)
        connection.adapters.register_loader(kind.array_oid, loader)


def unpack_machines(packed: Buffer) -> MachineRows:
    """Return the rows in packed bytes, ascending by id; each kind's amounts are contiguous."""
    # As words, which have one type: numpy copies and transposes them faster than mixed fields.
    rows = np.frombuffer(packed, _WORD).reshape(-1, _WORDS)
    if (rows[1:, _ID] < rows[:-1, _ID]).any():
        # Pages come in order, and so do most rows: a stable sort uses that and is the fastest.
        rows = rows.take(np.argsort(rows[:, _ID].astype(np.int64), kind="stable"), axis=0)
    words = np.empty((_WORDS, len(rows)), dtype=np.int64)
    words[...] = rows.T
    return MachineRows(
        id=words[_ID],
        capacity=words[_CAPACITY : _CAPACITY + KINDS].T,
        used=words[_USED : _USED + KINDS].T,
        sequence=_long(words, _SEQUENCE),
        revision=_long(words, _REVISION),
        state=words[_STATE].astype(np.int8),
    )


def _long(words: NDArray[np.int64], place: int) -> NDArray[np.int64]:
    both: NDArray[np.int64] = words[place] << 32 | words[place + 1] & _LOW
    return both
