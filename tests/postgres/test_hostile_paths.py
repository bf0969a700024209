"""Things of the same names, put where a careless function would look first, change nothing."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import errors, sql

from omega.model.jobs import LeasedJob
from omega.store.postgres.assignment import assign_machines
from omega.store.postgres.connection import Link
from omega.store.postgres.databases import name_of
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_spec
from omega.testing.steps import a_running_job, add_a_cell, places
from tests.fixtures.logins import Login, user_of

Session = psycopg.Connection[tuple[object, ...]]

LOOKALIKES = (
    "CREATE FUNCTION {schema}.is_owner() RETURNS boolean LANGUAGE sql AS 'SELECT true'",
    "CREATE FUNCTION {schema}.pg_has_role(name, name, text) RETURNS boolean"
    " LANGUAGE sql AS 'SELECT true'",
    "CREATE FUNCTION {schema}.release_tasks(bigint[], integer[], bigint[]) RETURNS integer"
    " LANGUAGE sql AS 'SELECT 99'",
    "CREATE FUNCTION {schema}.own_machines(bigint) RETURNS int4multirange"
    " LANGUAGE sql AS $$ SELECT '{{(,)}}'::int4multirange $$",
    "CREATE FUNCTION {schema}.contains(int4multirange, integer) RETURNS boolean"
    " LANGUAGE sql AS 'SELECT true'",
    "CREATE OPERATOR {schema}.@> (LEFTARG = int4multirange, RIGHTARG = integer,"
    " FUNCTION = {schema}.contains)",
)


@pytest.fixture
def job(store: PostgresStore) -> LeasedJob:
    """A job with a task on each of two machines."""
    return a_running_job(store, a_spec(2), add_a_cell(store, 2))


@pytest.fixture
def session(
    job: LeasedJob, login: Login, store: PostgresStore, database_url: str
) -> Iterator[Session]:
    """A node that stands for the first machine; it may use the schema public, and temporary tables.

    PUBLIC may do the latter in every database where nobody has run `omega db init --roles`.
    """
    url = login("alice", "omega_node")
    user = sql.Identifier(user_of(url))
    assign_machines(database_url, user_of(url), ["machine-1"])
    with psycopg.connect(database_url, autocommit=True) as owner:
        owner.execute(sql.SQL("GRANT CREATE ON SCHEMA public TO {}").format(user))
        database = sql.Identifier(name_of(database_url))
        owner.execute(sql.SQL("GRANT TEMPORARY ON DATABASE {} TO {}").format(database, user))
        with psycopg.connect(url, autocommit=True) as connection:
            yield connection
        owner.execute(sql.SQL("DROP OWNED BY {}").format(user))


def tables_of_ones_own(session: Session) -> None:
    """Make temporary tables in which everything is as a node would like it."""
    session.execute("CREATE TEMP TABLE node (role_name text, machines int4multirange)")
    session.execute("INSERT INTO node VALUES (current_user, '{(,)}')")
    session.execute("CREATE TEMP TABLE machine_profile (id integer, name text)")
    session.execute("CREATE TEMP TABLE job (id bigint)")
    session.execute(
        "CREATE TEMP TABLE allocation (job_id bigint, task integer, machine_id integer,"
        " started_at timestamptz)"
    )
    session.execute("CREATE TEMP TABLE pg_roles (rolname name, oid oid)")


def end(session: Session, job: LeasedJob, task: int) -> object:
    called = session.execute(
        "SELECT omega.end_tasks(ARRAY[%s]::bigint[], ARRAY[%s]::integer[], NULL)", (job.id, task)
    ).fetchone()
    return called[0] if called else None


@pytest.mark.parametrize(
    "path", ["pg_temp, public, omega", "public, pg_temp, pg_catalog", "public, pg_catalog, omega"]
)
def test_lookalikes_on_the_path_change_nothing(
    session: Session, job: LeasedJob, store: PostgresStore, path: str
) -> None:
    tables_of_ones_own(session)
    for lookalike in LOOKALIKES:
        for schema in ("public", "pg_temp"):
            session.execute(lookalike.format(schema=schema).encode())
    session.execute(f"SET search_path = {path}".encode())

    with pytest.raises(errors.InsufficientPrivilege, match="does not stand"):
        end(session, job, 1)
    assert 2 == len(places(store))
    assert 1 == end(session, job, 0)
    assert {(job.id, 1): 2} == places(store)


def test_what_a_caller_may_set_changes_nothing(
    session: Session, job: LeasedJob, store: PostgresStore
) -> None:
    for name, value in {
        "transform_null_equals": "on",
        "standard_conforming_strings": "off",
        "array_nulls": "off",
        "quote_all_identifiers": "on",
        "DateStyle": "'Postgres, DMY'",
        "TimeZone": "'Asia/Kathmandu'",
        "role": f'"{session.info.user}"',
    }.items():
        session.execute(f"SET {name} = {value}".encode())

    with pytest.raises(errors.InsufficientPrivilege, match="does not stand"):
        end(session, job, 1)
    assert 1 == end(session, job, 0)
    assert {(job.id, 1): 2} == places(store)


def test_our_own_connections_look_in_our_schema_alone(session: Session, database_url: str) -> None:
    """Or whoever may make things in the schema public could have the owner run them."""
    session.execute("CREATE FUNCTION public.trap() RETURNS integer LANGUAGE sql AS 'SELECT 1'")
    link = Link(database_url, application_name="omega tests", statement_timeout_ms=30_000)
    try:
        path = link.call("SELECT current_schemas(true)::text[]")
    finally:
        link.close()

    assert [(["pg_catalog", "omega"],)] == path
