"""`omega health` of real processes: ready, stopped, ended, elsewhere, behind a silent server."""

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import closing

import pytest

from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell
from tests.fixtures.command_line import Omega, Started, document, summary
from tests.fixtures.logins import Login


@pytest.fixture
def cell(database_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a cell of three machines, on which the commands work."""
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)
    with closing(PostgresStore(database_url)) as store:
        store.add_machines(a_cell(3))
    return database_url


def test_a_scheduler_is_ready_until_it_is_stopped(
    cell: str, omega: Omega, started: Started
) -> None:
    scheduler = started("scheduler", "run", "batch", "--replica", "a")
    started.wait_for(lambda: omega("health", "batch", "--replica", "a").code == 0)

    ready = omega("health", "batch", "--replica", "a")
    assert (0, "") == (ready.code, ready.err)
    assert ready.out.startswith("batch a is ready: it reported ")
    (row,) = document(omega("health", "batch", "--replica", "a", "--json", "-"))["rows"]
    assert ("batch", "a", scheduler.pid) == (row["kind"], row["replica"], row["pid"])
    assert row["view_age_ms"] >= row["seen_ms_ago"]

    scheduler.send_signal(signal.SIGSTOP)
    within = ("health", "batch", "--replica", "a", "--within", 1_500)
    started.wait_for(lambda: omega(*within).code == 1)
    stopped = omega(*within)
    assert "" == stopped.out
    assert stopped.err.startswith("omega: batch a has not reported for ")

    scheduler.send_signal(signal.SIGCONT)
    started.wait_for(lambda: omega(*within).code == 0)


def test_nodes_are_ready(cell: str, omega: Omega, started: Started) -> None:
    started("node", "simulate")
    started.wait_for(lambda: omega("health", "nodes").code == 0)

    assert "nodes 0 is ready: it reported " in omega("health", "nodes").out


def test_who_has_not_reported_is_not_ready(cell: str, omega: Omega) -> None:
    sentence = "no process reports as batch b with this login"

    assert (1, "", f"omega: {sentence}\n") == omega("health", "batch", "--replica", "b")
    ran = omega("health", "batch", "--replica", "b", "--json", "-")
    told = json.loads(ran.out)
    assert (1, f"omega: {sentence}\n") == (ran.code, ran.err)
    assert ([], {"ready": False, "problem": sentence}) == (told["rows"], told["summary"])


def test_a_process_that_has_ended_is_not_ready(cell: str, omega: Omega) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with closing(PostgresStore(cell)) as store:
        store.report("nodes", "0", pid=ended.pid, facts={})
        here = socket.gethostname()
        store.report("agent", here, pid=os.getpid(), facts={})

    ran = omega("health", "nodes")

    assert (1, "") == (ran.code, ran.out)
    assert f"process {ended.pid}, which does not run on this machine" in ran.err
    assert summary(omega("health", "agent", "--json", "-"))["ready"]


def test_another_login_s_process_is_not_asked_about(
    cell: str, omega: Omega, login: Login, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(PostgresStore(cell)) as store:
        store.report("nodes", "0", pid=os.getpid(), facts={})
    monkeypatch.setenv("OMEGA_DATABASE_URL", login("healthy_node", "omega_node"))

    assert "no process reports as nodes 0 with this login" in omega("health", "nodes").err


def test_an_unknown_kind_is_bad_usage(cell: str, omega: Omega) -> None:
    ran = omega("health", "node")

    assert (2, "") == (ran.code, ran.out)
    assert "'node' is no kind of process; did you mean 'nodes'?" in ran.err


def test_a_silent_server_is_not_waited_for(omega: Omega, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        monkeypatch.setenv("OMEGA_DATABASE_URL", f"postgresql://omega@127.0.0.1:{port}/omega")
        ran = omega("health", "batch", "--timeout", "0.2")

    assert (1, "", "omega: the database did not answer within 0.2 s\n") == ran
