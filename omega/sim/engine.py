"""Virtual time: events, one after the other.

Goal     Let hours pass in seconds, the same way each time.
Promise  Events come in order of time; at one moment in order of what they are, then of when they
         were asked for. Nothing else decides, so the same calls give the same run.
Source   docs/papers/omega.md, the event model; the order of what is simultaneous is our choice.
"""

from collections.abc import Callable
from enum import IntEnum
from heapq import heappop, heappush


class Order(IntEnum):
    """What comes first of what is due at one moment."""

    END = 0
    """Tasks end: their room is there for whoever decides at this moment."""
    MACHINE = 1
    """Machines fail, come back or change: nothing is lost that ends at this moment."""
    ARRIVAL = 2
    DECISION = 3
    RETRY = 4
    SAMPLE = 5
    """Figures are read when all else is done."""


class Engine:
    """A clock that jumps from event to event."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.executed = 0
        self._events: list[tuple[float, int, int, Callable[[], None]]] = []
        self._asked_for = 0

    def at(self, time_s: float, order: Order, action: Callable[[], None]) -> None:
        """Have something done at a time that has not passed."""
        assert time_s >= self.now_s
        self._asked_for += 1
        heappush(self._events, (time_s, order, self._asked_for, action))

    def run(self, horizon_s: float) -> None:
        """Execute events until one lies beyond the horizon; that one still is, as the last."""
        while self._events and self.now_s <= horizon_s:
            self.now_s, _, _, action = heappop(self._events)
            self.executed += 1
            action()
