"""Patience with a store that is away: the same call again, with growing delay.

Goal     Outlive a restart of the database without a special case in any loop.
Promise  Only StoreUnavailable is waited out; each failure is one `StoreFaltered`. Whoever calls
         must mean the same by the second call as by the first: commits do, by their transaction.
Source   lost replies are designed for (docs/decisions/0003-the-commit-rule.md); jittered back-off.
"""

import threading
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from omega.clock import Clock
from omega.config import Settings
from omega.errors import StoreUnavailable
from omega.events import Sink, StoreFaltered
from omega.lifecycle.backoff import delay_ms

_T = TypeVar("_T")


class Retry:
    """Repeats calls to a store until they are answered, or until the process is to stop."""

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
        """Return what the call returns, sooner or later.

        Raises StoreUnavailable only when the stop event is set: then nobody has time to wait.
        """
        failures = 0
        while True:
            try:
                return call()
            except StoreUnavailable as error:
                failures += 1
                self._sink(StoreFaltered(what, str(error)))
                if self._stop.is_set():
                    raise
                self._clock.sleep(self._delay_s(failures))

    def _delay_s(self, failures: int) -> float:
        initial_ms, longest_ms = self._settings.backoff_initial_ms, self._settings.backoff_max_ms
        return (
            delay_ms(failures, initial_ms=initial_ms, longest_ms=longest_ms, rng=self._rng) / 1_000
        )
