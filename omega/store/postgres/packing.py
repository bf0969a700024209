"""Arrays over the wire: numpy on this side, Postgres' binary formats on the other.

Goal     Move thousands of numbers a call without touching each in Python.
Promise  One-dimensional arrays without nulls, both ways; machine rows as one packed value. A number
         that is too wide for its type is BadInput.
Source   PostgreSQL's array_send and int4send; docs/decisions/0008-packed-rows.md.
"""

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
        ("state", ">i4"),
        ("sequence", ">i8"),
        ("revision", ">i8"),
        ("capacity", ">i4", (KINDS,)),
        ("used", ">i4", (KINDS,)),
    ]
)
"""A packed machine row, as the column `packed` of the table holds it."""

_HEADER = np.dtype([("dimensions", ">i4"), ("nulls", ">i4"), ("of", ">u4")])
_SIDE = np.dtype([("length", ">i4"), ("first", ">i4")])


class Small:
    """An array parameter of type smallint[]; siblings for integer[] and bigint[]."""

    element_oid = 21
    array_oid = 1005
    wire = ">i2"

    def __init__(self, values: ArrayLike) -> None:
        self.values = np.asarray(values)


class Int(Small):
    """An array parameter of type integer[]."""

    element_oid = 23
    array_oid = 1007
    wire = ">i4"


class Big(Small):
    """An array parameter of type bigint[]."""

    element_oid = 20
    array_oid = 1016
    wire = ">i8"


_KINDS_OF_ARRAY: tuple[type[Small], ...] = (Small, Int, Big)


def _elements(wire: str) -> np.dtype[Any]:
    return np.dtype([("size", ">i4"), ("value", wire)])


class _ArrayDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: Small) -> bytes:
        count = len(obj.values)
        if count == 0:
            return np.array((0, 0, obj.element_oid), _HEADER).tobytes()
        body = np.empty(count, _elements(obj.wire))
        body["size"] = body.dtype["value"].itemsize
        body["value"] = obj.values
        if not np.array_equal(body["value"], obj.values):  # numpy cuts off what is too wide
            raise BadInput(f"a number does not fit {8 * body.dtype['value'].itemsize} bits")
        header = np.array((1, 0, obj.element_oid), _HEADER).tobytes()
        return header + np.array((count, 1), _SIDE).tobytes() + body.tobytes()


class _ArrayLoader(Loader):
    format = Format.BINARY
    wire = ">i4"

    def load(self, data: Buffer) -> NDArray[np.int64]:
        raw = bytes(data)
        dimensions, nulls, _ = np.frombuffer(raw, _HEADER, count=1)[0]
        if dimensions == 0:
            return np.zeros(0, dtype=np.int64)
        assert not nulls, "arrays with nulls do not come this way"
        start = _HEADER.itemsize + int(dimensions) * _SIDE.itemsize
        return np.frombuffer(raw, _elements(self.wire), offset=start)["value"].astype(np.int64)


def register(connection: Connection[Any]) -> None:
    """Let this connection send `Small`, `Int`, `Big`, and return such arrays as int64 arrays."""
    for kind in _KINDS_OF_ARRAY:
        dumper = type(f"{kind.__name__}Dumper", (_ArrayDumper,), {"oid": kind.array_oid})
        loader = type(f"{kind.__name__}Loader", (_ArrayLoader,), {"wire": kind.wire})
        connection.adapters.register_dumper(kind, dumper)
        connection.adapters.register_loader(kind.array_oid, loader)


def unpack_machines(packed: Buffer) -> MachineRows:
    """Turn packed rows into machine rows, ascending by id."""
    table = np.frombuffer(packed, MACHINE)
    if (table["id"][1:] < table["id"][:-1]).any():
        table = table[np.argsort(table["id"])]
    return MachineRows(
        id=table["id"].astype(np.int64),
        capacity=table["capacity"].astype(np.int64),
        used=table["used"].astype(np.int64),
        sequence=table["sequence"].astype(np.int64),
        revision=table["revision"].astype(np.int64),
        state=table["state"].astype(np.int8),
    )
