"""Signals: what a scheduler may know besides the rows of the cell.

Goal     Let placement mind how old its knowledge is, how long its queue waits, and how often it
         loses, as input and not as state of its own.
Promise  A frozen value that comes with the view, made before each placement; the same live and in
         virtual time. A view that nobody has told anything has one part, fresh.
Source   ParSync (USENIX ATC 2021): the age of a part and the delay of scheduling steer placement.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Seconds = NDArray[np.float64]

ALL_FRESH = np.zeros(1)
ALL_FRESH.flags.writeable = False


@dataclass(frozen=True, eq=False, slots=True)
class Signals:
    """How things stood when a placement began."""

    part_age_s: Seconds = field(default_factory=lambda: ALL_FRESH)
    """For each part of the view, the time since it was read; `View.part` says which part each
    machine lies in. Fresh rows that commits brought since then do not count."""
    head_age_s: float = 0.0
    """From the submission of the oldest job being placed until now: the scheduling delay."""
    claim_conflict_fraction: float = 0.0
    """Which share of this scheduler's claims was refused of late."""

    def __post_init__(self) -> None:
        self.part_age_s.flags.writeable = False


NO_SIGNALS = Signals()
