"""Signals: what a scheduler may know besides the rows of the cell.

Goal     Let placement depend on the age of its view, the delay of its queue, its recent conflicts
         and what tasks of late asked for, as input and not as state of its own.
Promise  A frozen value that comes with the view, made before each placement; the same live and in
         virtual time. A view without signals has one part, of age 0.
Source   ParSync (USENIX ATC 2021): the age of a part and the delay of scheduling steer placement.
"""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from omega.cell.demand import NO_DEMAND, Demand
from omega.model.arrays import freeze

Seconds = NDArray[np.float64]

NOW: Final[Seconds] = np.zeros(1)
freeze(NOW)


class Signals(NamedTuple):
    """The signals at the moment at which a placement began."""

    now_s: float = 0.0
    """That moment, by the clock of the scheduler's process."""
    parts_read_s: Seconds = NOW
    """When each part of the view was read; `View.part` says which part each machine lies in."""
    head_age_s: float = 0.0
    """Time from the submission of the oldest job being placed until now: the scheduling delay."""
    claim_conflict_fraction: float = 0.0
    """The share of this scheduler's recent claims that was refused."""
    demand: Demand = NO_DEMAND
    """What the jobs that this scheduler saw lately ask for, if some have other constraints than
    others."""

    @property
    def part_age_s(self) -> Seconds:
        """The time since each part was read; fresh rows that came with outcomes do not count."""
        return self.now_s - self.parts_read_s


NO_SIGNALS: Final = Signals()
