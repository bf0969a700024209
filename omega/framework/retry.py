"""Retries of calls to a store that is unavailable, with growing delay.

Goal     Survive a restart of the database without a special case in any loop.
Promise  Only StoreUnavailable leads to a retry, and each failure emits one `StoreCallFailed`. Calls
         must be idempotent; a commit is, by the id of its transaction.
Source   docs/decisions/0003-the-commit-rule.md, on lost replies; jittered back-off.
"""

import threading
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from omega.clock import Clock
from omega.config import Settings
from omega.errors import StoreUnavailable
from omega.events import Sink, StoreCallFailed
from omega.lifecycle.backoff import delay_ms

_T = TypeVar("_T")


class Retry:
    """Repeats calls to a store until it answers, or until the process is to stop."""

    def __init__(
        self,
        clock: Clock,
        sink: Sink,
        settings: Settings,
        rng: np.random.Generator,
        stop: threading.Event,
    ) -> None:
        self._clock = clock
        self._sink = sink
        self._settings = settings
        self._rng = rng
        self._stop = stop

    def __call__(self, what: str, call: Callable[[], _T]) -> _T:
        """Call until the store answers; return what the call returns.

        Raises StoreUnavailable only if the stop event is set. `what` names the call in events.
        """
        failures = 0
        while True:
            try:
                return call()
            except StoreUnavailable as error:
                failures += 1
                self._sink(StoreCallFailed(what, str(error)))
                if self._stop.is_set():
                    raise
                self._clock.sleep(self._delay_s(failures))

    def _delay_s(self, failures: int) -> float:
        initial_ms, longest_ms = self._settings.backoff_initial_ms, self._settings.backoff_max_ms
        return (
            delay_ms(failures, initial_ms=initial_ms, longest_ms=longest_ms, rng=self._rng) / 1_000
        )
