"""Connections that are cut, refused or slow: an unknown outcome is found out by asking again."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url

from omega.errors import StoreUnavailable
from omega.model.claims import Transaction
from omega.model.jobs import LeasedJob
from omega.model.outcomes import Outcome
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell, a_spec, a_stretch, a_transaction, some_claims
from omega.testing.proxy import Proxy
from omega.testing.steps import a_leased_job, grant
from tests.fixtures.at_work import Plan, at_work, drain, wait_until
from tests.fixtures.networks import connection_to, through

VICTIM = "omega victim"
TASKS = 4

Session = psycopg.Connection[tuple[object, ...]]


@pytest.fixture
def victim(database_url: str) -> Iterator[PostgresStore]:
    """Another store on the same cell, that something happens to."""
    victim = PostgresStore(database_url, application_name=VICTIM, statement_timeout_ms=20_000)
    yield victim
    victim.close()


@pytest.fixture
def session(database_url: str) -> Iterator[Session]:
    """A connection for whoever is in the way."""
    with psycopg.connect(database_url) as session:
        yield session


@pytest.fixture
def job(store: PostgresStore) -> LeasedJob:
    """A leased job on a cell of one machine."""
    store.add_machines(a_cell(1))
    return a_leased_job(store, a_spec(TASKS))


def claim(job: LeasedJob, *tasks: int) -> Transaction:
    return a_transaction(a_stretch(job, some_claims(tasks, [1] * len(tasks), cpu_milli=500)))


def assert_applied_once(store: PostgresStore, *outcomes: Outcome) -> None:
    """Every grant is there, and the machine has seen one commit."""
    granted = sum(int(outcome.accepted.sum()) for outcome in outcomes)

    assert granted == len(store.allocations()) > 0
    assert [len(outcomes)] == store.snapshot().rows.sequence.tolist()
    assert [] == list(store.verify())


@contextmanager
def waiting_for_a_lock(
    session: Session, lock: str, call: Callable[[], Outcome]
) -> Iterator[tuple[Future[Outcome], int]]:
    """Hold rows while a call comes to wait for them; gives its future and its server process."""
    session.execute(lock.encode())
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(call)
        found: list[int] = []

        def is_waiting() -> bool:
            # The books are those of the transaction's start, unless told to look again.
            session.execute("SELECT pg_stat_clear_snapshot()")
            rows = session.execute(
                "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
                " AND application_name = %s AND wait_event_type = 'Lock'",
                (VICTIM,),
            ).fetchall()
            found.extend(int(str(pid)) for (pid,) in rows)
            return bool(found)

        try:
            wait_until(is_waiting, "the call to come to the lock")
            yield future, found[0]
        finally:
            session.rollback()


@pytest.mark.parametrize("table", ["job", "machine"])
def test_a_backend_terminated_in_mid_commit(
    store: PostgresStore, victim: PostgresStore, session: Session, job: LeasedJob, table: str
) -> None:
    transaction = claim(job, 0, 1)
    victim.now_ms()  # connected
    lock = f"SELECT FROM omega.{table} FOR UPDATE"
    with waiting_for_a_lock(session, lock, lambda: victim.commit(transaction)) as (call, backend):
        session.execute("SELECT pg_terminate_backend(%s)", (backend,))
        with pytest.raises(StoreUnavailable, match="terminating connection"):
            call.result()

    assert 0 == len(store.allocations())
    assert_applied_once(store, victim.commit(transaction))
    assert 1 == victim.counts["reconnects"]
    assert "replays" not in victim.counts


def test_a_backend_terminated_after_a_commit(
    store: PostgresStore, victim: PostgresStore, session: Session, job: LeasedJob
) -> None:
    first, second = claim(job, 0), claim(job, 1)
    before = victim.commit(first)
    session.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = %s",
        (VICTIM,),
    )
    with pytest.raises(StoreUnavailable):
        victim.commit(second)

    again = victim.commit(first)
    assert before.verdicts.tolist() == again.verdicts.tolist()
    assert 1 == victim.counts["replays"]
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
    database_url: str, store: PostgresStore, job: LeasedJob
) -> None:
    with behind_a_proxy(database_url) as (proxy, far):
        first = far.commit(claim(job, 0))  # from here on the statement is prepared: one request
        transaction = claim(job, 1, 2)
        proxy.swallow_next_reply()
        with pytest.raises(StoreUnavailable):
            far.commit(transaction)
        assert proxy.swallowed.wait(60)
        applied = len(store.allocations())
        second = far.commit(transaction)

        assert 3 == applied, "the request had its effect"
        assert [0, 0] == second.verdicts.tolist()
        assert 1 == far.counts["replays"]
        assert 1 == proxy.counts["swallowed replies"]
    assert_applied_once(store, first, second)


def test_a_connection_that_is_cut_between_calls_is_replaced(
    database_url: str, store: PostgresStore, job: LeasedJob
) -> None:
    with behind_a_proxy(database_url) as (proxy, far):
        first = far.commit(claim(job, 0))
        assert 1 == proxy.cut_all()
        with pytest.raises(StoreUnavailable):
            far.commit(claim(job, 1))
        second = far.commit(claim(job, 2))

        assert 1 == far.counts["reconnects"]
    assert_applied_once(store, first, second)


def test_a_network_that_pauses_is_waited_for(
    database_url: str, store: PostgresStore, job: LeasedJob
) -> None:
    with behind_a_proxy(database_url) as (proxy, far), ThreadPoolExecutor(1) as pool:
        far.now_ms()
        proxy.pause()
        call = pool.submit(far.commit, claim(job, 0))
        others = grant(store, a_leased_job(store, a_spec(1)), [0], [1])
        assert not call.done()
        proxy.resume()
        outcome = call.result()

    assert [2] == outcome.fresh.sequence.tolist(), (
        "it was judged when it came, not when it was sent"
    )
    assert_applied_once(store, others, outcome)


def test_a_statement_that_takes_too_long_had_no_effect(
    database_url: str, store: PostgresStore, session: Session, job: LeasedJob
) -> None:
    transaction = claim(job, 0)
    lock = "SELECT FROM omega.machine FOR UPDATE"
    hasty = PostgresStore(database_url, application_name=VICTIM, statement_timeout_ms=150)
    with closing(hasty):
        hasty.now_ms()
        with waiting_for_a_lock(session, lock, lambda: hasty.commit(transaction)) as (call, _):
            with pytest.raises(StoreUnavailable, match="statement timeout"):
                call.result()
            assert 0 == len(store.allocations())

        assert_applied_once(store, hasty.commit(transaction))
        assert "reconnects" not in hasty.counts, "the connection is as good as before"


def test_a_deadlock_is_tried_again_inside_the_store_and_counted(
    store: PostgresStore, victim: PostgresStore, session: Session, job: LeasedJob
) -> None:
    """Nobody of ours takes locks in this order; somebody at a console might."""
    victim.now_ms()
    session.execute("SET deadlock_timeout = '60s'")  # it is the victim who finds out
    lock = "SELECT FROM omega.machine FOR UPDATE"
    with waiting_for_a_lock(session, lock, lambda: victim.commit(claim(job, 0))) as (call, _):
        session.execute("SELECT FROM omega.job FOR UPDATE")  # which the victim holds
        session.rollback()
        outcome = call.result()

    assert 1 == victim.counts["DeadlockDetected"]
    assert_applied_once(store, outcome)


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
    poor_url: str, store: PostgresStore, job: LeasedJob
) -> None:
    transaction = claim(job, 0)
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
