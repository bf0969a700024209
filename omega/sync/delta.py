"""Delta synchronisation: read only the rows that changed since the last time.

Goal     Make a refresh so cheap that every attempt can begin with one.
Promise  After a refresh the view has every transaction below its mark. New machines and attributes,
         which a delta does not carry, change the cell's generation and lead to a full read.
Source   docs/decisions/0011-low-water-marks.md.
"""

import numpy as np

from omega.cell.view import View
from omega.clock import Clock
from omega.events import Sink
from omega.store.protocols import ViewSource
from omega.sync.refresher import RefreshTimer


class DeltaRefresher:
    """Patches the view with the rows that changed; reads in full if the generation changed."""

    def __init__(self, store: ViewSource, clock: Clock, sink: Sink) -> None:
        self._store = store
        self._timer = RefreshTimer(clock, sink)

    def refresh(self, view: View | None) -> View:
        """Return the view, patched; a new view if there was none or the generation changed."""
        began = self._timer.now()
        if view is not None:
            changes = self._store.changes_since(view.mark)
            if changes.generation == view.generation:
                view.catch_up(changes)
                view.parts_read_s = np.array([began])
                self._timer.report(began, rows=len(changes.rows), full=False)
                return view
        view = View(self._store.snapshot())
        view.parts_read_s = np.array([began])
        self._timer.report(began, rows=len(view), full=True)
        return view

    def close(self) -> None:
        """Do nothing: reading takes no lease."""
