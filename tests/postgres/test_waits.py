"""Servers that say nothing: why, and for how long a process that is to end waits for them."""

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

from omega.errors import StoreUnavailable
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_spec
from tests.fixtures.at_work import wait_until
from tests.fixtures.pairs import OneServer

pytestmark = pytest.mark.postgres


@pytest.fixture
def without_its_standby(server: OneServer) -> OneServer:
    """A server each of whose commits waits for a standby that is not there."""
    server.did("ALTER SYSTEM SET synchronous_standby_names = '*'")
    server.did("SELECT pg_reload_conf()")
    wait_until(
        lambda: server.did("SHOW synchronous_standby_names") == [("*",)], "the server to hear of it"
    )
    return server


def test_a_commit_that_waits_for_a_standby_says_so(
    without_its_standby: OneServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omega.store.postgres.connecting.SILENCE_S", 0.2)
    with closing(PostgresStore(without_its_standby.url, statement_timeout_ms=300)) as store:
        with pytest.raises(StoreUnavailable, match="synchronous standby, and commits nothing"):
            store.submit([a_spec()])
        assert store.now_ms() > 0  # which commits nothing


def test_who_is_to_end_does_not_wait_for_the_time_of_a_statement(
    without_its_standby: OneServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omega.store.postgres.answered.STOP_S", 0.2)
    stop = Event()
    stop.set()
    url = without_its_standby.url
    with (
        closing(PostgresStore(url, statement_timeout_ms=600_000, stop=stop)) as store,
        ThreadPoolExecutor(1) as pool,
    ):
        call = pool.submit(store.submit, [a_spec()])
        try:
            with pytest.raises(StoreUnavailable, match="does not answer"):
                call.result(timeout=20)
        finally:  # or a call that waits for ever would keep the pool open
            without_its_standby.did("ALTER SYSTEM RESET synchronous_standby_names")
            without_its_standby.did("SELECT pg_reload_conf()")


def test_a_scheduler_ends_that_waits_for_a_standby(
    without_its_standby: OneServer, tmp_path: Path
) -> None:
    """Its first report waits for the standby; no limit of a statement ends that."""
    log = tmp_path / "log"
    environment = {
        **os.environ,
        "OMEGA_DATABASE_URL": without_its_standby.url,
        "OMEGA_STATEMENT_TIMEOUT_MS": "600000",
    }
    command = [sys.executable, "-m", "omega.cli", "scheduler", "run", "batch"]
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env=environment)
    waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
    wait_until(lambda: without_its_standby.did(waiting), "a commit to wait")
    process.send_signal(signal.SIGTERM)

    assert process.wait(timeout=60) in (0, 1), log.read_text()
