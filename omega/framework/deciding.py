"""The report of a scheduler that decides, written by its heartbeat.

Goal     Tell a scheduler that takes long to decide from one that is dead.
Promise  While the main loop reports, nothing is written here. What is written has how long ago the
         main loop reported, as `deciding_s`. After `end`, nothing is written any more.
Source   docs/decisions/0005-events.md; omega.reports.processes.
"""

import threading
from collections.abc import Callable
from typing import Any, Final

from omega.clock import Clock
from omega.events import Event, ProcessReported
from omega.store.protocols import SchedulerStore

DECIDING_AFTER_S: Final = 4.0
"""Less than half of the time after which a process counts as silent."""


class DecidingReporter:
    """Writes the report of a process whose main loop is busy; it is a sink of its events."""

    def __init__(
        self, kind: str, replica: str, pid: int, facts: Callable[[], dict[str, Any]], clock: Clock
    ) -> None:
        self._kind = kind
        self._replica = replica
        self._pid = pid
        self._facts = facts
        self._clock = clock
        self._lock = threading.Lock()
        self._reported_s: float | None = None
        self._is_over = False

    def __call__(self, event: Event) -> None:
        """Note when the main loop reports."""
        if isinstance(event, ProcessReported):
            self._reported_s = self._clock.now()

    def report(self, store: SchedulerStore) -> None:
        """Write the report if the main loop has not for long. Raises StoreUnavailable."""
        with self._lock:
            since_s = self._reported_s
            if self._is_over or since_s is None:
                return
            deciding_s = self._clock.now() - since_s
            if deciding_s >= DECIDING_AFTER_S:
                facts = {**self._facts(), "deciding_s": deciding_s}
                store.report(self._kind, self._replica, pid=self._pid, facts=facts)

    def end(self) -> None:
        """Write no more; a report that is being written is waited for."""
        with self._lock:
            self._is_over = True
