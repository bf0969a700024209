"""A timer: reports when periodic work is due.

Goal     Let one loop do several kinds of periodic work, each at its own interval, without threads.
Promise  It is due at once the first time, and never twice within an interval. With a random
         generator each interval is shortened by up to a quarter, so that processes that began
         together do not stay synchronised.
Source   the periodic work of a scheduler process (rescue, wake, report).
"""

import numpy as np

from omega.clock import Clock

SHORTEST = 0.75
"""The smallest share of an interval that a random generator may choose."""


class Timer:
    """Measures intervals by a clock."""

    def __init__(
        self, clock: Clock, interval_ms: int, rng: np.random.Generator | None = None
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._interval_s = interval_ms / 1_000
        self._next = clock.now()

    def due(self) -> bool:
        """Return whether the interval is over, and if so begin the next one."""
        now = self._clock.now()
        if now < self._next:
            return False
        share = 1.0 if self._rng is None else self._rng.uniform(SHORTEST, 1.0)
        self._next = now + self._interval_s * share
        return True
