"""A timer: says when something that is done every so often is due.

Goal     Let one loop do several things, each at its own pace, without threads.
Promise  Due at once the first time; never due twice within its interval, or, given chance, within
         three quarters of it: processes that began together do not stay in step.
Source   the periodic chores of a scheduler process (rescue, wake, report).
"""

import numpy as np

from omega.clock import Clock

SHORTEST = 0.75
"""Share of an interval after which it may be over, if chance has a say."""


class Timer:
    """Counts an interval by a clock."""

    def __init__(
        self, clock: Clock, interval_ms: int, rng: np.random.Generator | None = None
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._interval_s = interval_ms / 1_000
        self._next = clock.now()

    def due(self) -> bool:
        """Say whether it is time, and if so begin the next interval."""
        now = self._clock.now()
        if now < self._next:
            return False
        share = 1.0 if self._rng is None else self._rng.uniform(SHORTEST, 1.0)
        self._next = now + self._interval_s * share
        return True
