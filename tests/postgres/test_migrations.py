"""Migrations go up and down, and leave what the declaration says."""

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import CheckConstraint, create_engine, make_url
from sqlalchemy.pool import NullPool

from omega.errors import SchemaMismatch
from omega.model.resources import COLUMNS
from omega.store.postgres import schema
from omega.store.postgres.store import PostgresStore
from omega.store.postgres.tables import metadata

RELATIONS = """
    SELECT relname FROM pg_class
     WHERE relnamespace = 'omega'::regnamespace AND relkind IN ('r', 'i', 'S')
"""
FUNCTIONS = "SELECT proname FROM pg_proc WHERE pronamespace = 'omega'::regnamespace ORDER BY 1"
CHECKS = """
    SELECT conrelid::regclass::text, conname FROM pg_constraint
     WHERE connamespace = 'omega'::regnamespace AND contype = 'c'
"""


def _rows(url: str, query: str) -> set[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return set(connection.execute(query).fetchall())


def test_a_migrated_database_is_at_the_head_and_has_the_functions(
    empty_database_url: str,
) -> None:
    before = schema.current(empty_database_url)
    schema.migrate(empty_database_url)

    assert before is None
    assert schema.head() == schema.current(empty_database_url)
    assert ("commit_claims",) in _rows(empty_database_url, FUNCTIONS)


def test_migrating_twice_changes_nothing_that_can_be_seen(empty_database_url: str) -> None:
    schema.migrate(empty_database_url)
    relations, functions = (_rows(empty_database_url, q) for q in (RELATIONS, FUNCTIONS))
    schema.migrate(empty_database_url)

    assert relations == _rows(empty_database_url, RELATIONS)
    assert functions == _rows(empty_database_url, FUNCTIONS)


def test_down_to_base_leaves_no_table_and_no_function_and_up_again_works(
    empty_database_url: str,
) -> None:
    schema.migrate(empty_database_url)
    relations = _rows(empty_database_url, RELATIONS)
    schema.downgrade(empty_database_url, "base")

    assert {("alembic_version",), ("alembic_version_pkc",)} == _rows(empty_database_url, RELATIONS)
    assert set() == _rows(empty_database_url, FUNCTIONS)

    schema.migrate(empty_database_url)

    assert relations == _rows(empty_database_url, RELATIONS)


@pytest.mark.filterwarnings("ignore:Did not recognize type 'xid8'")
def test_the_database_is_what_the_declaration_says(database_url: str) -> None:
    url = make_url(database_url).set(drivername="postgresql+psycopg")
    with create_engine(url, poolclass=NullPool).connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={
                "include_schemas": True,
                "compare_type": True,
                "version_table_schema": "omega",
                "include_name": lambda name, kind, _: kind != "schema" or name == "omega",
            },
        )
        differences = compare_metadata(context, metadata)

    assert [] == differences


def test_every_check_that_is_declared_is_in_the_database(database_url: str) -> None:
    declared = {
        (f"omega.{table.name}", str(check.name))
        for table in metadata.tables.values()
        for check in table.constraints
        if isinstance(check, CheckConstraint)
    }

    assert len(COLUMNS) < len(declared)
    assert declared == _rows(database_url, CHECKS)


def test_a_database_without_the_functions_is_a_mismatch_that_says_what_to_run(
    empty_database_url: str,
) -> None:
    store = PostgresStore(empty_database_url)

    with pytest.raises(SchemaMismatch, match="omega db migrate"):
        store.snapshot()
    store.close()
