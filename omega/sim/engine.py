"""Virtual time: a queue of events, executed one after the other.

Goal     Simulate hours in seconds, reproducibly.
Promise  Events are executed in order of time, those of one moment by their `Order`, then in the
         order in which they were scheduled. So the same calls give the same run.
Source   docs/papers/omega.md, the event model; the order of what is simultaneous is our choice.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from heapq import heappop, heappush
from math import ceil, inf

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)

Sample = Callable[[int], None]
"""Is called with a number of samples to take, at the moment of the last one; nothing has changed
between them."""


class Order(IntEnum):
    """The order of events that are due at one moment."""

    END = 0
    """Tasks end first, so that decisions of the same moment find the room free."""
    MACHINE = 1
    """Machines fail, return or change; a task that ends at this moment is not lost."""
    ARRIVAL = 2
    OFFER = 3
    """An offer reaches a framework."""
    DECISION = 4
    RETRY = 5


class Engine:
    """A clock that jumps from event to event."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.executed = 0
        self._events: list[tuple[float, int, int, Callable[[], None]]] = []
        self._scheduled = 0
        self._sample: Sample = lambda _: None
        self._sample_s = inf
        self._next_sample_s = inf

    def at(self, time_s: float, order: Order, action: Callable[[], None]) -> None:
        """Schedule an action for a time that has not passed."""
        assert time_s >= self.now_s
        self._scheduled += 1
        heappush(self._events, (time_s, order, self._scheduled, action))

    def sample(self, every_s: float, take: Sample) -> None:
        """Take samples at intervals of whole seconds, so that their moments are exact.

        A sample is an event that comes last at its moment.
        """
        assert every_s == int(every_s)
        self._sample, self._sample_s = take, every_s
        self._next_sample_s = self.now_s + every_s

    def run(self, horizon_s: float) -> None:
        """Execute events up to the horizon, and as the last one the first event beyond it."""
        while self.now_s <= horizon_s:
            due_s = self._events[0][0] if self._events else inf
            if self._next_sample_s < due_s:
                self._take_samples(min(due_s, horizon_s))
            elif self._events:
                self.now_s, _, _, action = heappop(self._events)
                self.executed += 1
                action()
            else:
                return

    def _take_samples(self, until_s: float) -> None:
        """Take the next sample, and all further ones before a moment, in one call."""
        samples = max(1, ceil((until_s - self._next_sample_s) / self._sample_s))
        self.now_s = self._next_sample_s + (samples - 1) * self._sample_s
        self._next_sample_s += samples * self._sample_s
        self.executed += samples
        self._sample(samples)


class EngineClock:
    """A `Clock` that shows the engine's time and refuses to sleep."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def now(self) -> float:
        """Return the seconds of virtual time since the start."""
        return self._engine.now_s

    def sleep(self, seconds: float) -> None:
        """Raise AssertionError: code in virtual time waits by an effect."""
        raise AssertionError(f"somebody sleeps for {seconds} s in virtual time")

    def wall(self) -> datetime:
        """Return a made-up calendar time that advances with `now`."""
        return EPOCH + timedelta(seconds=self._engine.now_s)
