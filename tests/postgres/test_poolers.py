"""Processes that reach their server through pgbouncer."""

from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from omega.errors import BadInput, NotAllowed, StoreUnavailable
from omega.store.postgres.connection import Link
from omega.store.postgres.schema import migrate
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell, a_spec
from tests.fixtures.at_work import Plan, assert_whole, at_work, drain, wait_until
from tests.fixtures.poolers import SERVERS_MAX, Pooler

SETTINGS = """
    SELECT current_setting('statement_timeout'), current_setting('lock_timeout'),
           current_setting('search_path'), current_setting('transaction_isolation')
"""


def linked(url: str, statement_timeout_ms: int = 7_000) -> Link:
    return Link(url, application_name="omega", statement_timeout_ms=statement_timeout_ms)


def test_settings_come_with_each_call_and_stay_with_no_server(
    pooler: Pooler, database_url: str
) -> None:
    url = pooler.through(database_url)
    with (
        closing(linked(url, 7_000)) as one,
        closing(linked(url, 9_000)) as other,
        psycopg.connect(url, autocommit=True, prepare_threshold=None) as stranger,
    ):
        for _ in range(3 * SERVERS_MAX):
            assert [("7s", "2s", "omega,pg_temp", "read committed")] == one.call(SETTINGS)
            assert [("9s", "2s", "omega,pg_temp", "read committed")] == other.call(SETTINGS)
            (plain,) = stranger.execute(SETTINGS).fetchall()
            assert plain[0] not in ("7s", "9s")


def test_a_statement_is_cut_off_in_time(pooler: Pooler, database_url: str) -> None:
    with closing(linked(pooler.through(database_url), 100)) as link:
        with pytest.raises(StoreUnavailable, match="timeout"):
            link.call("SELECT pg_sleep(60)")
        assert [(1,)] == link.call("SELECT 1")


def test_a_call_that_fails_leaves_no_transaction(pooler: Pooler, database_url: str) -> None:
    with closing(PostgresStore(pooler.through(database_url))) as store:
        store.add_machines(a_cell(1))
        for _ in range(3 * SERVERS_MAX):
            with pytest.raises(BadInput, match="machine-1 already"):
                store.add_machines(a_cell(1))
        assert 1 == len(store.snapshot().rows)


def test_settings_that_a_pooler_drops_are_noticed(
    session_pooler: Pooler, database_url: str
) -> None:
    with closing(linked(session_pooler.through(database_url))) as link:
        assert [("7s", "2s", "omega,pg_temp", "read committed")] == link.call(SETTINGS)


def test_a_wrong_password_is_refused_in_a_sentence(
    pooler_with_passwords: Pooler, database_url: str
) -> None:
    url = make_conninfo(pooler_with_passwords.through(database_url), password="wrong")
    with (
        closing(linked(url)) as link,
        pytest.raises(NotAllowed, match="refuses the password of OMEGA_DATABASE_URL"),
    ):
        link.call("SELECT 1")


def test_a_database_is_made_through_a_pooler(pooler: Pooler, empty_database_url: str) -> None:
    url = pooler.through(empty_database_url)
    migrate(url)
    with closing(PostgresStore(url)) as store:
        assert [1, 2] == store.submit([a_spec(), a_spec()])


def test_schedulers_race_through_a_pooler_that_is_restarted(
    pooler: Pooler, database_url: str, tmp_path: Path
) -> None:
    url = pooler.through(database_url)
    plans = [
        Plan(url=url, log=tmp_path / name, name=name, thinks_s=0.002) for name in ("a", "b", "c")
    ]
    with closing(PostgresStore(database_url)) as store:
        store.add_machines(a_cell(4, cpu_milli=90_000))
        with at_work(*plans):
            jobs = store.submit([a_spec(3) for _ in range(60)])
            wait_until(lambda: len(store.allocations()) > 30, "them to get going")
            pooler.stop()
            pooler.start()
            wait_until(lambda: len(store.allocations()) == 180, "all to be placed")
        drain(url)
        assert_whole(store, jobs, *(plan.log for plan in plans))
