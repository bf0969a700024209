"""What tasks could be placed in, at one moment.

Goal     Compare the room of a cell at two moments.
Promise  A machine that is not open has no room. Nothing is changed.
Source   the parked jobs of omega.framework.waking.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from omega.model.arrays import Amounts


@dataclass(frozen=True)
class OpenRoom:
    """The room of all machines, each array (machines, kinds)."""

    free: Amounts
    """What is left."""
    capacity: Amounts
    """What would be left if nothing ran."""

    def lowest(self, other: Self) -> Self:
        """Return the lower of both for each machine and kind.

        If machines have joined between the two moments, they cannot be compared: this one is
        returned.
        """
        if self.free.shape != other.free.shape:
            return self
        return type(self)(
            np.minimum(self.free, other.free), np.minimum(self.capacity, other.capacity)
        )
