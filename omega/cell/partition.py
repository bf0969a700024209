"""Parts of a cell: machines that are read together, apart from the others.

Goal     Let several schedulers divide a cell and read its parts in turn.
Promise  A machine's part depends only on its id, here and in Postgres. Each part has about the same
         share of all machines and of any range of ids, such as a rack or machines bought together.
Source   ParSync (USENIX ATC 2021), partitioned synchronisation; Knuth, The Art of Computer
         Programming, section 6.4, multiplicative hashing.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from omega.model.arrays import Ids, Index, Mask

PARTS_MAX: Final = 1_024
_GOLDEN: Final = 2_654_435_761
"""2^32 divided by the golden ratio: its multiples spread consecutive ids most evenly."""


def part_of(machine: Ids, parts: int) -> Index:
    """Return the part of each machine id, from 0 to `parts` - 1."""
    high = (machine * _GOLDEN & 0xFFFF_FFFF) >> 16
    return np.asarray(high % parts, dtype=np.intp)


@dataclass(frozen=True)
class Parts:
    """Some of the `of` parts into which a cell is divided."""

    numbers: tuple[int, ...]
    of: int

    def __post_init__(self) -> None:
        assert 1 <= self.of <= PARTS_MAX
        assert all(0 <= number < self.of for number in self.numbers)

    def hold(self, machine: Ids) -> Mask:
        """Return which machine ids lie in one of these parts."""
        named = np.zeros(self.of, dtype=np.bool_)
        named[list(self.numbers)] = True
        return np.asarray(named[part_of(machine, self.of)])


WHOLE: Final = Parts((0,), 1)
