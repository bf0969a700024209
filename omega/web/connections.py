"""The connections to the page: how many there are, and how long one may wait with its request.

Goal     Strangers who connect and send nothing, or half of a request, shut nobody out.
Promise  There are at most `connections_max` connections. One more takes the place of the one that
         has waited longest for a request, or is closed itself if none waits. A request that is not
         received whole within `request_s` seconds, and a connection without one, are closed.
         Everything here runs in the server's event loop.
Source   uvicorn's protocol for HTTP/1.1; the attack "Slowloris".
"""

import asyncio
from collections.abc import Callable

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle


class Connections:
    """All open connections."""

    def __init__(
        self, tell: Callable[[str], None], *, connections_max: int, request_s: float
    ) -> None:
        self._tell = tell
        self._connections_max = connections_max
        self._request_s = request_s
        self._open: set[Connection] = set()
        self._waiting: dict[Connection, asyncio.TimerHandle] = {}
        """Those without a whole request, the longest wait first, and what will close each."""

    def add(self, new: "Connection") -> None:
        """Note a new connection, and close one if there are too many."""
        self._open.add(new)
        self.note(new)
        if len(self._open) > self._connections_max:
            self._tell(
                f"a connection is closed: there are {self._connections_max:,} others, and it waited"
                " longest for a request"
            )
            self._close(next(iter(self._waiting)))

    def note(self, one: "Connection") -> None:
        """Note whether a connection waits for a request."""
        if one not in self._open:
            return
        if not one.waits:
            self._stop_waiting(one)
        elif one not in self._waiting:
            self._waiting[one] = one.loop.call_later(self._request_s, self._close, one)

    def forget(self, one: "Connection") -> None:
        """Note that a connection is closed."""
        self._open.discard(one)
        self._stop_waiting(one)

    def _stop_waiting(self, one: "Connection") -> None:
        timer = self._waiting.pop(one, None)
        if timer is not None:
            timer.cancel()

    def _close(self, one: "Connection") -> None:
        self.forget(one)
        one.transport.abort()


class Connection(H11Protocol):
    """One connection; `bounded` makes it one of some connections."""

    among: Connections

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin; there may be too many."""
        super().connection_made(transport)
        self.among.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self.among.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read; the request may be whole now."""
        super().data_received(data)
        self.among.note(self)

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self.among.note(self)

    @property
    def waits(self) -> bool:
        """Return whether it has no whole request that is still to be answered."""
        cycle: RequestResponseCycle | None = self.cycle  # none before the first request
        return cycle is None or cycle.response_complete or cycle.more_body


def bounded(among: Connections) -> type[Connection]:
    """Return the class of connections that are among these."""

    class Bounded(Connection):
        pass

    Bounded.among = among
    return Bounded
