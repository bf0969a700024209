"""A report is its login's: no other replaces, removes or delays it, unless it has fallen silent."""

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest

from omega.errors import BadInput
from omega.limits import LIMITS
from omega.store.postgres.store import PostgresStore
from omega.store.protocols import JobReader, ProcessRegistry
from tests.fixtures.logins import Login, user_of


@pytest.fixture
def alice(login: Login) -> Iterator[ProcessRegistry]:
    with closing(PostgresStore(login("reporter", "omega_scheduler"))) as store:
        yield store


@pytest.fixture
def bob(login: Login) -> Iterator[ProcessRegistry]:
    with closing(PostgresStore(login("rival_reporter", "omega_node"))) as store:
        yield store


def facts_of(store: JobReader) -> list[object]:
    return [report.facts for report in store.reports()]


def test_another_login_replaces_and_removes_nothing(
    store: PostgresStore, alice: ProcessRegistry, bob: ProcessRegistry
) -> None:
    alice.report("batch", "0", pid=1, facts={"by": "alice"})
    bob.report("batch", "0", pid=1, facts={"by": "bob"})

    assert [{"by": "alice"}, {"by": "bob"}] == facts_of(store)
    bob.forget("batch", "0")
    assert [{"by": "alice"}] == facts_of(store)


def test_a_login_reads_its_own_report_and_no_other(
    store: PostgresStore, alice: ProcessRegistry, bob: ProcessRegistry
) -> None:
    alice.report("batch", "0", pid=1, facts={"by": "alice"})
    assert bob.own_report("batch", "0") is None
    assert store.own_report("batch", "0") is None

    bob.report("batch", "0", pid=2, facts={"by": "bob"})
    own = [registry.own_report("batch", "0") for registry in (alice, bob)]

    assert [1, 2] == [report.pid for report in own if report is not None]


def test_a_report_waits_for_no_other_login(
    store: PostgresStore, alice: ProcessRegistry, login: Login
) -> None:
    """A transaction that is left open holds up nobody who reports under the same name."""
    with psycopg.connect(login("rival_reporter", "omega_node")) as open_for_long:
        open_for_long.execute("SELECT omega.report_process('batch', '0', 1, '{}')")
        alice.report("batch", "0", pid=1, facts={"by": "alice"})

        assert [{"by": "alice"}] == facts_of(store)


def test_a_login_replaces_and_removes_its_own(store: PostgresStore, alice: ProcessRegistry) -> None:
    alice.report("batch", "0", pid=1, facts={"jobs": 1})
    alice.report("batch", "0", pid=2, facts={"jobs": 2})
    assert [{"jobs": 2}] == facts_of(store)

    alice.forget("batch", "0")
    assert [] == facts_of(store)


def test_one_that_has_fallen_silent_is_replaced(
    store: PostgresStore,
    alice: ProcessRegistry,
    bob: ProcessRegistry,
    database_url: str,
    login: Login,
) -> None:
    """As when a scheduler has got another login."""
    alice.report("batch", "0", pid=1, facts={"by": "alice"})
    (before,) = store.reports()
    with psycopg.connect(database_url) as owner:
        owner.execute("UPDATE omega.process SET seen_at = seen_at - interval '11 seconds'")
    bob.report("batch", "0", pid=1, facts={"by": "bob"})
    with psycopg.connect(database_url) as owner:
        logins = owner.execute("SELECT login FROM omega.process").fetchall()
    (after,) = store.reports()

    assert {"by": "bob"} == after.facts
    assert [(user_of(login("rival_reporter", "omega_node")),)] == logins
    assert before.started_ms < after.started_ms, "the same number, but another process"


def multiply_reports(url: str, silent: str) -> None:
    """Copy the only report until its login has as many as it may; the copies have been silent."""
    with psycopg.connect(url) as owner:
        owner.execute(
            "INSERT INTO omega.process (kind, replica, pid, facts, login, seen_at)"
            " SELECT kind, 'n' || n, 1, facts, login, seen_at - %s::interval"
            "   FROM omega.process, generate_series(2, %s) AS n",
            (silent, LIMITS.processes_per_login_max),
        )


def test_a_login_has_only_so_many_reports(
    store: PostgresStore, alice: ProcessRegistry, database_url: str
) -> None:
    alice.report("batch", "0", pid=1, facts={})
    multiply_reports(database_url, "0 seconds")
    with pytest.raises(BadInput, match="1000 processes report as login"):
        alice.report("batch", "1", pid=1, facts={})
    alice.report("batch", "0", pid=1, facts={"by": "alice"})
    with psycopg.connect(database_url) as owner:
        owner.execute(
            "UPDATE omega.process SET seen_at = seen_at - interval '2 days' WHERE replica = 'n7'"
        )
    alice.report("batch", "1", pid=1, facts={})

    replicas = {report.replica for report in store.reports()}
    assert LIMITS.processes_per_login_max == len(replicas)
    assert "n7" not in replicas


def test_reports_of_processes_that_were_killed_keep_no_new_ones_away(
    store: PostgresStore, alice: ProcessRegistry, database_url: str
) -> None:
    alice.report("batch", "0", pid=1, facts={})
    multiply_reports(database_url, "11 seconds")
    alice.report("batch", "1", pid=1, facts={})

    assert {"0", "1"} == {report.replica for report in store.reports()}


def test_the_owner_removes_any(store: PostgresStore, alice: ProcessRegistry) -> None:
    alice.report("batch", "0", pid=1, facts={"by": "alice"})
    alice.forget("batch", "1")
    assert [{"by": "alice"}] == facts_of(store)
    store.forget("batch", "0")
    assert [] == facts_of(store)
