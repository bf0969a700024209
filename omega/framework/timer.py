"""A timer: says when something that is done every so often is due.

Goal     Let one loop do several things, each at its own pace, without threads.
Promise  Due at once the first time; never due twice within its interval.
Source   the periodic chores of a scheduler process (rescue, wake, report).
"""

from omega.clock import Clock


class Timer:
    """Counts an interval by a clock."""

    def __init__(self, clock: Clock, interval_ms: int) -> None:
        self._clock = clock
        self._interval_s = interval_ms / 1_000
        self._next = clock.now()

    def due(self) -> bool:
        """Say whether it is time, and if so begin the next interval."""
        now = self._clock.now()
        if now < self._next:
            return False
        self._next = now + self._interval_s
        return True
