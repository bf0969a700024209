"""`omega web` as a process: it says where it is, reads by a reader's login, and ends cleanly."""

import json
import signal
import socket
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell, a_spec
from tests.fixtures.command_line import Omega, Started
from tests.fixtures.logins import Login
from tests.fixtures.pages import END_S, HOST, TOKEN, PageAt, events, port_at


@pytest.fixture
def filled(database_url: str) -> Iterator[PostgresStore]:
    store = PostgresStore(database_url)
    store.add_machines(a_cell(3))
    store.submit([a_spec(name="here")])
    yield store
    store.close()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_a_reader_is_enough_and_a_signal_ends_it_with_a_stream_open(
    filled: PostgresStore,
    login: Login,
    started: Started,
    monkeypatch: pytest.MonkeyPatch,
    how: signal.Signals,
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", login("reader", "omega_reader"))
    process = started("web", "--port", "0")
    page = PageAt(port_at(started))
    with page.stream() as stream:
        assert "state" in {name for name, _ in islice(events(stream), 2)}
        job = json.loads(page.ask("/data/job/1").body)

        process.send_signal(how)

        while stream.readline():
            pass
    assert 0 == process.wait(END_S), started.log()
    assert ("here", "no_scheduler") == (job["name"], job["why"]["reason"])
    assert 1 == started.log().count("\n"), "it has nothing else to say"


def test_the_token_of_a_file_opens_it(
    filled: PostgresStore,
    database_url: str,
    started: Started,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)
    (tmp_path / "token").write_text(TOKEN + "\n")
    started("web", "--port", "0", "--token-file", str(tmp_path / "token"))
    page = PageAt(port_at(started))

    assert 401 == page.ask("/data/names/0").status
    assert 200 == page.ask("/data/names/0", Authorization=f"Bearer {TOKEN}").status
    assert TOKEN not in started.log()


def test_on_an_address_that_others_reach_it_does_not_start_without_a_token(
    omega: Omega, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)

    ran = omega("web", "--host", "0.0.0.0", "--port", "0")

    assert 2 == ran.code
    assert "a token is needed" in ran.err
    assert "" == ran.out


@pytest.mark.parametrize(
    ("token", "said"), [("short", "it has 5 characters"), (None, "cannot be read")]
)
def test_a_token_that_is_none_is_refused(
    omega: Omega, tmp_path: Path, token: str | None, said: str
) -> None:
    file = tmp_path / "token"
    if token is not None:
        file.write_text(token)

    ran = omega("web", "--token-file", str(file))

    assert 2 == ran.code
    assert said in ran.err


def test_the_token_of_the_environment_counts(omega: Omega, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMEGA_WEB_TOKEN", "short")

    assert "it has 5 characters" in omega("web").err


@pytest.mark.parametrize("host", ["nowhere.invalid", "203.0.113.7", "::::"])
def test_an_address_that_is_not_ours_is_refused(
    omega: Omega, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    monkeypatch.setenv("OMEGA_WEB_TOKEN", TOKEN)

    ran = omega("web", "--host", host)

    assert (2, 1) == (ran.code, ran.err.count("\n")), ran.err


def test_a_port_that_is_taken_is_refused(omega: Omega) -> None:
    with socket.create_server((HOST, 0)) as other:
        ran = omega("web", "--port", other.getsockname()[1])

    assert 2 == ran.code
    assert "cannot listen on 127.0.0.1" in ran.err
