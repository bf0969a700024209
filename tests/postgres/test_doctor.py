"""`omega db doctor`: each complaint is provoked on a real server, and a healthy one has none."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url

from omega.clock import ManualClock, RealClock
from omega.store.embedded import NAME
from omega.store.packaged_postgres import PackagedPostgres
from omega.store.postgres.connection import Link
from omega.store.postgres.databases import name_of, suffixed
from omega.store.postgres.health import settings
from omega.store.postgres.health.findings import Finding, Severity
from omega.store.postgres.health.server_state import read_server_state
from omega.store.postgres.restrictions import restrict
from omega.store.postgres.schema import migrate
from omega.store.postgres.store import PostgresStore
from omega.testing.steps import add_a_cell
from tests.fixtures.command_line import Omega
from tests.fixtures.logins import Login

pytestmark = pytest.mark.postgres

Rows = dict[str, dict[str, Any]]
Doctor = Callable[..., Rows]

OF_THE_MACHINE = {"round trip", "durable commit"}
"""What a disk and a busy processor have to say in; unit tests judge these."""
BAD = {
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "shared_buffers": "128kB",
    "max_connections": "12",
    "max_wal_size": "64MB",
    "checkpoint_timeout": "60s",
    "autovacuum": "off",
    "autovacuum_naptime": "10min",
    "max_prepared_transactions": "2",
}
WORST_FIRST = [severity.value for severity in Severity]


def postgres(url: str) -> psycopg.Connection[tuple[Any, ...]]:
    return psycopg.connect(url, autocommit=True)


@pytest.fixture
def doctor(omega: Omega, monkeypatch: pytest.MonkeyPatch) -> Doctor:
    """Examine a server; return the findings by what was looked at."""

    def examine(url: str, *options: str, code: int = 0) -> Rows:
        monkeypatch.setenv("OMEGA_DATABASE_URL", url)
        ran = omega("db", "doctor", "--json", "-", *options)
        document = json.loads(ran.out)
        severities = [row["severity"] for row in document["rows"]]
        assert code == ran.code, ran.err
        assert severities == sorted(severities, key=WORST_FIRST.index)
        assert len(severities) == sum(document["summary"].values())
        return {row["what"]: row for row in document["rows"]}

    return examine


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PackagedPostgres]:
    """An embedded server as users get it, which no other test uses."""
    server = PackagedPostgres(tmp_path_factory.mktemp("examined").resolve() / NAME, RealClock())
    server.start()
    migrate(server.url("omega"), make_roles=True)
    yield server
    server.stop()


@contextmanager
def set_to(server: PackagedPostgres, settings: dict[str, str]) -> Iterator[str]:
    """Start the server with these settings, and in the end with its own again."""
    with postgres(server.url("omega")) as connection:
        for name, value in settings.items():
            alter = sql.SQL("ALTER SYSTEM SET {} = {}")
            connection.execute(alter.format(sql.Identifier(name), sql.Literal(value)))
    server.stop()
    server.start()
    yield server.url("omega")
    with postgres(server.url("omega")) as connection:
        connection.execute("ALTER SYSTEM RESET ALL")
    server.stop()
    server.start()


def complaints(rows: Rows) -> dict[str, str]:
    return {what: row["severity"] for what, row in rows.items() if row["severity"] != "good"}


def test_a_healthy_server_gives_no_complaint(
    own_server: PackagedPostgres, doctor: Doctor, omega: Omega
) -> None:
    rows = doctor(own_server.url("omega"), "--open-for", "3600")

    assert (
        {} == {what: row for what, row in rows.items() if row["severity"] != "good"}
        or set(complaints(rows)) <= OF_THE_MACHINE
    )
    assert all(row["found"] for row in rows.values())
    assert len(rows) <= 34, "more than a screen takes"
    screen = " ".join(omega("db", "doctor").out.split())
    assert all(what in screen for what in rows)


def test_each_bad_setting_is_seen_and_the_remedy_named(
    own_server: PackagedPostgres, doctor: Doctor
) -> None:
    with set_to(own_server, BAD) as url:
        with closing(PostgresStore(url)) as store:
            add_a_cell(store, 1_000)
        with postgres(url) as one:
            one.execute("BEGIN")
            one.execute("SELECT pg_current_xact_id()")
            one.execute("PREPARE TRANSACTION 'it''s left'")
        rows = doctor(url, "--open-for", "0", code=1)
        with postgres(url) as one:
            one.execute(rows["prepared transactions"]["run"].encode())
        after = doctor(url, "--open-for", "0", code=1)

    found = complaints(rows)
    for what in OF_THE_MACHINE:
        found.pop(what, None)
    assert found == {
        "fsync": "unsafe",
        "full_page_writes": "unsafe",
        "synchronous_commit": "worth a look",
        "shared_buffers": "costs speed",
        "max_connections": "worth a look",
        "max_wal_size": "costs speed",
        "checkpoint_timeout": "costs speed",
        "autovacuum": "costs speed",
        "autovacuum_naptime": "worth a look",
        "prepared transactions": "costs speed",
    }
    assert all(rows[what]["why"] and rows[what]["run"] for what in found)
    assert "ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf()" == rows["fsync"]["run"]
    assert "prepared transactions" not in complaints(after)


def test_the_screen_says_what_is_wrong_first_and_what_to_do(
    own_server: PackagedPostgres, omega: Omega, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", own_server.url("omega"))
    with psycopg.connect(own_server.url("omega")) as idle:
        idle.execute("SELECT pg_current_xact_id()")
        ran = omega("db", "doctor", "--open-for", "0")

    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert 0 == ran.code
    assert lines[0].startswith("costs speed open transactions")
    assert any(line.startswith("do: SELECT pg_terminate_backend(") for line in lines)
    assert any(line.startswith("good the rest cell, version") for line in lines)
    assert "costs speed" in lines[-1]


@pytest.mark.parametrize("seconds", ["-1", "nan", "soon"])
def test_a_patience_that_makes_no_sense_is_bad_usage(omega: Omega, seconds: str) -> None:
    assert 2 == omega("db", "doctor", f"--open-for={seconds}").code


def test_a_setting_of_the_database_is_undone_where_it_was_made(
    doctor: Doctor, database_url: str
) -> None:
    name = sql.Identifier(name_of(database_url))
    with postgres(database_url) as owner:
        alter = sql.SQL("ALTER DATABASE {} SET synchronous_commit = off")
        owner.execute(alter.format(name))
        try:
            rows = doctor(database_url, code=1)  # the tests' own servers do without fsync
            owner.execute(rows["synchronous_commit"]["run"].encode())
            after = doctor(database_url, code=1)
        finally:
            owner.execute(sql.SQL("ALTER DATABASE {} RESET ALL").format(name))

    assert "worth a look" == rows["synchronous_commit"]["severity"]
    assert "forgets" in rows["synchronous_commit"]["why"]
    assert "synchronous_commit=off" in rows["settings of roles"]["found"]
    assert "good" == after["synchronous_commit"]["severity"]
    assert "good" == after["settings of roles"]["severity"]


def test_an_open_transaction_that_has_written_is_named(
    own_server: PackagedPostgres, doctor: Doctor
) -> None:
    url = own_server.url("omega")
    with psycopg.connect(url, application_name="forgetful") as idle:
        idle.execute("SELECT pg_current_xact_id()")
        rows = doctor(url, "--open-for", "0")

        assert "costs speed" == rows["open transactions"]["severity"]
        assert f"{idle.info.backend_pid} (" in rows["open transactions"]["found"]
        assert "forgetful) idle in transaction, writes" in rows["open transactions"]["found"]
        assert f"pg_terminate_backend({idle.info.backend_pid})" in rows["open transactions"]["run"]


def test_an_open_transaction_that_only_reads_is_named_too(
    own_server: PackagedPostgres, doctor: Doctor
) -> None:
    url = own_server.url("omega")
    with psycopg.connect(url) as idle:
        idle.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        idle.execute("SELECT 1")
        found = doctor(url, "--open-for", "0")["open transactions"]
        patient = doctor(url, "--open-for", "3600")["open transactions"]

    assert "costs speed" == found["severity"]
    assert "idle in transaction, reads" in found["found"]
    assert "idle in transaction" not in patient["found"]


def test_a_reader_is_told_what_it_cannot_see(own_server: PackagedPostgres, doctor: Doctor) -> None:
    url = own_server.url("omega")
    reader = make_url(url).set(username="bob").render_as_string(hide_password=False)
    with postgres(url) as owner:
        owner.execute("CREATE ROLE bob LOGIN IN ROLE omega_reader")
        with psycopg.connect(url) as idle:
            idle.execute("SELECT pg_current_xact_id()")
            blind = doctor(reader, "--open-for", "0")
            owner.execute(blind["open transactions"]["run"].encode())
            seeing = doctor(reader, "--open-for", "0")
        owner.execute("DROP ROLE bob")

    assert "not seen" == blind["open transactions"]["severity"]
    assert "may not look" in blind["open transactions"]["found"]
    # For the messages that it writes to the log, with which a login could take all locks.
    assert "not seen" == blind["durable commit"]["severity"]
    assert "may not write" in blind["durable commit"]["found"]
    assert "costs speed" == seeing["open transactions"]["severity"]


def test_any_login_will_do(doctor: Doctor, login: Login) -> None:
    as_nobody, as_reader = (
        doctor(login(*names), code=1) for names in (("nobody",), ("reader", "omega_reader"))
    )

    assert set(as_reader) == set(as_nobody)


def test_dead_rows_and_lost_room_are_seen(doctor: Doctor, database_url: str) -> None:
    with postgres(database_url) as owner:
        owner.execute("TRUNCATE omega.machine")  # dead rows of earlier tests, too
    with closing(PostgresStore(database_url)) as store:
        add_a_cell(store, 600)
    with postgres(database_url) as owner:
        owner.execute("SELECT pg_stat_reset()")
        owner.execute("ANALYZE omega.machine")
        owner.execute("ALTER TABLE omega.machine SET (autovacuum_enabled = off)")
        owner.execute("CREATE INDEX by_revision ON omega.machine (revision)")
        # Held by a reader, the versions that die cannot be removed from their pages either.
        with psycopg.connect(database_url) as reader:
            reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            reader.execute("SELECT 1")
            for _ in range(30):
                owner.execute("UPDATE omega.machine SET revision = revision + 1")
            owner.execute("SELECT pg_stat_force_next_flush()")
            before = doctor(database_url, "--open-for", "0", code=1)
        owner.execute("DROP INDEX omega.by_revision")
        for remedy in ("autovacuum of tables", "dead rows"):
            owner.execute(before[remedy]["run"].encode())
        swept = doctor(database_url, "--open-for", "3600", code=1)
        owner.execute("VACUUM FULL omega.machine")
        after = doctor(database_url, "--open-for", "3600", code=1)

    # At least 30 times 600: what other sessions did before may be counted after the reset.
    dead = re.match(r"machine ([\d,]+) of ", before["dead rows"]["found"])
    assert dead, before["dead rows"]["found"]
    assert int(dead[1].replace(",", "")) >= 30 * 600, dead[0]
    assert "off for machine" == before["autovacuum of tables"]["found"]
    for what in ("dead rows", "heap-only updates", "autovacuum of tables", "open transactions"):
        assert "costs speed" == before[what]["severity"], what
    assert "costs speed" == swept["size of machine"]["severity"]
    assert "good" == swept["dead rows"]["severity"]
    assert "good" == swept["autovacuum of tables"]["severity"]
    assert "good" == after["size of machine"]["severity"]


def test_a_table_that_lost_its_settings_is_told(doctor: Doctor, database_url: str) -> None:
    with postgres(database_url) as owner:
        owner.execute("ALTER TABLE omega.machine RESET (fillfactor)")
        rows = doctor(database_url, code=1)
        owner.execute(rows["autovacuum of tables"]["run"].encode())
        after = doctor(database_url, code=1)

    assert "not as migrated for machine" == rows["autovacuum of tables"]["found"]
    assert "fillfactor=50" in rows["autovacuum of tables"]["run"]
    assert "good" == after["autovacuum of tables"]["severity"]


def test_a_slot_that_nobody_reads_is_told(own_server: PackagedPostgres, doctor: Doctor) -> None:
    url = own_server.url("omega")
    with postgres(url) as owner:
        owner.execute("SELECT pg_create_physical_replication_slot('left_behind')")
        rows = doctor(url)
        owner.execute(rows["replication slots"]["run"].encode())

    assert "unused: left_behind" == rows["replication slots"]["found"]
    assert "good" == doctor(url)["replication slots"]["severity"]


def test_checkpoints_that_were_asked_for_are_counted(
    own_server: PackagedPostgres, doctor: Doctor
) -> None:
    url = own_server.url("omega")
    with postgres(url) as owner:
        for _ in range(settings.REQUESTED_MIN + 1):
            owner.execute("SELECT pg_logical_emit_message(false, 'omega', 'something to write')")
            owner.execute("CHECKPOINT")
        found = doctor(url)["checkpoints"]
        owner.execute("SELECT pg_stat_reset_shared('checkpointer')")

    assert "worth a look" == found["severity"]
    assert "asked for" in found["found"]


def test_compiling_is_told_where_a_pooler_dropped_what_we_ask_for(database_url: str) -> None:
    def look(link: Link) -> Finding:
        return settings.jit(read_server_state(link, ManualClock(), database_url))

    with closing(
        Link(database_url, application_name="omega tests", statement_timeout_ms=30_000)
    ) as link:
        before = look(link)
        link.call("SELECT set_config('jit', 'on', false)")

        assert (Severity.GOOD, Severity.SLOW) == (before.severity, look(link).severity)


def test_a_database_without_a_cell_is_examined_too(doctor: Doctor, empty_database_url: str) -> None:
    rows = doctor(empty_database_url, code=1)

    assert "omega db init" == rows["cell"]["run"]
    assert "good" == rows["encoding"]["severity"]


def test_another_encoding_is_unsafe(doctor: Doctor, empty_database_url: str) -> None:
    there = suffixed(empty_database_url, "_x")
    name = sql.Identifier(name_of(there))
    with postgres(empty_database_url) as owner:
        create = sql.SQL("CREATE DATABASE {} ENCODING LATIN1 LOCALE 'C' TEMPLATE template0")
        owner.execute(create.format(name))
        try:
            rows = doctor(there, code=1)
        finally:
            owner.execute(sql.SQL("DROP DATABASE {}").format(name))

    assert ("unsafe", "LATIN1") == (rows["encoding"]["severity"], rows["encoding"]["found"])


def test_an_examination_leaves_nothing_behind(doctor: Doctor, database_url: str) -> None:
    with postgres(database_url) as owner:
        question = (
            "SELECT (SELECT count(*) FROM pg_class), (SELECT sum(revision) FROM omega.machine),"
            " (SELECT count(*) FROM omega.transaction)"
        )
        before = owner.execute(question).fetchone()
        doctor(database_url, code=1)

        assert before == owner.execute(question).fetchone()


def test_a_timeout_of_the_servers_configuration_is_as_good_as_any(
    own_server: PackagedPostgres, doctor: Doctor
) -> None:
    with set_to(own_server, {"statement_timeout": "30s"}) as url, postgres(url) as owner:
        owner.execute("ALTER DATABASE omega RESET statement_timeout")
        found = doctor(url, "--open-for", "3600")["timeouts"]
        restricted = restrict(url)

    assert found["found"].startswith("statement_timeout 30000ms, ")
    assert ((), ()) == (restricted.done, restricted.left)
    assert ["statement_timeout"] == [one.about for one in restrict(url).done]
