"""The only module that reads the time.

Goal     Let every loop that waits run for real, by hand in a test, or in virtual time.
Promise  `now` never goes back. A real sleep ends early when the stop event is set. Times compared
         between processes never come from here: those are the database's.
Source   trio's Clock; docs/decisions/0004-the-job-queue.md. tests/architecture/ bans the `time`
         module everywhere else.
"""

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """What a loop may know of time."""

    def now(self) -> float:
        """Return seconds since some fixed moment; only differences mean anything."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait that long, or less when whoever drives the clock wants the loop to end."""
        ...

    def wall(self) -> datetime:
        """Return the calendar time, for the stamps of logs and reports alone."""
        ...


class RealClock:
    """The machine's own clock, whose sleeps a stop event cuts short."""

    def __init__(self, stop: threading.Event | None = None) -> None:
        self._stop = stop if stop is not None else threading.Event()

    def now(self) -> float:
        """Return seconds of the monotonic clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait for the stop event, at most that long; a time that is over is no wait at all."""
        self._stop.wait(max(0.0, seconds))

    def wall(self) -> datetime:
        """Return the calendar time in UTC."""
        return datetime.now(UTC)


class ManualClock:
    """A clock that moves only when told to: by `advance`, or by somebody's `sleep`."""

    def __init__(self, now: float = 0.0) -> None:
        self._start = now
        self._now = now
        self.slept: list[float] = []

    def now(self) -> float:
        """Return the seconds it was moved to."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Advance at once and note the wait in `slept`."""
        self.slept.append(seconds)
        self.advance(max(0.0, seconds))

    def advance(self, seconds: float) -> None:
        """Move forward."""
        assert seconds >= 0, "time does not go back"
        self._now += seconds

    def wall(self) -> datetime:
        """Return a made-up calendar time that moves with `now`."""
        return datetime(2000, 1, 1, tzinfo=UTC) + timedelta(seconds=self._now - self._start)
