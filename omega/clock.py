"""The only module that reads the time.

Goal     Let every loop that waits run in real time, by hand in a test, or in virtual time.
Promise  `now` never decreases. A real sleep ends early when the stop event is set. Times that are
         compared between processes come from the database, never from here.
Source   trio's Clock; docs/decisions/0004-the-job-queue.md. tests/architecture/ bans the `time`
         module everywhere else.
"""

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """The time as a loop may read it."""

    def now(self) -> float:
        """Return seconds since some fixed moment; only differences mean anything."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait that long, or less if the loop is to end."""
        ...

    def wall(self) -> datetime:
        """Return the calendar time, only for timestamps in logs and reports."""
        ...


class RealClock:
    """The clock of the operating system; a stop event ends its sleeps early."""

    def __init__(self, stop: threading.Event | None = None) -> None:
        self._stop = stop if stop is not None else threading.Event()

    def now(self) -> float:
        """Return seconds of the monotonic clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait for the stop event, at most that long; return at once if `seconds` is negative."""
        self._stop.wait(max(0.0, seconds))

    def wall(self) -> datetime:
        """Return the calendar time in UTC."""
        return datetime.now(UTC)


class BootClock(RealClock):
    """A real clock that goes on while the machine sleeps, and counts alike in all its processes.

    Only Linux has it; agents need it, since their leases run out while a laptop is closed.
    """

    def now(self) -> float:
        """Return seconds since the machine's boot."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)


class ManualClock:
    """A clock that moves only when `advance` or `sleep` is called."""

    def __init__(self, now: float = 0.0) -> None:
        self._start = now
        self._now = now
        self.slept: list[float] = []

    def now(self) -> float:
        """Return the seconds that the clock has been moved to."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Advance at once and append the wait to `slept`."""
        self.slept.append(seconds)
        self.advance(max(0.0, seconds))

    def advance(self, seconds: float) -> None:
        """Move the clock forward."""
        assert seconds >= 0, "time does not go back"
        self._now += seconds

    def wall(self) -> datetime:
        """Return a made-up calendar time that moves with `now`."""
        return datetime(2000, 1, 1, tzinfo=UTC) + timedelta(seconds=self._now - self._start)
