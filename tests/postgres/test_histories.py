"""Random histories on Postgres, compared call by call with a model in plain words."""

import psycopg
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from omega.store.base import Store
from omega.store.postgres.store import PostgresStore
from omega.testing.histories import SchedulersOnOneCell
from tests.fixtures.databases import empty_tables


def test_random_histories(database_url: str) -> None:
    class OnPostgres(SchedulersOnOneCell):
        def new_store(self) -> Store:
            with psycopg.connect(database_url, autocommit=True) as connection:
                empty_tables(connection)
            return PostgresStore(database_url, application_name="omega tests")

    run_state_machine_as_test(
        OnPostgres, settings=settings(max_examples=30, stateful_step_count=40)
    )
