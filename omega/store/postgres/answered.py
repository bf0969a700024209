"""Connections that fail when their server is silent for too long.

Goal     Bound every wait for a server, also for one that is stopped or cut off.
Promise  Silence is counted in looks: the time in which this process was stopped does not count.
Source   psycopg's `Connection.wait`; docs/decisions/0009-errors-and-retries.md.
"""

from collections.abc import Generator
from threading import Event
from typing import Any, Final, TypeVar

import psycopg
from psycopg.rows import TupleRow

LOOK_S: Final = 0.1
"""The time between two looks at a silent connection."""
STOP_S: Final = 5.0
"""How long a process that is to end waits for a server that says nothing."""
_T = TypeVar("_T")


class AnsweredConnection(psycopg.Connection[TupleRow]):
    """A connection that fails when its server is silent for too long.

    The server keeps the time of statements. It cannot if it is stopped, or if what it says is
    lost on the way; TCP would then wait for hours.
    """

    silence_s_max: float = float("inf")
    stop: Event | None = None
    """While it is set, silence is borne for STOP_S at most."""
    gave_up_on: int | None = None
    """The number of the server's process that was silent for too long."""
    keeps_settings: bool = True
    """Whether the settings of this connection hold for all of its transactions."""

    def wait(
        self, gen: Generator[Any, Any, _T], interval: float = LOOK_S, timeout: float | None = None
    ) -> _T:
        """Run the generator of a call. Raises OperationalError, and closes, after a silence."""
        limit = {} if timeout is None else {"timeout": timeout}  # older versions have none
        return super().wait(self._heard(gen), interval, **limit)

    def _heard(self, gen: Generator[Any, Any, _T]) -> Generator[Any, Any, _T]:
        looks = 0
        try:
            waited_for = next(gen)
            while True:
                ready = yield waited_for
                looks = 0 if ready else looks + 1
                if looks * LOOK_S > self._silence_s_max():
                    self.gave_up_on = self.info.backend_pid
                    self.close()
                    raise psycopg.OperationalError("the server does not answer")
                waited_for = gen.send(ready)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]

    def _silence_s_max(self) -> float:
        if self.stop is not None and self.stop.is_set():
            return min(STOP_S, self.silence_s_max)
        return self.silence_s_max
