"""A database beside the user's own, made anew."""

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url

from omega.errors import SettingsError, StoreUnavailable
from omega.store.postgres.databases import NAME_LENGTH_MAX, beside, made_anew, suffixed


def test_a_database_is_named_after_the_one_beside_it() -> None:
    cell = "postgresql://u:p@h:1/cell?a=b"
    assert "postgresql://u:p@h:1/cell_demo?a=b" == suffixed(cell, "_demo")
    assert "postgresql://u:p@h:1/other?a=b" == beside(cell, "other")
    long = make_url(suffixed(f"postgresql://h/{'x' * 70}", "_demo")).database
    assert long is not None
    assert (NAME_LENGTH_MAX, "x_demo") == (len(long), long[-6:])


def test_it_is_empty_each_time_and_stays(empty_database_url: str) -> None:
    for _ in range(2):
        with made_anew(empty_database_url, "_x") as url, psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE met (id int)")
    with psycopg.connect(url) as connection:
        assert (0,) == connection.execute("SELECT count(*) FROM met").fetchone()
    drop(empty_database_url, url)


def test_it_goes_when_nobody_is_to_look_at_it(empty_database_url: str) -> None:
    with made_anew(empty_database_url, "_x", stays=False) as url, psycopg.connect(url):
        pass

    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(url)


def test_two_do_not_share_it(empty_database_url: str) -> None:
    with made_anew(empty_database_url, "_x") as url:
        with (
            pytest.raises(StoreUnavailable, match="another process works in the database"),
            made_anew(empty_database_url, "_x"),
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
        with pytest.raises(SettingsError, match="may not make the database"), made_anew(url, "_x"):
            pass
    finally:
        with psycopg.connect(empty_database_url, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(role)))


def test_a_server_that_does_not_answer_is_unavailable() -> None:
    with (
        pytest.raises(StoreUnavailable, match="failed"),
        made_anew("postgresql://127.0.0.1:1/none", "_x"),
    ):
        pass


def drop(server_url: str, url: str) -> None:
    name = make_url(url).database
    assert name is not None
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
