"""The interface of every way to synchronise: bring one view up to date and report it.

Goal     Make full, delta and partitioned reads interchangeable.
Promise  One refresher serves one view. Each refresh that reads emits one `ViewRefreshed`. Ages
         count from the moment at which the previous read began, by the clock that was passed in.
Source   the synchronisation seam (ARCHITECTURE.md); staleness after ParSync.
"""

from typing import Protocol

from omega.cell.view import View
from omega.clock import Clock
from omega.events import Sink, ViewRefreshed


class Refresher(Protocol):
    """Brings a scheduler's view up to date."""

    def refresh(self, view: View | None) -> View:
        """Return the view, as fresh as this way of synchronising makes it.

        The result may be the same object, patched, or a new one; None requests a first view. Raises
        StoreUnavailable, and BadInput if another process holds the turn that it was given; then the
        view is unchanged.
        """
        ...

    def close(self) -> None:
        """Give back what it leases from the store; harmless when repeated.

        Raises StoreUnavailable.
        """
        ...


class RefreshTimer:
    """Measures refreshes and reports them."""

    def __init__(self, clock: Clock, sink: Sink) -> None:
        self._clock = clock
        self._sink = sink
        self._read_at: float | None = None

    def now(self) -> float:
        """Return the time by the clock that was passed in."""
        return self._clock.now()

    def report(self, began: float, *, rows: int, full: bool, age_s: float | None = None) -> None:
        """Emit a `ViewRefreshed` for a refresh that began at `began` and ends now.

        `age_s` is the age that the view had reached; if not given, the time since the beginning of
        the previous refresh.
        """
        if age_s is None:
            age_s = 0.0 if self._read_at is None else began - self._read_at
        self._read_at = began
        self._sink(ViewRefreshed(rows, age_s, self._clock.now() - began, full))
