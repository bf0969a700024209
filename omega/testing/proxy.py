"""A proxy between a store and its database: a network that fails on demand.

Goal     Lose requests and replies where real networks lose them: between two processes.
Promise  A swallowed reply answers a request that the server received and carried out. A cut request
         never reached the server. An abandoned request reached it, and the connection broke before
         the client could know whether it was carried out. Random faults follow from the seed and
         from the order in which bytes arrive. Every fault is counted.
Source   Shopify's toxiproxy, in what it does; docs/decisions/0009-errors-and-retries.md.
"""

import socket
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Self

import numpy as np

from omega.clock import Clock, RealClock

CHUNK = 65_536
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, kw_only=True)
class NetworkRates:
    """How often the network fails, as shares of all requests."""

    cut_request: float = 0.0
    swallow_reply: float = 0.0
    abandon_request: float = 0.0
    delay: float = 0.0
    delay_s_max: float = 0.0


CALM = NetworkRates()

CUT = "cut requests"
SWALLOWED = "swallowed replies"
ABANDONED = "abandoned requests"
DELAYED = "delays"


class Way(Enum):
    """A direction of data."""

    REQUESTS = "requests"
    REPLIES = "replies"


class Proxy:
    """Listens inside a `with` block, and forwards each connection to a socket from `connect()`."""

    def __init__(
        self,
        connect: Callable[[], socket.socket],
        *,
        rates: NetworkRates = CALM,
        rng: np.random.Generator | None = None,
        clock: Clock | None = None,
        listener: socket.socket | None = None,
    ) -> None:
        """`listener` is where clients connect; without it, a free TCP port on loopback."""
        assert rates is CALM or rng is not None, "random faults need a generator"
        self._connect = connect
        self._rates = rates
        self._shares = (
            (CUT, rates.cut_request),
            (SWALLOWED, rates.swallow_reply),
            (ABANDONED, rates.abandon_request),
        )
        self._rng = rng
        self._clock = clock if clock is not None else RealClock()
        self._listener = listener or socket.create_server((LOOPBACK, 0))
        self._lock = threading.Lock()
        self._flows: set[_Flow] = set()
        self._abandoned: list[_Flow] = []
        self._open = {way: threading.Event() for way in Way}
        self.resume()
        self._to_swallow = 0
        self._over = False
        self._thread = threading.Thread(target=self._accept, name="proxy", daemon=True)
        self.counts: Counter[str] = Counter()
        """The number of faults of each kind."""
        self.swallowed = threading.Event()
        """Is set when a reply that was to be swallowed was swallowed."""

    @property
    def port(self) -> int:
        """The port on loopback at which the proxy listens."""
        port: int = self._listener.getsockname()[1]
        return port

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over = True
        self.resume()
        with suppress(OSError), socket.socket(self._listener.family) as last:
            last.connect(self._listener.getsockname())  # so that `accept` returns
        self._thread.join()
        self._listener.close()
        for flow in self._all():
            flow.cut()
        for flow in self._all():
            flow.join()

    def swallow_next_reply(self) -> None:
        """Forward the next request; drop its reply and break the connection."""
        with self._lock:
            self._to_swallow += 1
        self.swallowed.clear()

    def cut_all(self) -> int:
        """Break all connections; return how many there were."""
        flows = self._all()
        for flow in flows:
            flow.cut()
        self.counts["cuts"] += len(flows)
        return len(flows)

    def wait_for_the_abandoned(self) -> None:
        """Wait until the server has finished every abandoned request."""
        with self._lock:
            abandoned, self._abandoned = self._abandoned, []
        for flow in abandoned:
            flow.join()

    def pause(self, *ways: "Way") -> None:
        """Hold back all data in these directions, or in both; of new connections too."""
        self.counts["pauses"] += 1
        for way in ways or Way:
            self._open[way].clear()

    def resume(self) -> None:
        """Forward what was held back."""
        for gate in self._open.values():
            gate.set()

    def _accept(self) -> None:
        while True:
            client, _ = self._listener.accept()
            if self._over:
                client.close()
                return
            try:
                server = self._connect()
            except OSError:  # the database is down, so the connection is refused
                client.close()
                continue
            flow = _Flow(
                client,
                server,
                gates=self._open,
                disposition=self._disposition,
                swallowed=self.swallowed,
                abandoned=self._keep_abandoned,
                over=self._forget,
            )
            with self._lock:
                self._flows.add(flow)
            flow.start()

    def _all(self) -> list["_Flow"]:
        with self._lock:
            return list(self._flows)

    def _forget(self, flow: "_Flow") -> None:
        with self._lock:
            self._flows.discard(flow)

    def _keep_abandoned(self, flow: "_Flow") -> None:
        with self._lock:
            self._abandoned.append(flow)

    def _disposition(self) -> str | None:
        """Choose the fault of a request, if any; wait if it is delayed."""
        with self._lock:
            if self._to_swallow:
                self._to_swallow -= 1
                return self._count(SWALLOWED)
            if self._rng is None:
                return None
            drawn = self._rng.random()
            for fault, share in self._shares:
                if drawn < share:
                    return self._count(fault)
                drawn -= share
            late = self._rng.random() < self._rates.delay
            delay_s = self._rng.uniform(0, self._rates.delay_s_max) if late else 0.0
            if late:
                self._count(DELAYED)
        if delay_s:
            self._clock.sleep(delay_s)
        return None

    def _count(self, fault: str) -> str:
        self.counts[fault] += 1
        return fault


