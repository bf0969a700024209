"""Connections to the page that send nothing, or half of a request, shut nobody out."""

import asyncio
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from typing import cast
from unittest.mock import MagicMock

import pytest

from omega.clock import RealClock
from omega.limits import LIMITS
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_cell
from omega.web.connections import TAKEN_MIN, Connection, Connections
from tests.fixtures.at_work import wait_until
from tests.fixtures.pages import END_S, HOST, TOKEN, Served, events, served

MOST = 6
CLOSED = f"a connection is closed: there are {MOST} others, and it waited longest"
HALF_A_LOGIN = b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 40\r\n\r\nt"
UNFINISHED = [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: a\r\nX-A: ", HALF_A_LOGIN]
REQUEST = b"GET /static/omega.css HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def store() -> MemoryStore:
    store = MemoryStore(RealClock())
    store.add_machines(a_cell(2))
    return store


@pytest.fixture
def few(store: MemoryStore) -> Iterator[Served]:
    """A page with few connections, which wait as long as the test."""
    with served(store, token=TOKEN, connections_max=MOST, request_s=10 * END_S) as page:
        yield page


def connect(page: Served, said: bytes = b"") -> socket.socket:
    connection = socket.create_connection((HOST, page.port), timeout=END_S)
    connection.sendall(said)
    return connection


def is_closed(connection: socket.socket) -> bool:
    """Read to the end of a connection; return whether nothing was answered."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("said", UNFINISHED)
def test_who_waits_longest_makes_room(few: Served, said: bytes) -> None:
    with ExitStack() as stack:
        waiting = [stack.enter_context(connect(few, said)) for _ in range(3 * MOST)]

        assert 200 == few.ask("/static/omega.css").status
        assert all(map(is_closed, waiting[: 2 * MOST]))
        assert [CLOSED] == few.log
        assert 200 == few.ask("/static/omega.css").status


def test_a_second_request_that_is_not_finished_makes_room_too(few: Served) -> None:
    with ExitStack() as stack:
        for _ in range(2 * MOST):
            connection = stack.enter_context(connect(few, REQUEST))
            assert connection.recv(15) == b"HTTP/1.1 200 OK"
            connection.sendall(b"GET")

        assert 200 == few.ask("/static/omega.css").status


def test_streams_make_room_for_nobody(store: MemoryStore) -> None:
    with served(store, connections_max=MOST) as page, ExitStack() as stack:
        streams = [events(stack.enter_context(page.stream())) for _ in range(MOST)]
        assert all(next(stream) for stream in streams)
        assert is_closed(stack.enter_context(connect(page)))

        assert all(next(stream) for stream in streams)
        assert [CLOSED] == page.log


@pytest.mark.parametrize("said", UNFINISHED)
def test_a_request_that_is_not_finished_in_time_ends_its_connection(
    store: MemoryStore, said: bytes
) -> None:
    with served(store, token=TOKEN, request_s=0.01) as page, connect(page, said) as connection:
        assert is_closed(connection)
    assert [] == page.log


def test_who_asks_and_does_not_read_makes_room_too(
    few: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Connection] = []
    make = Connection.connection_made

    def connection_made(connection: Connection, transport: asyncio.Transport) -> None:
        made.append(connection)
        make(connection, transport)

    monkeypatch.setattr(Connection, "connection_made", connection_made)
    last: list[int] = []

    def are_stuck() -> bool:
        """Return whether all are paused, and have got no more since the last look."""
        before, last[:] = list(last), [one.server_state.total_requests for one in made]
        return len(made) == MOST and before == last and all(one.flow.write_paused for one in made)

    with ExitStack() as stack:
        for _ in range(MOST):
            stack.enter_context(connect(few, 2_000 * REQUEST))  # 20 MB, more than is buffered
        wait_until(are_stuck, "all of them are answered as much as they let the server write")

        assert 200 == few.ask("/static/omega.css").status


class Transport:
    """One whose other side reads when the test says so."""

    aborted = False

    def abort(self) -> None:
        self.aborted = True


class Unread:
    """A connection with an answer that is not read, on a loop whose time does not pass."""

    waits = True

    def __init__(self, unread: int) -> None:
        self.unread = unread
        self.transport = Transport()
        self.loop = self
        self.calls: list[Callable[[], None]] = []

    def call_later(self, _s: float, call: Callable[..., None], *told: object) -> MagicMock:
        self.calls.append(partial(call, *told))
        return MagicMock()

    def time_is_up(self) -> None:
        self.calls.pop()()


def one_among_others(unread: int) -> Unread:
    one = Unread(unread)
    Connections(lambda _: None, connections_max=MOST, request_s=1).add(cast("Connection", one))
    return one


def test_who_reads_an_answer_slowly_is_not_cut_off() -> None:
    slow = one_among_others(2 * TAKEN_MIN + 5)
    for unread in (TAKEN_MIN + 5, 5, 0):
        slow.unread = unread
        slow.time_is_up()
        assert not slow.transport.aborted

    slow.time_is_up()
    assert slow.transport.aborted, "it has read all, and asks for nothing"


def test_who_reads_next_to_nothing_of_an_answer_is_cut_off() -> None:
    slow = one_among_others(2 * TAKEN_MIN)
    slow.unread -= TAKEN_MIN - 1
    slow.time_is_up()

    assert slow.transport.aborted


def test_who_hangs_up_during_a_login_is_not_told(store: MemoryStore) -> None:
    with served(store, token=TOKEN) as page:
        for _ in range(3):
            connect(page, HALF_A_LOGIN).close()
        assert 401 == page.ask("/login", method="POST", body="token=no").status

    assert ["a login with a wrong token"] == page.log


def test_what_the_server_complains_of_again_and_again_is_said_once(store: MemoryStore) -> None:
    with served(store) as page:
        for _ in range(3):
            logging.getLogger("asyncio").error("socket.accept() out of system resource")

        assert ["socket.accept() out of system resource"] == page.log


def test_the_head_of_a_stream_takes_no_place(store: MemoryStore) -> None:
    head = b"HEAD /data/stream HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with served(store) as page, ExitStack() as stack:
        for _ in range(LIMITS.web_streams_max):
            connection = stack.enter_context(connect(page, head))
            assert b"HTTP/1.1 200 OK" == connection.recv(15)
        with page.stream() as stream:
            assert 200 == stream.status
