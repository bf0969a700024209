"""When an idle process looks for room for the jobs that it has parked for want of it.

Goal     Have a job whose tasks run in waves wait a small share of a wave for its next look.
Promise  The pause before a look is at most an eighth of the time since a job was parked, or one
         idle wait. When that would be longer than the interval of regular checks, these suffice.
Source   Nomad's blocked evaluations, which are tried again when capacity is freed.
"""

from typing import Final

from omega.clock import Clock

SHARE: Final = 1 / 8


class RoomWatch:
    """Measures the pauses since the newest parking."""

    def __init__(self, clock: Clock, longest_ms: int) -> None:
        """`longest_ms` is the interval of regular checks."""
        self._clock = clock
        self._longest_s = longest_ms / 1_000
        self._since_s: float | None = None
        self._looked_s = 0.0

    def begin(self) -> None:
        """Note that a job is parked for want of room."""
        self._since_s = self._looked_s = self._clock.now()

    def due(self) -> bool:
        """Return whether to look, and if so begin the next pause."""
        if self._since_s is None:
            return False
        now_s = self._clock.now()
        pause_s = SHARE * (now_s - self._since_s)
        if pause_s > self._longest_s:
            self._since_s = None
            return False
        if now_s - self._looked_s < pause_s:
            return False
        self._looked_s = now_s
        return True
