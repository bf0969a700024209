"""Connections that are cut, refused or slow: an unknown outcome is found out by asking again."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url

from omega.errors import StoreUnavailable
from omega.model.jobs import LeasedJob
from omega.model.outcomes import Outcome
from omega.store.postgres.connection import Link
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell, a_spec
from omega.testing.proxy import Proxy
from omega.testing.steps import a_leased_job, grant
from tests.fixtures.at_work import Plan, at_work, drain, wait_until
from tests.fixtures.networks import connection_to, through
from tests.fixtures.victims import (
    VICTIM,
    Console,
    assert_applied_once,
    claim,
    waiting_backends,
    waiting_for_a_lock,
)


@pytest.mark.parametrize("table", ["job", "machine"])
def test_a_backend_terminated_in_mid_commit(
    store: PostgresStore,
    victim: PostgresStore,
    console: Console,
    contended_job: LeasedJob,
    table: str,
) -> None:
    transaction = claim(contended_job, 0, 1)
    victim.now_ms()  # connected
    lock = f"SELECT FROM omega.{table} FOR UPDATE"
    with waiting_for_a_lock(console, lock, lambda: victim.commit(transaction)) as (call, backend):
        console.execute("SELECT pg_terminate_backend(%s)", (backend,))
        with pytest.raises(StoreUnavailable, match="terminating connection"):
            call.result()

    assert 0 == len(store.allocations())
    assert_applied_once(store, victim.commit(transaction))
    assert 1 == victim.counts["reconnects"]
    assert "repeated_commits" not in victim.counts


def test_a_backend_terminated_after_a_commit(
    store: PostgresStore, victim: PostgresStore, console: Console, contended_job: LeasedJob
) -> None:
    first, second = claim(contended_job, 0), claim(contended_job, 1)
    before = victim.commit(first)
    console.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name = %s",
        (VICTIM,),
    )
    with pytest.raises(StoreUnavailable):
        victim.commit(second)

    again = victim.commit(first)
    assert before.verdicts.tolist() == again.verdicts.tolist()
    assert 1 == victim.counts["repeated_commits"]
    assert_applied_once(store, before, victim.commit(second))


@contextmanager
def behind_a_proxy(url: str) -> Iterator[tuple[Proxy, PostgresStore]]:
    """A store that reaches its database through a proxy."""
    with (
        Proxy(connection_to(url)) as proxy,
        closing(PostgresStore(through(proxy, url), application_name=VICTIM)) as far,
    ):
        yield proxy, far


def test_a_reply_that_is_lost_is_found_out_by_the_same_id(
    database_url: str, store: PostgresStore, contended_job: LeasedJob
) -> None:
    with behind_a_proxy(database_url) as (proxy, far):
        first = far.commit(
            claim(contended_job, 0)
        )  # from here on the statement is prepared: one request
        transaction = claim(contended_job, 1, 2)
        proxy.swallow_next_reply()
        with pytest.raises(StoreUnavailable):
            far.commit(transaction)
        assert proxy.swallowed.wait(60)
        applied = len(store.allocations())
        second = far.commit(transaction)

        assert 3 == applied, "the request had its effect"
        assert [0, 0] == second.verdicts.tolist()
        assert 1 == far.counts["repeated_commits"]
        assert 1 == proxy.counts["swallowed replies"]
    assert_applied_once(store, first, second)


def test_a_connection_cut_in_mid_commit_is_found_out_by_the_same_id(
    database_url: str, store: PostgresStore, console: Console, contended_job: LeasedJob
) -> None:
    """The server goes on with what nobody waits for any more, while it is asked for again."""
    transaction = claim(contended_job, 0, 1)
    with behind_a_proxy(database_url) as (proxy, far), ThreadPoolExecutor(1) as pool:
        far.now_ms()
        lock = "SELECT FROM omega.machine FOR UPDATE"
        with waiting_for_a_lock(console, lock, lambda: far.commit(transaction)) as (call, _):
            assert 1 == proxy.cut_all()
            with pytest.raises(StoreUnavailable):
                call.result()
            again = pool.submit(far.commit, transaction)
            wait_until(lambda: len(waiting_backends(console)) == 2, "the second to come to it")
        outcome = again.result()

        assert 1 == far.counts["repeated_commits"]
    assert_applied_once(store, outcome)


def test_a_connection_that_is_cut_between_calls_is_replaced(
    database_url: str, store: PostgresStore, contended_job: LeasedJob
) -> None:
    with behind_a_proxy(database_url) as (proxy, far):
        first = far.commit(claim(contended_job, 0))
        assert 1 == proxy.cut_all()
        with pytest.raises(StoreUnavailable):
            far.commit(claim(contended_job, 1))
        second = far.commit(claim(contended_job, 2))

        assert 1 == far.counts["reconnects"]
    assert_applied_once(store, first, second)


def test_a_network_that_pauses_is_waited_for(
    database_url: str, store: PostgresStore, contended_job: LeasedJob
) -> None:
    with behind_a_proxy(database_url) as (proxy, far), ThreadPoolExecutor(1) as pool:
        far.now_ms()
        proxy.pause()
        call = pool.submit(far.commit, claim(contended_job, 0))
        others = grant(store, a_leased_job(store, a_spec(1)), [0], [1])
        assert not call.done()
        proxy.resume()
        outcome = call.result()

    assert [2] == outcome.fresh.sequence.tolist(), (
        "it was judged when it came, not when it was sent"
    )
    assert_applied_once(store, others, outcome)


def test_a_statement_that_takes_too_long_had_no_effect(
    database_url: str, store: PostgresStore, console: Console, contended_job: LeasedJob
) -> None:
    transaction = claim(contended_job, 0)
    lock = "SELECT FROM omega.machine FOR UPDATE"
    hasty = PostgresStore(database_url, application_name=VICTIM, statement_timeout_ms=150)
    with closing(hasty):
        hasty.now_ms()
        with waiting_for_a_lock(console, lock, lambda: hasty.commit(transaction)) as (call, _):
            with pytest.raises(StoreUnavailable, match="statement timeout"):
                call.result()
            assert 0 == len(store.allocations())

        assert_applied_once(store, hasty.commit(transaction))
        assert "reconnects" not in hasty.counts, "the connection is as good as before"


@pytest.fixture
def poor_url(database_url: str) -> Iterator[str]:
    """The same database for a user who may have one connection at a time."""
    role = f"{make_url(database_url).database}_poor"
    name = sql.Identifier(role)
    with psycopg.connect(database_url, autocommit=True) as connection:
        create = "CREATE ROLE {} LOGIN PASSWORD 'poor' CONNECTION LIMIT 1"
        connection.execute(sql.SQL(create).format(name))
        for right in (
            "USAGE ON SCHEMA omega",
            "ALL ON ALL TABLES IN SCHEMA omega",
            "EXECUTE ON ALL FUNCTIONS IN SCHEMA omega",
        ):
            connection.execute(sql.SQL(f"GRANT {right} TO {{}}").format(name))
    poor = make_url(database_url).set(username=role, password="poor")
    yield poor.render_as_string(hide_password=False)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP OWNED BY {}").format(name))
        connection.execute(sql.SQL("DROP ROLE {}").format(name))


def test_a_server_without_a_connection_left_is_away_for_a_while(
    poor_url: str, store: PostgresStore, contended_job: LeasedJob
) -> None:
    transaction = claim(contended_job, 0)
    with closing(PostgresStore(poor_url)) as first, closing(PostgresStore(poor_url)) as second:
        first.now_ms()
        with pytest.raises(StoreUnavailable, match="too many connections"):
            second.commit(transaction)
        first.close()

        def commit() -> Outcome | None:
            try:
                return second.commit(transaction)
            except StoreUnavailable:  # the server takes a moment to count the first one out
                return None

        wait_until(commit, "a connection")
        assert_applied_once(store, second.commit(transaction))


def test_a_scheduler_outlives_a_time_without_connections(
    poor_url: str, database_url: str, store: PostgresStore, tmp_path: Path
) -> None:
    store.add_machines(a_cell(4))
    jobs = store.submit([a_spec(2) for _ in range(5)])
    first = PostgresStore(poor_url)
    first.now_ms()
    with at_work(Plan(url=poor_url, log=tmp_path / "log", lease_ms=60_000)) as (process,):
        assert process.is_alive()
        assert [] == store.reports()
        first.close()
        wait_until(store.reports, "a connection for the scheduler")
        drain(database_url)
        process.terminate()
        process.join()

        assert 0 == process.exitcode
    assert {2} == {status.placed for status in map(store.job, jobs) if status is not None}
    assert [] == list(store.verify())


def test_a_server_that_says_nothing_is_given_up(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection stays open and TCP is content, as with a server that was stopped."""
    monkeypatch.setattr("omega.store.postgres.connecting.SILENCE_S", 0.2)
    with (
        Proxy(connection_to(database_url)) as proxy,
        closing(
            Link(through(proxy, database_url), application_name="t", statement_timeout_ms=300)
        ) as link,
    ):
        assert [(1,)] == link.call("SELECT 1")
        with ThreadPoolExecutor(1) as pool:
            proxy.pause()
            call = pool.submit(link.call, "SELECT 2")
            try:
                with pytest.raises(StoreUnavailable, match="does not answer"):
                    call.result(timeout=30)
            finally:
                proxy.resume()  # or a call that waits for ever would keep the pool open
        assert [(3,)] == link.call("SELECT 3")
        assert 1 == link.counts["reconnects"]
