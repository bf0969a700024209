"""Parts of a cell: machines that are read together, apart from the others.

Goal     Let several schedulers share out what they keep fresh.
Promise  A machine's part follows from its id alone, here as in Postgres. Each part has a like
         share of the machines, and of any run of neighbours: a rack, or a type bought at once.
Source   ParSync (USENIX ATC 2021), partitioned synchronisation; Knuth, The Art of Computer
         Programming, section 6.4, multiplicative hashing.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from omega.model.arrays import Ids, Index, Mask

PARTS_MAX: Final = 1_024
_GOLDEN: Final = 2_654_435_761
"""2^32 divided by the golden ratio: its multiples spread neighbours as evenly as can be."""


def part_of(machine: Ids, parts: int) -> Index:
    """Return in which of so many parts each machine lies, from 0."""
    high = (machine * _GOLDEN & 0xFFFF_FFFF) >> 16
    return np.asarray(high % parts, dtype=np.intp)


@dataclass(frozen=True)
class Parts:
    """Some of the parts into which a cell is divided."""

    numbers: tuple[int, ...]
    of: int

    def __post_init__(self) -> None:
        assert 1 <= self.of <= PARTS_MAX
        assert all(0 <= number < self.of for number in self.numbers)

    def hold(self, machine: Ids) -> Mask:
        """Say which machines lie in one of them."""
        named = np.zeros(self.of, dtype=np.bool_)
        named[list(self.numbers)] = True
        return np.asarray(named[part_of(machine, self.of)])


WHOLE: Final = Parts((0,), 1)
