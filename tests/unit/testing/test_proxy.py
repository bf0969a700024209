"""The proxy, before a server that answers each line with the same in capitals."""

import socket
import socketserver
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from omega.clock import ManualClock
from omega.testing.proxy import (
    ABANDONED,
    CUT,
    DELAYED,
    LOOPBACK,
    SWALLOWED,
    NetworkRates,
    Proxy,
    Way,
)


class Shouting(socketserver.ThreadingTCPServer):
    """Answers, and remembers what it was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.at_work = threading.Event()
        self.at_work.set()
        super().__init__((LOOPBACK, 0), Shout)


class Shout(socketserver.StreamRequestHandler):
    server: Shouting

    def handle(self) -> None:
        for line in self.rfile:
            self.server.at_work.wait()
            self.server.asked.append(line)
            self.wfile.write(line.upper())


@pytest.fixture
def server() -> Iterator[Shouting]:
    with Shouting() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def proxy_to(
    server: Shouting, rates: NetworkRates | None = None, clock: ManualClock | None = None
) -> Proxy:
    def connect() -> socket.socket:
        return socket.create_connection(server.server_address)  # type: ignore[arg-type]

    if rates is None:
        return Proxy(connect)
    return Proxy(connect, rates=rates, rng=np.random.default_rng(0), clock=clock)


def client_of(proxy: Proxy) -> socket.socket:
    return socket.create_connection((LOOPBACK, proxy.port))


def ask(client: socket.socket, line: bytes) -> bytes:
    """Return the answer; nothing if the connection was cut."""
    try:
        client.sendall(line + b"\n")
        return client.recv(100).strip()
    except ConnectionError:
        return b""


def test_it_passes_on_both_ways(server: Shouting) -> None:
    with proxy_to(server) as proxy, client_of(proxy) as one, client_of(proxy) as other:
        assert b"A" == ask(one, b"a")
        assert b"B" == ask(other, b"b")
        assert b"C" == ask(one, b"c")
        assert 0 == proxy.counts.total()


def test_a_swallowed_reply_was_carried_out(server: Shouting) -> None:
    with proxy_to(server) as proxy, client_of(proxy) as client:
        assert b"A" == ask(client, b"a")
        proxy.swallow_next_reply()
        assert b"" == ask(client, b"b")
        assert proxy.swallowed.wait(60)

        assert [b"a\n", b"b\n"] == server.asked
        assert {SWALLOWED: 1} == proxy.counts
        with client_of(proxy) as again:
            assert b"C" == ask(again, b"c")


def test_a_cut_request_was_never_heard_of(server: Shouting) -> None:
    with proxy_to(server, NetworkRates(cut_request=1.0)) as proxy, client_of(proxy) as client:
        assert b"" == ask(client, b"a")

        assert {CUT: 1} == proxy.counts
    assert [] == server.asked


def test_an_abandoned_request_is_carried_out_when_nobody_waits_for_it(server: Shouting) -> None:
    rates = NetworkRates(abandon_request=1.0)
    with proxy_to(server, rates) as proxy, client_of(proxy) as client:
        server.at_work.clear()
        assert b"" == ask(client, b"a")
        heard = list(server.asked)
        server.at_work.set()
        proxy.wait_for_the_abandoned()

        assert {ABANDONED: 1} == proxy.counts
    assert [] == heard
    assert [b"a\n"] == server.asked


def test_replies_are_swallowed_by_chance(server: Shouting) -> None:
    with proxy_to(server, NetworkRates(swallow_reply=1.0)) as proxy, client_of(proxy) as client:
        assert b"" == ask(client, b"a")

        assert {SWALLOWED: 1} == proxy.counts
        assert proxy.swallowed.wait(60)
    assert [b"a\n"] == server.asked


def test_a_delay_is_by_the_clock(server: Shouting) -> None:
    clock = ManualClock()
    rates = NetworkRates(delay=1.0, delay_s_max=3.0)
    with proxy_to(server, rates, clock) as proxy, client_of(proxy) as client:
        assert b"A" == ask(client, b"a")

        assert {DELAYED: 1} == proxy.counts
    assert 1 == len(clock.slept)


def test_all_connections_can_be_cut(server: Shouting) -> None:
    with proxy_to(server) as proxy, client_of(proxy) as one, client_of(proxy) as other:
        assert [b"A", b"B"] == [ask(one, b"a"), ask(other, b"b")]
        assert 2 == proxy.cut_all()

        assert [b"", b""] == [ask(one, b"c"), ask(other, b"d")]
    assert [b"a\n", b"b\n"] == server.asked


def test_what_is_held_back_goes_on_afterwards(server: Shouting) -> None:
    with proxy_to(server) as proxy, client_of(proxy) as client:
        assert b"A" == ask(client, b"a")
        proxy.pause()
        client.sendall(b"b\n")
        client.settimeout(0.05)
        with pytest.raises(TimeoutError):
            client.recv(100)
        heard = list(server.asked)
        proxy.resume()
        client.settimeout(60)

        assert [b"a\n"] == heard
        assert b"B\n" == client.recv(100)


def test_replies_alone_are_held_back(server: Shouting) -> None:
    with proxy_to(server) as proxy, client_of(proxy) as client:
        assert b"A" == ask(client, b"a")
        proxy.pause(Way.REPLIES)
        client.sendall(b"b\n")
        client.settimeout(0.05)
        with pytest.raises(TimeoutError):
            client.recv(100)
        heard = list(server.asked)
        proxy.resume()
        client.settimeout(60)

        assert [b"a\n", b"b\n"] == heard
        assert b"B\n" == client.recv(100)


def test_a_server_that_is_down_is_down_behind_it() -> None:
    def connect() -> socket.socket:
        raise ConnectionRefusedError

    with Proxy(connect) as proxy, client_of(proxy) as client:
        assert b"" == ask(client, b"a")


def test_a_server_that_goes_at_once_ends_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def start_and_wait_for_replies(thread: threading.Thread) -> None:
        start(thread)
        if "_pass_replies" in thread.name:  # it has read the end of the replies by then, or is over
            thread.join()

    def gone() -> socket.socket:
        ours, theirs = socket.socketpair()
        theirs.close()
        return ours

    monkeypatch.setattr(threading.Thread, "start", start_and_wait_for_replies)
    with Proxy(gone) as proxy, client_of(proxy) as client:
        assert client.recv(1) == b""
