"""Connections to the page that send nothing, or half of a request, shut nobody out."""

import logging
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from omega.clock import RealClock
from omega.limits import LIMITS
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_cell
from tests.fixtures.pages import END_S, HOST, TOKEN, Served, events, served

MOST = 6
CLOSED = f"a connection is closed: there are {MOST} others, and it waited longest for a request"
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
        assert 200 == page.ask("/static/omega.css").status
    assert [] == page.log


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
    with served(store) as page, ExitStack() as stack:
        for _ in range(LIMITS.web_streams_max - 1):
            stack.enter_context(page.stream())
        for _ in range(3):
            assert 200 == page.ask("/data/stream", method="HEAD").status
        with page.stream() as last:
            assert 200 == last.status
