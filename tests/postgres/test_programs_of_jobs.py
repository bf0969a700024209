"""The database takes the programs that Python writes, and refuses those that Python refuses."""

import json
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from omega.model.elastic import Phase, Workers
from omega.model.jobs import JobSpec, TaskGroup
from omega.model.program_wire import program_to_wire
from omega.model.programs import Program
from omega.model.wire import spec_from_wire, spec_to_wire
from omega.store.postgres.store import PostgresStore
from tests.fixtures.doses import examples
from tests.fixtures.programs import PROGRAMS, bent_programs

SPEC = JobSpec(
    name="report",
    scheduler="batch",
    groups=(TaskGroup(tasks=1, program=Program(command=("true",))),),
)


@pytest.fixture
def connection(database_url: str) -> psycopg.Connection:
    return psycopg.connect(database_url, autocommit=True)


def problem(connection: psycopg.Connection, wire: object) -> str | None:
    """Return why the database refuses a job; None if it takes it."""
    row = connection.execute("SELECT omega.problem_with_job(%s)", [Jsonb(wire)]).fetchone()
    assert row is not None
    said: str | None = row[0]
    return said


def with_program(program: object, **changed: object) -> dict[str, Any]:
    wire = json.loads(json.dumps(spec_to_wire(SPEC)))
    wire["groups"][0] |= {"program": program, **changed}
    return dict(wire)


def test_the_database_takes_what_python_writes_and_gives_it_back(
    connection: psycopg.Connection,
) -> None:
    with connection:

        @examples(100)
        @given(st.lists(PROGRAMS, min_size=1, max_size=20))
        def is_taken(programs: list[Program]) -> None:
            groups = tuple(TaskGroup(tasks=1, program=program) for program in programs)
            spec = JobSpec(name="a", scheduler="b", groups=groups)
            wire = Jsonb(spec_to_wire(spec))
            row = connection.execute(
                "SELECT omega.problem_with_job(j.wire), j.wire FROM (SELECT %s::jsonb) AS j (wire)",
                [wire],
            ).fetchone()
            assert row is not None
            assert row[0] is None
            assert spec == spec_from_wire(row[1])

        is_taken()


def test_the_database_refuses_what_python_refuses(connection: psycopg.Connection) -> None:
    with connection:
        taken = [it for it in bent_programs() if problem(connection, with_program(it)) is None]

        assert [] == taken
        assert problem(connection, with_program(program_to_wire(Program(command=("a",))))) is None


def test_a_program_is_refused_beside_a_duration_or_phases(connection: psycopg.Connection) -> None:
    program = program_to_wire(Program(command=("a",)))
    elastic = spec_to_wire(
        JobSpec(
            name="a",
            scheduler="b",
            groups=(TaskGroup(tasks=1),),
            workers=Workers(2, (Phase("a", 1, 1),)),
        )
    )
    with connection:
        both = problem(connection, with_program(program, duration_ms=7))
        assert both == "a task group is not in the wire form"
        assert problem(connection, elastic) is None
        said = problem(connection, {**elastic, "groups": with_program(program)["groups"]})
        assert said == "its tasks run a program, but a job with phases ends with the last activity"


def test_a_job_without_the_key_is_taken(connection: psycopg.Connection) -> None:
    wire = with_program(None)
    group = wire["groups"][0]
    with connection:
        assert problem(connection, wire) is None
        del group["program"]
        assert problem(connection, wire) is None


def test_a_program_is_stored_and_read_back(store: PostgresStore) -> None:
    store.submit([SPEC])

    (leased,) = store.lease("batch", holder="replica", jobs_max=1, lease_ms=60_000)
    assert leased.spec == SPEC
