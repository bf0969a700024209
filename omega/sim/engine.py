"""Virtual time: events, one after the other.

Goal     Let hours pass in seconds, the same way each time.
Promise  Events come in order of time; at one moment in order of what they are, then of when they
         were asked for. Nothing else decides, so the same calls give the same run.
Source   docs/papers/omega.md, the event model; the order of what is simultaneous is our choice.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from heapq import heappop, heappush
from math import ceil, inf

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)

Sample = Callable[[int], None]
"""Told how many samples to take of what has not changed between them."""


class Order(IntEnum):
    """What comes first of what is due at one moment."""

    END = 0
    """Tasks end: their room is there for whoever decides at this moment."""
    MACHINE = 1
    """Machines fail, come back or change: nothing is lost that ends at this moment."""
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
        self._asked_for = 0
        self._sample: Sample = lambda _: None
        self._sample_s = inf
        self._next_sample_s = inf

    def at(self, time_s: float, order: Order, action: Callable[[], None]) -> None:
        """Have something done at a time that has not passed."""
        assert time_s >= self.now_s
        self._asked_for += 1
        heappush(self._events, (time_s, order, self._asked_for, action))

    def sample(self, every_s: float, take: Sample) -> None:
        """Have samples taken again and again, each as an event after all others of its moment."""
        self._sample, self._sample_s = take, every_s
        self._next_sample_s = self.now_s + every_s

    def run(self, horizon_s: float) -> None:
        """Execute events until one lies beyond the horizon; that one still is, as the last."""
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
        """Take the next sample, and those after it that lie before a moment."""
        samples = max(1, ceil((until_s - self._next_sample_s) / self._sample_s))
        self.now_s = self._next_sample_s + (samples - 1) * self._sample_s
        self._next_sample_s += samples * self._sample_s
        self.executed += samples
        self._sample(samples)


class EngineClock:
    """A clock that shows an engine's time; nobody sleeps by it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def now(self) -> float:
        """Return the seconds of virtual time that have passed."""
        return self._engine.now_s

    def sleep(self, seconds: float) -> None:
        """Refuse: whoever waits in virtual time asks for it by an effect."""
        raise AssertionError(f"somebody sleeps for {seconds} s in virtual time")

    def wall(self) -> datetime:
        """Return a made-up calendar time that moves with `now`."""
        return EPOCH + timedelta(seconds=self._engine.now_s)
