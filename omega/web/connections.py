"""The connections to the page: how many there are, and how long one may keep the server waiting.

Goal     Strangers who connect and send nothing, or half of a request, or who do not read what they
         asked for, shut nobody out.
Promise  A connection waits while it has no whole request that is still to be answered, and while so
         much of an answer is unread that no more can be written. There are at most
         `connections_max` connections. One more takes the place of the one that has waited longest,
         those with unread answers after the others; it is closed itself if no other waits. A
         connection that waits for `request_s` seconds is closed, unless it has read TAKEN_MIN bytes
         of an answer meanwhile, or the rest of it. Everything here runs in the server's event loop.
Source   uvicorn's protocol for HTTP/1.1; the attacks "Slowloris" and "Slow Read".
"""

import asyncio
from collections.abc import Callable
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

TAKEN_MIN: Final = 10_000
"""Bytes of an answer that a slow reader takes in `request_s` seconds."""


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
        """Those that wait, the longest wait first, and what will end each wait."""

    def add(self, new: "Connection") -> None:
        """Note a new connection, and close one if there are too many."""
        self._open.add(new)
        self.note(new)
        if len(self._open) > self._connections_max:
            self._tell(
                f"a connection is closed: there are {self._connections_max:,} others, and it waited"
                " longest"
            )
            others = [one for one in self._waiting if one is not new]
            self._close(min(others, key=lambda one: one.unread > 0, default=new))

    def note(self, one: "Connection") -> None:
        """Note whether a connection waits."""
        if one not in self._open:
            return
        if not one.waits:
            self._stop_waiting(one)
        elif one not in self._waiting:
            self._waiting[one] = one.loop.call_later(
                self._request_s, self._end_wait, one, one.unread
            )

    def forget(self, one: "Connection") -> None:
        """Note that a connection is closed."""
        self._open.discard(one)
        self._stop_waiting(one)

    def _stop_waiting(self, one: "Connection") -> None:
        timer = self._waiting.pop(one, None)
        if timer is not None:
            timer.cancel()

    def _end_wait(self, one: "Connection", unread: int) -> None:
        """Close a connection, unless it has read enough since it began to wait with `unread`."""
        self._stop_waiting(one)
        if unread and unread - one.unread >= min(unread, TAKEN_MIN):
            self.note(one)
        else:
            self._close(one)

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

    def pause_writing(self) -> None:
        """Wait until what was written is read."""
        super().pause_writing()
        self.among.note(self)

    def resume_writing(self) -> None:
        """Go on: most of what was written is read."""
        super().resume_writing()
        self.among.note(self)

    @property
    def waits(self) -> bool:
        """Whether it has no whole request that is still to be answered, or reads no answer."""
        cycle: RequestResponseCycle | None = self.cycle  # none before the first request
        has_none = cycle is None or cycle.response_complete or cycle.more_body
        return has_none or bool(self.flow.write_paused)

    @property
    def unread(self) -> int:
        """How many bytes of answers are not sent yet, because the other side has not read."""
        return int(self.transport.get_write_buffer_size())


def bounded(among: Connections) -> type[Connection]:
    """Return the class of connections that are among these."""

    class Bounded(Connection):
        pass

    Bounded.among = among
    return Bounded
