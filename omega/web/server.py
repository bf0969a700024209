"""The server of the page: one event loop for browsers, one thread that watches the cell.

Goal     Start and end cleanly, whatever is open.
Promise  It ends within GRACE_S once it is asked to, also with streams open. A failure of the
         watcher ends it. Connections and requests are bounded, and so are the lines that strangers
         cause in the log.
Source   uvicorn; docs/decisions/0052-the-page.md.
"""

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import uvicorn

from omega.clock import Clock
from omega.errors import BadInput
from omega.limits import LIMITS
from omega.store.protocols import ReaderStore
from omega.web.app import Page
from omega.web.asking import Asking
from omega.web.connections import Connections, bounded
from omega.web.guard import Token, is_loopback
from omega.web.seldom import Seldom
from omega.web.streams import Streams
from omega.web.watcher import INTERVAL_S, Watcher

TOKEN_MIN: Final = 32
"""Characters of a token: as many bits as a guesser cannot try."""
GRACE_S: Final = 1
SLOW_READER_MS: Final = 20_000
"""What was sent and is not taken by then ends the connection."""
HEADER_BYTES_MAX: Final = 16 * 2**10
REQUEST_S: Final = 10.0
"""How long a connection may wait for a request, or for its answers to be read."""
BACKLOG: Final = 64
"""Connections that are accepted in one turn of the loop, before too many are closed: all together
they stay below 1,024 open files."""
PORT_MAX: Final = 65_535

Tell = Callable[[str], None]


def checked_token(host: str, token: str | None) -> Token | None:
    """Return the token; raise BadInput if it is too short, or if the address demands one."""
    if token is None:
        if not is_loopback(host):
            raise BadInput(
                f"{host} can be reached from other machines, so that a token is needed:"
                " --token-file FILE, or OMEGA_WEB_TOKEN",
                field="--host",
            )
        return None
    if len(token) < TOKEN_MIN:
        raise BadInput(
            f"it has {len(token)} characters, and needs {TOKEN_MIN}:"
            " python3 -c 'import secrets; print(secrets.token_urlsafe(32))'",
            field="token",
        )
    return Token(token)


@contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """Yield a socket that listens; raise BadInput if it cannot."""
    try:
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise BadInput(f"{host} is no address of this machine: {error}", field="--host") from error
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # connections inherit it
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, SLOW_READER_MS)
        try:
            listener.bind(address)
            listener.listen(BACKLOG)
        except OSError as error:
            field = "--port"
            raise BadInput(f"cannot listen on {host}:{port}: {error.strerror}", field=field) from (
                error
            )
        yield listener


def address_of(listener: socket.socket, host: str) -> str:
    """Return the address to type into a browser."""
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{listener.getsockname()[1]}/"


@dataclass(frozen=True, kw_only=True)
class Serving:
    """What a server of the page is given."""

    listener: socket.socket
    host: str
    """The address that it listens on."""
    token: Token | None
    watched: ReaderStore
    """The store of the thread that watches ..."""
    asked: ReaderStore
    """... and that of requests for single things."""
    clock: Clock
    tell: Tell
    stop: threading.Event
    ready: Callable[[], None]
    """Called once requests are answered."""
    connections_max: int = LIMITS.web_connections_max
    request_s: float = REQUEST_S


def serve(given: Serving) -> None:
    """Serve the page until `stop` is set."""
    asyncio.run(_Server(given).run())


class _Server:
    def __init__(self, given: Serving) -> None:
        self._given = given
        seldom = Seldom(given.tell, given.clock)
        self._streams = Streams(seldom, streams_max=LIMITS.web_streams_max)
        self._watcher = Watcher(given.watched, given.clock, tell=given.tell, publish=self._publish)
        asking = Asking(given.asked, self._watcher, given.clock)
        page = Page(self._watcher, asking, self._streams, seldom, token=given.token)
        connections = Connections(
            seldom, connections_max=given.connections_max, request_s=given.request_s
        )
        self._tell = seldom
        self._server = uvicorn.Server(
            uvicorn.Config(
                page.application(given.host),
                log_config=None,
                access_log=False,
                lifespan="off",
                server_header=False,
                proxy_headers=False,
                ws="none",
                http=bounded(connections),
                loop="asyncio",
                backlog=BACKLOG,
                timeout_graceful_shutdown=GRACE_S,
                h11_max_incomplete_event_size=HEADER_BYTES_MAX,
            )
        )
        # The command has handlers of its own, which set `stop`.
        self._server.capture_signals = _nothing  # type: ignore[method-assign]
        self._failure: Exception | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self) -> None:
        self._loop = asyncio.get_running_loop()
        with _errors_told(self._tell):
            watching = threading.Thread(target=self._watch, name="watcher", daemon=True)
            watching.start()
            self._given.ready()
            await self._server.serve(sockets=[self._given.listener])
        if self._failure is not None:
            raise self._failure

    def _watch(self) -> None:
        try:
            clock = self._given.clock
            while not self._given.stop.is_set():
                began = clock.now()
                self._watcher.look()
                clock.sleep(INTERVAL_S - (clock.now() - began))
        except Exception as failure:  # `run` raises it again, in the thread of the command
            self._failure = failure
        finally:
            assert self._loop is not None
            self._loop.call_soon_threadsafe(self._end)

    def _publish(self, chunk: bytes) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._streams.publish, chunk)

    def _end(self) -> None:
        self._streams.close()
        self._server.should_exit = True


@contextmanager
def _nothing() -> Iterator[None]:
    yield


class _Telling(logging.Handler):
    """Says what the server complains of, in our log."""

    def __init__(self, tell: Tell) -> None:
        super().__init__(logging.ERROR)
        self._say = tell

    def emit(self, record: logging.LogRecord) -> None:
        """Say one line; that a stream was cut off is said where it was."""
        if "without completing response" in record.getMessage():
            return
        why = record.exc_info[1] if record.exc_info else None
        said = record.getMessage().partition("\n")[0].strip()
        self._say(f"{said}: {type(why).__name__}: {why}" if why else said)


@contextmanager
def _errors_told(tell: Tell) -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in ("uvicorn.error", "asyncio")]
    handler = _Telling(tell)
    for logger in loggers:
        logger.addHandler(handler)
        logger.propagate = False
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
            logger.propagate = True
