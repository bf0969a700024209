"""The ways to synchronise, by name.

Goal     Let whoever runs a scheduler choose how its view stays fresh.
Promise  Each way is a `Refresher` that can be made from a store, a clock and a sink.
Source   the synchronisation seam (ARCHITECTURE.md).
"""

from enum import Enum

from omega.clock import Clock
from omega.events import Sink
from omega.store.base import CellStore
from omega.sync.delta import DeltaRefresher
from omega.sync.full import FullRefresher
from omega.sync.refresher import Refresher


class Sync(Enum):
    """How a scheduler's view is brought up to date before each attempt."""

    DELTA = "delta"  # the rows that changed since
    FULL = "full"  # every row, as in the Omega paper's simulators

    def refresher(self, store: CellStore, clock: Clock, sink: Sink) -> Refresher:
        """Make a refresher of this kind."""
        match self:
            case Sync.DELTA:
                return DeltaRefresher(store, clock, sink)
            case Sync.FULL:
                return FullRefresher(store, clock, sink)
