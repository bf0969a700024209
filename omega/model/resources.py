"""Resource kinds, declared once: columns, checks and array order follow this declaration.

Goal     One declaration of what a machine has, for arrays, columns and the commit.
Promise  Every amounts array and every table holds the kinds in the order of `Kind`.
Source   docs/decisions/0001-arrays-and-integers.md.
"""

from collections.abc import Mapping
from enum import IntEnum

import numpy as np

from omega.model.arrays import Amounts, freeze

GPU_SLICES = 1_000
"""Slices of one whole GPU: half a GPU is 500 slices of one device slot."""


class Kind(IntEnum):
    """What a machine has and a task needs; the name carries the unit."""

    CPU_MILLI = 0
    MEMORY_MIB = 1
    DISK_MIB = 2
    GPU_0 = 3
    GPU_1 = 4
    GPU_2 = 5
    GPU_3 = 6
    GPU_4 = 7
    GPU_5 = 8
    GPU_6 = 9
    GPU_7 = 10

    @property
    def column(self) -> str:
        """The kind's name in tables, specs and reports."""
        return self.name.lower()

    @property
    def is_device(self) -> bool:
        """Whether the kind is one GPU's slot."""
        return self >= Kind.GPU_0


KINDS = len(Kind)
COLUMNS = tuple(kind.column for kind in Kind)
DEVICES = slice(Kind.GPU_0, Kind.GPU_7 + 1)
"""The columns of an amounts array that are GPU slots."""
DEVICES_MAX = DEVICES.stop - DEVICES.start


def amounts(named: Mapping[str, int] | None = None, /, **more: int) -> Amounts:
    """Return one row of amounts, (kinds,), from amounts by column name; other kinds are zero.

    Raises KeyError for a name that is not a kind.
    """
    row = np.zeros(KINDS, dtype=np.int64)
    for name, amount in {**(named or {}), **more}.items():
        row[Kind[name.upper()]] = amount
    return row


def machine_capacity(cpu_milli: int, memory_mib: int, disk_mib: int = 0, gpus: int = 0) -> Amounts:
    """Return the capacity of a machine with that many whole GPUs, as one frozen row."""
    assert 0 <= gpus <= DEVICES_MAX
    row = amounts(cpu_milli=cpu_milli, memory_mib=memory_mib, disk_mib=disk_mib)
    row[DEVICES][:gpus] = GPU_SLICES
    freeze(row)
    return row


def named(row: Amounts) -> dict[str, int]:
    """Return the kinds of one row of amounts that are not zero, by column name."""
    return {kind.column: int(row[kind]) for kind in Kind if row[kind]}
