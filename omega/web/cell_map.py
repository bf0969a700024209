"""The map of machines: a few bytes each, and what of it has changed.

Goal     Show 100,000 machines in a browser that is told only what changed.
Promise  A map has a version; each delta leads from one version to the next. What changed by less
         than half a percent is no change.
Source   docs/decisions/0052-the-page.md.
"""

from base64 import b64encode
from dataclasses import dataclass
from struct import Struct
from typing import Final

import numpy as np
from numpy.typing import NDArray

from omega.cell.view import View
from omega.model.arrays import Amounts, Ids, Index
from omega.model.resources import DEVICES, Kind

LAYERS: Final = (
    ("cpu", slice(Kind.CPU_MILLI, Kind.CPU_MILLI + 1)),
    ("memory", slice(Kind.MEMORY_MIB, Kind.MEMORY_MIB + 1)),
    ("disk", slice(Kind.DISK_MIB, Kind.DISK_MIB + 1)),
    ("gpu", DEVICES),
)
"""What a machine's use is shown of, and the columns of amounts that this is."""
FULL: Final = 200
"""A level is the used share in half percents, so that FULL is all of it ..."""
ABOVE: Final = 254
"""... more than the capacity is in use ..."""
NONE: Final = 255
"""... or the machine has none of it."""
WIDTH: Final = len(LAYERS) + 1
"""Bytes of one machine: its state, then its levels."""

_HEADER: Final = Struct("<IIII")
"""Machines, number of the map, version, bytes of a machine."""

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Delta:
    """The machines that look different now."""

    number: int
    """Of the map ..."""
    version: int
    """... and its version with this delta."""
    at: Index
    looks: Bytes
    """(changed machines, WIDTH)."""

    def row(self) -> dict[str, object]:
        """Return the delta as JSON types: positions and looks in base64, little-endian."""
        return {
            "map": self.number,
            "version": self.version,
            "at": b64encode(self.at.astype("<u4").tobytes()).decode(),
            "looks": b64encode(self.looks.tobytes()).decode(),
        }


class CellMap:
    """How all machines look: their states, and the use of each kind."""

    def __init__(self, view: View, number: int) -> None:
        """`number` tells maps of one watcher apart: a new one is begun when machines are added."""
        self._id = view.id.astype("<u4")
        self._looks = looks_of(view.capacity, view.free, view.state)
        self._number = number
        self._version = 0

    def __len__(self) -> int:
        return len(self._id)

    def catch_up(self, view: View, machine: Ids) -> Delta | None:
        """Bring these machines up to date; return how that changes their looks, None if not."""
        at = view.where(machine)
        at = np.unique(at[at >= 0])
        looks = looks_of(view.capacity[at], view.free[at], view.state[at])
        changed = (looks != self._looks[at]).any(axis=1)
        if not changed.any():
            return None
        self._looks[at[changed]] = looks[changed]
        self._version += 1
        return Delta(self._number, self._version, at[changed], looks[changed])

    def packed(self) -> bytes:
        """Return the map: a header, all ids, then all looks, little-endian."""
        header = _HEADER.pack(len(self), self._number, self._version & 0xFFFFFFFF, WIDTH)
        return header + self._id.tobytes() + self._looks.tobytes()


def looks_of(capacity: Amounts, free: Amounts, state: NDArray[np.int8]) -> Bytes:
    """Return how machines look: (machines, WIDTH)."""
    looks = np.empty((len(state), WIDTH), dtype=np.uint8)
    looks[:, 0] = state
    for layer, (_, columns) in enumerate(LAYERS, start=1):
        has = capacity[:, columns].sum(axis=1)
        used = has - free[:, columns].sum(axis=1)
        level = np.ceil(used * FULL / np.maximum(has, 1)).clip(0, FULL)
        level[used > has] = ABOVE
        level[(has == 0) & (used <= 0)] = NONE
        looks[:, layer] = level
    return looks
