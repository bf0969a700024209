"""How often what may be slow is read again.

Goal     Keep a page from being a load on the database, however large the queue has grown.
Promise  A read takes at most a twentieth of the time, and is no more frequent than its interval.
Source   docs/decisions/0052-the-page.md.
"""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from omega.clock import Clock

REST: Final = 20.0
"""A read of one second is followed by a rest of so many."""

_T = TypeVar("_T")


class Paced(Generic[_T]):
    """A value that is read again when it is due."""

    def __init__(self, clock: Clock, interval_s: float, first: _T) -> None:
        self._clock = clock
        self._interval_s = interval_s
        self._due_s = clock.now()
        self.value = first

    def read(self, read: Callable[[], _T]) -> _T:
        """Read it again if it is due; return the latest value."""
        began = self._clock.now()
        if began >= self._due_s:
            self.value = read()
            took_s = self._clock.now() - began
            self._due_s = began + max(self._interval_s, REST * took_s)
        return self.value
