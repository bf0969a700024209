"""The ways to synchronise, by name.

Goal     Let an operator choose how a scheduler's view is brought up to date.
Promise  Each way is a `Refresher` that is made from a store, a clock and a sink.
Source   the synchronisation seam (ARCHITECTURE.md).
"""

from enum import Enum
from typing import Final

from omega.clock import Clock
from omega.events import Sink
from omega.store.protocols import SharedViewSource
from omega.sync.delta import DeltaRefresher
from omega.sync.full import FullRefresher
from omega.sync.partitioned import PartitionedRefresher
from omega.sync.refresher import Refresher
from omega.sync.turns import Turn, TurnSettings

ALONE: Final = Turn()


class Sync(Enum):
    """How a scheduler's view is brought up to date before each attempt."""

    DELTA = "delta"  # reads the rows that changed since the last refresh
    FULL = "full"  # reads every row, as in the Omega paper's simulators
    PARTITIONED = "partitioned"  # reads the rows that changed in the parts that are due

    def refresher(
        self,
        store: SharedViewSource,
        clock: Clock,
        sink: Sink,
        turn: Turn | TurnSettings = ALONE,
    ) -> Refresher:
        """Return a refresher of this kind; only a partitioned one uses the turn."""
        match self:
            case Sync.DELTA:
                return DeltaRefresher(store, clock, sink)
            case Sync.FULL:
                return FullRefresher(store, clock, sink)
            case Sync.PARTITIONED:
                turns = turn if isinstance(turn, Turn) else turn.turns(store, clock, sink)
                return PartitionedRefresher(store, clock, sink, turns)
