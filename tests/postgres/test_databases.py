"""The database fixtures keep the promises that other tests build on."""

import os

import psycopg
import pytest

from tests.fixtures.databases import empty_tables


def test_a_server_can_be_of_two_kinds(server_url: str) -> None:
    with psycopg.connect(server_url) as connection:
        row = connection.execute("SELECT current_setting('server_version_num')::int").fetchone()

    assert row is not None
    assert row[0] >= 150_000


def test_each_worker_has_tables_of_its_own(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        rows = connection.execute(
            "SELECT count(*) FILTER (WHERE tablename = 'machine'), current_database()"
            " FROM pg_tables WHERE schemaname = 'omega'"
        ).fetchone()

    assert rows is not None
    assert 1 == rows[0]
    assert os.environ.get("PYTEST_XDIST_WORKER", "main") in rows[1]


def test_emptied_tables_are_as_they_were_created(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE omega.probe (id serial, number int)")
        connection.execute("INSERT INTO omega.probe (number) VALUES (7), (8)")
        connection.execute("UPDATE omega.cell SET generation = 9")
        empty_tables(connection)
        generation = connection.execute("SELECT generation FROM omega.cell").fetchall()
        ids = connection.execute("INSERT INTO omega.probe (number) VALUES (9) RETURNING id")

        assert [(1,)] == ids.fetchall()
        assert [(0,)] == generation

        connection.execute("DROP TABLE omega.probe")


def test_a_number_that_a_refused_row_took_is_given_again(database_url: str) -> None:
    refused = "INSERT INTO omega.probe (number) VALUES (-1)"
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE omega.probe (id serial, number int CHECK (number > 0))")
        with pytest.raises(psycopg.errors.CheckViolation):
            connection.execute(refused)
        empty_tables(connection)
        ids = connection.execute("INSERT INTO omega.probe (number) VALUES (9) RETURNING id")

        assert [(1,)] == ids.fetchall()

        connection.execute("DROP TABLE omega.probe")


def test_what_the_template_knows_of_its_revision_stays(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        row = connection.execute("SELECT count(*) FROM omega.alembic_version").fetchone()

    assert (1,) == row


def test_an_empty_database_is_empty(empty_database_url: str) -> None:
    with psycopg.connect(empty_database_url) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_namespace"
            " WHERE nspname NOT IN ('public', 'information_schema') AND nspname !~ '^pg_'"
        ).fetchone()

    assert (0,) == row
