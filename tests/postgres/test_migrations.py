"""Migrations go up and down, and leave what the declaration says."""

from contextlib import closing
from dataclasses import replace

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from psycopg import sql
from sqlalchemy import CheckConstraint, create_engine, make_url
from sqlalchemy.pool import NullPool

from omega.cell.view import View
from omega.errors import NotAllowed, OmegaError, SchemaMismatch, StoreUnavailable
from omega.model.arrays import integers
from omega.model.machines import MachineState
from omega.model.resources import machine_capacity
from omega.store.postgres import revision, schema
from omega.store.postgres.databases import beside, name_of, suffixed
from omega.store.postgres.store import PostgresStore
from omega.store.postgres.tables import metadata
from omega.testing.builders import a_spec
from omega.testing.elastic_contract import PHASES, an_elastic_spec, some_helpers
from omega.testing.machine_lease_contract import fall_silent, hold
from omega.testing.progress_contract import RESNET, a_job_in_steps, report, told
from omega.testing.steps import a_running_job, add_a_cell, grant, recall
from omega.testing.twin import row_differences

RELATIONS = """
    SELECT relname FROM pg_class
     WHERE relnamespace = 'omega'::regnamespace AND relkind IN ('r', 'i', 'S')
"""
FUNCTIONS = "SELECT proname FROM pg_proc WHERE pronamespace = 'omega'::regnamespace ORDER BY 1"
OPTIONS = """
    SELECT relname::text, unnest(reloptions) FROM pg_class
     WHERE relnamespace = 'omega'::regnamespace AND relkind = 'r'
"""
CHECKS = """
    SELECT conrelid::regclass::text, conname FROM pg_constraint
     WHERE connamespace = 'omega'::regnamespace AND contype = 'c'
"""
COLUMNS = """
    SELECT attname FROM pg_attribute
     WHERE attrelid = 'omega.machine'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""


def _rows(url: str, query: str) -> set[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return set(connection.execute(query).fetchall())


def test_a_migrated_database_is_at_the_head_and_has_the_functions(
    empty_database_url: str,
) -> None:
    before = revision.current(empty_database_url)
    schema.migrate(empty_database_url)

    assert before is None
    assert revision.head() == revision.current(empty_database_url)
    assert ("commit_claims",) in _rows(empty_database_url, FUNCTIONS)


def test_migrating_twice_changes_nothing_that_can_be_seen(empty_database_url: str) -> None:
    schema.migrate(empty_database_url)
    relations, functions = (_rows(empty_database_url, q) for q in (RELATIONS, FUNCTIONS))
    schema.migrate(empty_database_url)

    assert relations == _rows(empty_database_url, RELATIONS)
    assert functions == _rows(empty_database_url, FUNCTIONS)


def test_machines_and_views_of_them_outlive_down_and_up(
    empty_database_url: str, database_url: str
) -> None:
    schema.migrate(empty_database_url)
    with closing(PostgresStore(empty_database_url)) as store:
        machines = add_a_cell(store, 3)
        a_running_job(store, a_spec(2), machines[:2])
        store.set_state(integers(machines[2:]), MachineState.DRAINING)
        store.resize(machines[1], machine_capacity(1, 1), notice_ms=60_000)
        view = View(store.snapshot())

    schema.downgrade(empty_database_url, "0008")
    schema.migrate(empty_database_url)
    with closing(PostgresStore(empty_database_url)) as store:
        assert [] == row_differences(view.rows(), store.snapshot().rows)
        assert machines[1:2] == [notice.machine for notice in store.notices()]
        a_running_job(store, a_spec(), machines[:1])
        assert store.changes_since(view.mark).generation > view.generation
        assert [] == list(store.verify())
    assert _columns(database_url) == _columns(empty_database_url)


def test_a_machines_columns_are_in_the_order_that_is_declared(database_url: str) -> None:
    assert _columns(database_url) == [column.name for column in metadata.tables["omega.machine"].c]


def _columns(url: str) -> list[object]:
    with psycopg.connect(url) as connection:
        return [name for (name,) in connection.execute(COLUMNS)]


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
    } | {("-", f"{word}_known") for word in ("job_state", "park_reason")}

    assert 10 < len(declared)
    assert declared == _rows(database_url, CHECKS)


def test_the_storage_options_that_are_declared_are_in_the_database(database_url: str) -> None:
    declared = {
        (table.name, f"{option}={value}")
        for table in metadata.tables.values()
        for option, value in (table.dialect_options["postgresql"]["with"] or {}).items()
    }

    assert ("machine", "fillfactor=50") in declared
    assert declared == _rows(database_url, OPTIONS)


def test_a_job_with_numbers_that_no_program_reads_does_not_stop_a_migration(
    empty_database_url: str,
) -> None:
    """Older functions let it in; its text would be thousands of times as long as it is."""
    schema.migrate(empty_database_url)
    with closing(PostgresStore(empty_database_url)) as store:
        hostile, honest = store.submit([a_spec(1), a_spec(1)])
    schema.downgrade(empty_database_url, "0011")
    with psycopg.connect(empty_database_url) as owner:
        owner.execute(
            "UPDATE omega.job_spec SET wire = wire || %s::jsonb WHERE job_id = %s",
            (f'{{"junk": [{", ".join(["1e130000"] * 20_000)}]}}', hostile),
        )
    schema.migrate(empty_database_url)

    with closing(PostgresStore(empty_database_url)) as store:
        leased = store.lease("batch", holder="me", jobs_max=9, lease_ms=60_000)
    assert [honest] == [job.id for job in leased]


def test_jobs_in_steps_outlive_down_and_up(empty_database_url: str) -> None:
    schema.migrate(empty_database_url)
    with closing(PostgresStore(empty_database_url)) as store:
        specs = [a_job_in_steps(), a_spec(2, spread_over="zone"), a_spec(1)]
        counted, *_, strange = store.submit(specs)
        report(store, counted, 400, 4_000)
    schema.downgrade(empty_database_url, "0013")
    with psycopg.connect(empty_database_url) as owner:
        before = owner.execute(
            "SELECT wire -> 'training', wire ? 'work', sited FROM omega.job_spec ORDER BY job_id"
        ).fetchall()
        owner.execute(
            'UPDATE omega.job_spec SET wire = wire || \'{"training": "model"}\' WHERE job_id = %s',
            (strange,),
        )
    schema.migrate(empty_database_url)

    with closing(PostgresStore(empty_database_url)) as store:
        leased = store.lease("batch", holder="me", jobs_max=9, lease_ms=60_000)
        assert [(counted, 400, 4_000)] == told(store, counted)
        assert [RESNET] == list(store.progress(integers([counted])).kind)
    old = {"model": RESNET, "steps": 1_000}
    assert [(old, False, False), (None, False, True), (None, False, False)] == before
    assert specs[:2] == [job.spec for job in leased]


def test_elastic_jobs_outlive_down_and_up_as_ordinary_ones(empty_database_url: str) -> None:
    schema.migrate(empty_database_url)
    with closing(PostgresStore(empty_database_url)) as store:
        (machine,) = add_a_cell(store, 1)
        spec = an_elastic_spec(1, phases=PHASES)
        parent = a_running_job(store, spec, [machine])
        helpers = some_helpers(store, parent, 1)
        grant(store, helpers, [0], [machine])
    schema.downgrade(empty_database_url, "0015")
    with psycopg.connect(empty_database_url) as owner:
        told = owner.execute("SELECT wire ? 'workers' FROM omega.job_spec").fetchall()
    schema.migrate(empty_database_url)

    with closing(PostgresStore(empty_database_url)) as store:
        assert [] == list(store.verify())
        assert [] == store.elastic_jobs("batch", jobs_max=9)
        recalled = recall(store, None)
        assert [replace(spec, workers=None), replace(helpers.spec, workers=None)] == [
            job.spec for job in recalled
        ]
    assert [(False,), (False,)] == told


def test_machines_that_their_leases_took_down_are_up_again_without_leases(
    empty_database_url: str,
) -> None:
    schema.migrate(empty_database_url)
    with closing(PostgresStore(empty_database_url)) as store:
        silent, draining, down, held = add_a_cell(store, 4)
        store.set_state(integers([draining]), MachineState.DRAINING)
        fall_silent(store, silent, draining, down)
        hold(store, held)
        store.set_state(integers([down]), MachineState.DOWN)
        store.expire_machines()
        mark = store.snapshot().mark
    schema.downgrade(empty_database_url, "0017")
    schema.migrate(empty_database_url)

    with closing(PostgresStore(empty_database_url)) as store:
        changes = store.changes_since(mark)
        is_up = [MachineState.OPEN, MachineState.DRAINING, MachineState.DOWN, MachineState.OPEN]
        assert is_up == store.snapshot().rows.state.tolist()
        assert {silent, draining} <= set(changes.rows.id.tolist())
        assert [] == list(store.verify())
        assert [] == store.expire_machines()


def complaint(url: str) -> str:
    """Return what a store says of a database that it cannot use."""
    with (
        closing(PostgresStore(url)) as store,
        pytest.raises(SchemaMismatch) as raised,
    ):
        store.snapshot()
    return str(raised.value)


def test_a_database_without_our_tables_has_no_cell(empty_database_url: str) -> None:
    no_cell = "this database has no cell yet; run: omega db init"
    before = complaint(empty_database_url)
    schema.migrate(empty_database_url)
    schema.downgrade(empty_database_url, "base")

    assert no_cell == before
    assert no_cell == complaint(empty_database_url)


def test_a_database_of_another_revision_says_which_and_what_to_run(
    empty_database_url: str,
) -> None:
    schema.migrate(empty_database_url)
    with psycopg.connect(empty_database_url) as connection:
        connection.execute("UPDATE omega.alembic_version SET version_num = '0000'")
        connection.execute("ALTER TABLE omega.machine RENAME COLUMN packed_use TO carried")

    assert (
        f"this database is at revision 0000, this program needs {revision.head()};"
        " run: omega db migrate"
    ) == complaint(empty_database_url)


def test_a_database_with_other_functions_says_what_is_missing(empty_database_url: str) -> None:
    schema.migrate(empty_database_url)
    with psycopg.connect(empty_database_url) as connection:
        connection.execute("DROP FUNCTION omega.read_machines")

    sentence = complaint(empty_database_url)

    assert "omega.read_machines" in sentence
    assert sentence.endswith("; run: omega db migrate")


def test_the_revision_of_a_server_that_does_not_answer_is_unknown() -> None:
    with pytest.raises(StoreUnavailable, match="refused"):
        revision.current("postgresql://nobody:secret@127.0.0.1:1/none")


def refusal(url: str, kind: type[OmegaError]) -> str:
    """Return the sentence with which a migration is refused."""
    with pytest.raises(kind) as raised:
        schema.migrate(url)
    sentence = str(raised.value)
    assert "\n" not in sentence
    assert "s3cret" not in sentence
    return sentence


def test_a_schema_of_somebody_else_is_left_alone(empty_database_url: str) -> None:
    with psycopg.connect(empty_database_url) as connection:
        connection.execute("CREATE SCHEMA omega CREATE TABLE job (theirs text)")

    assert "holds job" in refusal(empty_database_url, SchemaMismatch)
    assert {("job",)} == _rows(empty_database_url, RELATIONS)


def test_an_empty_schema_of_that_name_is_taken(empty_database_url: str) -> None:
    with psycopg.connect(empty_database_url) as connection:
        connection.execute("CREATE SCHEMA omega")
    schema.migrate(empty_database_url)

    assert revision.head() == revision.current(empty_database_url)


def test_a_revision_of_a_later_program_is_told(empty_database_url: str) -> None:
    schema.migrate(empty_database_url)
    with psycopg.connect(empty_database_url) as connection:
        connection.execute("UPDATE omega.alembic_version SET version_num = '9999'")

    assert "9999" in refusal(empty_database_url, SchemaMismatch)
    assert ("commit_claims",) in _rows(empty_database_url, FUNCTIONS)


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_of_another_encoding_is_refused(empty_database_url: str, encoding: str) -> None:
    there = suffixed(empty_database_url, "_x")
    name = sql.Identifier(name_of(there))
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        create = sql.SQL("CREATE DATABASE {} ENCODING {} LOCALE 'C' TEMPLATE template0")
        connection.execute(create.format(name, encoding))
        try:
            assert f"encoding is {encoding}" in refusal(there, SchemaMismatch)
            assert revision.current(there) is None
        finally:
            connection.execute(sql.SQL("DROP DATABASE {}").format(name))


def test_a_user_who_may_not_make_a_schema_is_told(empty_database_url: str) -> None:
    user = f"{make_url(empty_database_url).database}_guest"
    as_guest = make_url(empty_database_url).set(username=user, password="s3cret")
    role = sql.Identifier(user)
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 's3cret'").format(role))
        try:
            said = refusal(as_guest.render_as_string(hide_password=False), NotAllowed)
        finally:
            connection.execute(sql.SQL("DROP ROLE {}").format(role))

    assert said.startswith("the database's user may not do this: permission denied")


def test_a_database_or_a_user_that_is_not_there_is_told(empty_database_url: str) -> None:
    absent = beside(empty_database_url, "absent")
    nobody = make_url(empty_database_url).set(username="nobody_at_all", password="s3cret")

    assert "absent" in refusal(absent, StoreUnavailable)
    assert "nobody_at_all" in refusal(
        nobody.render_as_string(hide_password=False), StoreUnavailable
    )
    assert "refused" in refusal("postgresql://nobody:s3cret@127.0.0.1:1/none", StoreUnavailable)
