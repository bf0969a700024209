"""A database beside the user's own, made anew."""

from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlencode

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import make_url

from omega.errors import SettingsError, StoreUnavailable
from omega.store.postgres.databases import (
    NAME_LENGTH_MAX,
    beside,
    name_of,
    recreated_database,
    suffixed,
)
from omega.store.postgres.revision import current, head
from omega.store.postgres.schema import migrate
from tests.fixtures.at_work import wait_until
from tests.fixtures.logins import Login


def test_a_database_is_named_after_the_one_beside_it() -> None:
    cell = "postgresql://u:p@h:1/cell?sslmode=disable"
    assert "postgresql://u:p@h:1/cell_demo?sslmode=disable" == suffixed(cell, "_demo")
    assert "postgresql://u:p@h:1/other?sslmode=disable" == beside(cell, "other")
    long = name_of(suffixed(f"postgresql://h/{'x' * 70}", "_demo"))
    assert (NAME_LENGTH_MAX, "x_demo") == (len(long), long[-6:])


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://a:1,b:2/cell", "postgresql://a:1,b:2/cell_demo"),
        (
            "postgresql://u:a?b@h/cell?sslmode=disable",
            "postgresql://u:a?b@h/cell_demo?sslmode=disable",
        ),
        ("postgres://u@/cell?host=/run/pg&port=1", "postgres://u@/cell_demo?host=/run/pg&port=1"),
        ("postgresql://h?dbname=cell&sslmode=disable", "postgresql://h/cell_demo?sslmode=disable"),
        ("postgresql://h/a%2Fb", "postgresql://h/a%2Fb_demo"),
        ("postgresql://[::1]:1", "postgresql://[::1]:1/whoever_demo"),
        ("postgresql://me@h", "postgresql://me@h/me_demo"),
    ],
)
def test_any_url_that_libpq_reads_has_a_database_beside_it(
    monkeypatch: pytest.MonkeyPatch, url: str, expected: str
) -> None:
    monkeypatch.setenv("PGUSER", "whoever")

    assert expected == suffixed(url, "_demo")
    assert name_of(url) + "_demo" == name_of(expected)


def test_a_url_of_two_hosts_is_as_good_as_any(empty_database_url: str) -> None:
    """The first does not answer; the second is the server."""
    known = conninfo_to_dict(empty_database_url)
    hosts = f"/nowhere,{known['host']}", f"1,{known['port']}"
    rest = {key: value for key, value in known.items() if key not in ("host", "port")}
    url = "postgresql:///?" + urlencode({**rest, "host": hosts[0], "port": hosts[1]})

    migrate(url)
    with recreated_database(url, "_x") as beside_it:
        assert current(beside_it) is None
        migrate(beside_it)

        assert head() == current(url) == current(beside_it)
    drop(empty_database_url, beside_it)


def test_it_is_empty_each_time_and_stays(empty_database_url: str) -> None:
    for _ in range(2):
        with (
            recreated_database(empty_database_url, "_x") as url,
            psycopg.connect(url) as connection,
        ):
            connection.execute("CREATE TABLE met (id int)")
    with psycopg.connect(url) as connection:
        assert (0,) == connection.execute("SELECT count(*) FROM met").fetchone()
    drop(empty_database_url, url)


def test_it_goes_when_nobody_is_to_look_at_it(empty_database_url: str) -> None:
    with recreated_database(empty_database_url, "_x", stays=False) as url, psycopg.connect(url):
        pass

    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(url)


def test_two_do_not_share_it(empty_database_url: str) -> None:
    with recreated_database(empty_database_url, "_x") as url:
        with (
            pytest.raises(StoreUnavailable, match="another process works in the database"),
            recreated_database(empty_database_url, "_x"),
        ):
            pass
        with psycopg.connect(url) as connection:
            assert (1,) == connection.execute("SELECT 1").fetchone(), "it was left alone"
    drop(empty_database_url, url)


def test_who_may_not_make_databases_is_told(empty_database_url: str) -> None:
    role = f"{make_url(empty_database_url).database}_poor"
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        create = sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'poor'")
        connection.execute(create.format(sql.Identifier(role)))
    poor = make_url(empty_database_url).set(username=role, password="poor")
    url = poor.render_as_string(hide_password=False)

    try:
        with (
            pytest.raises(SettingsError, match="may not make the database"),
            recreated_database(url, "_x"),
        ):
            pass
    finally:
        with psycopg.connect(empty_database_url, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


def test_a_superusers_process_in_a_database_is_waited_for(
    empty_database_url: str, own_login: Login
) -> None:
    """Such as autovacuum's; an owner who is no superuser cannot end it."""
    owner = own_login("maker", "CREATEDB")
    name = name_of(suffixed(owner, "_x"))
    with (
        psycopg.connect(empty_database_url, autocommit=True) as onlooker,
        ThreadPoolExecutor(1) as pool,
    ):
        making = recreated_database(owner, "_x", stays=False)
        making.__enter__()
        intruder = psycopg.connect(beside(empty_database_url, name))
        ending = pool.submit(making.__exit__, None, None, None)
        plainly = "SELECT FROM pg_stat_activity WHERE state = 'active' AND query = %s"
        drop = sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(name))
        said = [drop.as_string(onlooker)]
        wait_until(lambda: onlooker.execute(plainly, said).rowcount, "the drop to wait")
        intruder.close()
        ending.result()
        left = onlooker.execute("SELECT FROM pg_database WHERE datname = %s", [name]).rowcount

    assert 0 == left


def test_a_server_that_does_not_answer_is_unavailable() -> None:
    with (
        pytest.raises(StoreUnavailable, match="failed"),
        recreated_database("postgresql://127.0.0.1:1/none", "_x"),
    ):
        pass


def drop(server_url: str, url: str) -> None:
    name = make_url(url).database
    assert name is not None
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