class _Flow:
    """One connection, forwarded by two threads."""

    def __init__(
        self,
        client: socket.socket,
        server: socket.socket,
        *,
        gates: Mapping[Way, threading.Event],
        disposition: Callable[[], str | None],
        swallowed: threading.Event,
        abandoned: Callable[["_Flow"], None],
        over: Callable[["_Flow"], None],
    ) -> None:
        self._client = client
        self._server = server
        self._gates = gates
        self._disposition = disposition
        self._swallowed = swallowed
        self._abandoned = abandoned
        self._over = over
        self._swallows = threading.Event()
        self._requests = threading.Thread(target=self._pass_requests, daemon=True)
        self._replies = threading.Thread(target=self._pass_replies, daemon=True)

    def start(self) -> None:
        """Start to forward."""
        self._replies.start()  # first, because a caller may wait for the reply to a request

    def join(self) -> None:
        """Wait until both directions have ended."""
        self._replies.join()

    def cut(self) -> None:
        """Break the connection on both sides at once."""
        _break(self._client, socket.SHUT_RDWR)
        _break(self._server, socket.SHUT_RDWR)

    def _pass_requests(self) -> None:
        with suppress(OSError):
            while data := self._client.recv(CHUNK):
                self._gates[Way.REQUESTS].wait()
                disposition = self._disposition()
                if disposition == CUT:
                    self.cut()
                    return
                if disposition in (SWALLOWED, ABANDONED):
                    self._swallows.set()
                self._server.sendall(data)
                if disposition == ABANDONED:
                    self._abandoned(self)
                    _break(self._client, socket.SHUT_RDWR)
        # The server finishes the request that it is working on, and then sees the end of input.
        _break(self._server, socket.SHUT_WR)

    def _pass_replies(self) -> None:
        self._requests.start()  # here, because this joins it, be the server gone at once
        with suppress(OSError):
            while data := self._server.recv(CHUNK):
                self._gates[Way.REPLIES].wait()
                if self._swallows.is_set():
                    # The server's side stays open, so that the server can send its whole reply.
                    _break(self._client, socket.SHUT_RDWR)
                else:
                    self._client.sendall(data)
        _break(self._client, socket.SHUT_RDWR)
        if self._swallows.is_set():
            self._swallowed.set()
        self._requests.join()
        self._client.close()
        self._server.close()
        self._over(self)


def _break(end: socket.socket, how: int) -> None:
    with suppress(OSError):
        end.shutdown(how)
