"""`omega db doctor` on a server with a standby, an archive, or a rival that takes writes too."""

from collections.abc import Mapping

import pytest

from omega.clock import RealClock
from omega.store.postgres.health.examination import examine
from omega.store.postgres.health.findings import Finding, Severity
from tests.fixtures.at_work import wait_until
from tests.fixtures.command_line import Omega
from tests.fixtures.pairs import OneServer, url_of

pytestmark = pytest.mark.postgres

HOSTS, ARCHIVE, STANDBYS = "hosts of the URL", "archive", "synchronous standbys"


def found_at(url: str) -> Mapping[str, Finding]:
    return {one.what: one for one in examine(url, RealClock(), open_for_s=3_600)}


def test_a_synchronous_standby_that_is_away_is_told_at_once(server: OneServer) -> None:
    standby = server.standby("standby")
    server.did("ALTER SYSTEM SET synchronous_standby_names = '*'")
    server.did("SELECT pg_reload_conf()")
    state = "SELECT sync_state FROM pg_stat_replication"
    wait_until(lambda: server.did(state) == [("sync",)], "the standby to be synchronous")
    before = found_at(server.url)

    standby.stop()
    wait_until(lambda: server.did(state) == [], "the standby to be gone")
    after = found_at(server.url)

    assert (Severity.GOOD, "1 connected, 1 asked for") == (
        before[STANDBYS].severity,
        before[STANDBYS].found,
    )
    assert (Severity.UNSAFE, "0 connected, 1 asked for") == (
        after[STANDBYS].severity,
        after[STANDBYS].found,
    )
    assert "not tried: it would wait for a standby" == after["durable commit"].found


def test_an_archive_that_fails_is_told(server: OneServer) -> None:
    server.did("ALTER SYSTEM SET archive_mode = on")
    server.did("ALTER SYSTEM SET archive_command = 'false'")
    before = found_at(server.url)[ARCHIVE]
    server.stop()
    server.start()
    server.did("SELECT pg_switch_wal()")
    failed = "SELECT failed_count FROM pg_stat_archiver"
    wait_until(lambda: server.did(failed) != [(0,)], "archiving to fail")

    failing = found_at(server.url)[ARCHIVE]
    server.did("ALTER SYSTEM SET archive_command = 'true'")
    server.did("SELECT pg_reload_conf()")
    wait_until(lambda: found_at(server.url)[ARCHIVE].severity is Severity.GOOD, "it to be archived")

    assert Severity.GOOD is before.severity
    assert Severity.UNSAFE is failing.severity
    assert failing.found.startswith("000000010000000000000001 could not be archived; ")


def test_two_servers_that_take_writes_are_told(
    server: OneServer, omega: Omega, monkeypatch: pytest.MonkeyPatch
) -> None:
    standby = server.standby("standby")
    url = url_of(server, standby)
    both = found_at(url)[HOSTS]
    standby.promote()
    wait_until(lambda: standby.did("SELECT pg_is_in_recovery()") == [(False,)], "the promotion")
    split = found_at(url)[HOSTS]
    monkeypatch.setenv("OMEGA_DATABASE_URL", url)
    ill = omega("health", "batch")
    folders = (server.folder, standby.folder)
    server.stop()
    one = found_at(url)[HOSTS]

    a, b = folders
    assert (Severity.GOOD, f"{a} takes writes (timeline 1), {b} is a standby") == (
        both.severity,
        both.found,
    )
    assert (Severity.UNSAFE, f"{a} takes writes (timeline 1), {b} takes writes (timeline 2)") == (
        split.severity,
        split.found,
    )
    assert split.why.startswith("split brain")
    assert 1 == ill.code
    assert f"omega: split brain: {a}, {b} take writes;" in " ".join(ill.err.split())
    assert (Severity.LOOK, f"{a} does not answer, {b} takes writes (timeline 2)") == (
        one.severity,
        one.found,
    )
