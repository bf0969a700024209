"""Verbs that only read do so on a standby, and what writes says why it cannot."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from omega.errors import StoreUnavailable
from omega.store.postgres.connection import READ_ONLY
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell, a_spec
from omega.testing.steps import a_running_job
from tests.fixtures.at_work import wait_until
from tests.fixtures.command_line import Omega, document
from tests.fixtures.pairs import OneServer, url_of

pytestmark = pytest.mark.postgres

READING = (
    ("status",),
    ("jobs",),
    ("job", "1"),
    ("logs", "1"),
    ("cell", "show"),
    ("cell", "show", "machine-1"),
    ("quota", "list"),
    ("audit",),
    ("db", "verify"),
)
WRITING = (
    ("cancel", "1"),
    ("cell", "add", "machine-2", "--cpu", "1", "--memory", "1GiB"),
    ("cell", "drain", "machine-1"),
    ("quota", "remove", "--tenant", "ann"),
)
ONE_TASK = {"tasks": 1, "cpu": 1, "memory": "1GiB", "duration": "1s"}


@pytest.fixture
def standby(server: OneServer) -> OneServer:
    """A standby that has all of a cell, whose primary is gone."""
    standby = server.standby("standby")
    with closing(PostgresStore(server.url)) as store:
        (machine,) = store.add_machines(a_cell(1)).tolist()
        a_running_job(store, a_spec(), [machine])
    wait_until(lambda: standby.has_repeated(server), "the standby to catch up")
    server.kill()
    return standby


def test_what_only_reads_reads_from_a_standby(
    standby: OneServer, omega: Omega, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nowhere")
    for words in READING:
        ran = omega(*words, "--read-from", standby.url)

        assert (words, 0) == (words, ran.code), ran.err
        assert ran.err.startswith("omega: read from a standby that has repeated commits up to ")

    monkeypatch.setenv("OMEGA_READ_FROM", standby.url)
    assert [1] == [row["id"] for row in document(omega("jobs", "--json", "-"))["rows"]]


def test_what_writes_does_not_use_the_server_to_read_from(
    standby: OneServer, server: OneServer, omega: Omega, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.start()
    monkeypatch.setenv("OMEGA_DATABASE_URL", server.url)
    monkeypatch.setenv("OMEGA_READ_FROM", standby.url)

    ran = omega("cell", "add", "machine-2", "--cpu", "1", "--memory", "1GiB")

    assert (0, "") == (ran.code, ran.err)


def test_what_writes_says_that_the_server_takes_no_writes(
    standby: OneServer,
    omega: Omega,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", standby.url)
    spec = tmp_path / "job.yaml"
    spec.write_text(json.dumps({"name": "one", "scheduler": "batch", "groups": [ONE_TASK]}))
    for words in (*WRITING, ("submit", spec)):
        ran = omega(*words)

        assert (words, 1, f"omega: {READ_ONLY}") == (words, ran.code, " ".join(ran.err.split()))


def test_a_store_finds_the_primary_after_a_server_has_taken_no_writes(
    standby: OneServer, server: OneServer
) -> None:
    """A server that was the primary may come back as a standby, or be made read only."""
    server.start()
    with closing(PostgresStore(url_of(server, standby))) as store:
        store.submit([a_spec()])
        server.did("ALTER SYSTEM SET default_transaction_read_only = on")
        server.did("SELECT pg_reload_conf()")
        standby.promote()
        is_standby = "SELECT pg_is_in_recovery()"
        wait_until(lambda: standby.did(is_standby) == [(False,)], "the promotion")

        def is_refused() -> bool:
            try:
                store.submit([a_spec()])
            except StoreUnavailable as refusal:
                return str(refusal) == READ_ONLY
            return False

        wait_until(is_refused, "the session to hear of the setting")
        (job,) = store.submit([a_spec()])

    assert [(job,)] == standby.did("SELECT max(id) FROM omega.job")
