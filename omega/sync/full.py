"""Full synchronisation: read the whole cell each time.

Goal     The simplest refresh: the one that the paper simulates, and the baseline for the others.
Promise  Each refresh returns a new view that does not depend on the one before.
Source   Omega (EuroSys 2013), section 3.4: a scheduler starts from a fresh copy of the cell.
"""

import numpy as np

from omega.cell.view import View
from omega.clock import Clock
from omega.events import Sink
from omega.store.protocols import ViewSource
from omega.sync.refresher import RefreshTimer


class FullRefresher:
    """Reads every machine in each refresh."""

    def __init__(self, store: ViewSource, clock: Clock, sink: Sink) -> None:
        self._store = store
        self._timer = RefreshTimer(clock, sink)

    def refresh(self, view: View | None) -> View:
        """Return a new view of the whole cell."""
        began = self._timer.now()
        new = View(self._store.snapshot())
        new.parts_read_s = np.array([began])
        self._timer.report(began, rows=len(new), full=True)
        return new

    def close(self) -> None:
        """Do nothing: reading takes no lease."""
