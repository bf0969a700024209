"""What every way of synchronising does: bring one view up to date and say what it took.

Goal     Make freshness a seam: full, delta and partial reads stand in for one another.
Promise  One refresher serves one view. Each refresh is one `ViewRefreshed`; ages are by the clock
         that was passed in, from the moment at which the previous read began.
Source   the synchronisation seam (ARCHITECTURE.md); staleness after ParSync.
"""

from typing import Protocol

from omega.cell.view import View
from omega.clock import Clock
from omega.events import Sink, ViewRefreshed


class Refresher(Protocol):
    """Brings a scheduler's view up to date."""

    def refresh(self, view: View | None) -> View:
        """Return the view as fresh as this way of synchronising makes it.

        It may be the same object, patched, or a new one; None asks for a first view. Raises
        StoreUnavailable, and BadInput if it cannot synchronise as it was told; then the view is as
        it was.
        """
        ...

    def close(self) -> None:
        """Give back what it holds at the store; harmless when repeated. Raises StoreUnavailable."""
        ...


class Stopwatch:
    """Times refreshes and reports them."""

    def __init__(self, clock: Clock, sink: Sink) -> None:
        self._clock = clock
        self._sink = sink
        self._read_at: float | None = None

    def now(self) -> float:
        """Return the time by the clock that was passed in."""
        return self._clock.now()

    def report(self, began: float, *, rows: int, full: bool, age_s: float | None = None) -> None:
        """Emit a refresh that began then; later ages count from its beginning.

        The age that the view had reached is the time since the last one, if not given.
        """
        if age_s is None:
            age_s = 0.0 if self._read_at is None else began - self._read_at
        self._read_at = began
        self._sink(ViewRefreshed(rows, age_s, self._clock.now() - began, full))
