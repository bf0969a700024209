"""The database takes a program if and only if Python reads it back."""

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from omega.errors import BadInput
from omega.limits import LIMITS
from omega.model.jobs import JobSpec, TaskGroup
from omega.model.programs import SIGNALS, Program, Restart
from omega.model.wire import spec_from_wire, spec_to_wire
from tests.fixtures.doses import Dose

PROGRAM = Program(
    command=("sh", "-c", "exit 0"),
    env=(("A", "b"), ("MODE", "fast")),
    env_file="/a",
    image="a:1",
    user="a",
    working_dir="/a",
    timeout_ms=1,
    restart=Restart(attempts=1, within_ms=1, delay_ms=1),
)
WIRE = spec_to_wire(JobSpec(name="a", scheduler="b", groups=(TaskGroup(tasks=1, program=PROGRAM),)))
PLACE = ("groups", 0, "program")
PLACES = (
    PLACE,
    (*PLACE, "junk"),
    (*PLACE, "command"),
    (*PLACE, "command", 0),
    (*PLACE, "command", 1),
    (*PLACE, "env"),
    (*PLACE, "env", "A"),
    (*PLACE, "env", "OMEGA_A"),
    (*PLACE, "env", "OMEGA"),
    (*PLACE, "env", "omega_a"),
    (*PLACE, "env", ""),
    (*PLACE, "env", "9A"),
    (*PLACE, "env", "A\n"),
    (*PLACE, "env", "\u00c4"),
    (*PLACE, "env", "_9"),
    (*PLACE, "env_file"),
    (*PLACE, "image"),
    (*PLACE, "user"),
    (*PLACE, "working_dir"),
    (*PLACE, "timeout_ms"),
    (*PLACE, "stop_signal"),
    (*PLACE, "stop_grace_ms"),
    (*PLACE, "restart"),
    (*PLACE, "restart", "attempts"),
    (*PLACE, "restart", "within_ms"),
    (*PLACE, "restart", "delay_ms"),
    (*PLACE, "restart", "junk"),
    ("groups", 0, "duration_ms"),
)
VALUES: tuple[object, ...] = (
    *(None, True, 0, 1, -1, 1.5, 2**31, 2**63, 10**30),
    *(LIMITS.restarts_max, LIMITS.restarts_max + 1, LIMITS.stop_grace_ms_max),
    *(LIMITS.stop_grace_ms_max + 1, LIMITS.duration_ms_max, LIMITS.duration_ms_max + 1),
    *("", " ", "a", "/a", "a\nb", "/a\x7f", "/\u202e", "/\u3164", "/\U000e0001", "/\u5b57"),
    *("/" + "a" * (LIMITS.path_length_max - 1), "/" + "a" * LIMITS.path_length_max),
    *(*SIGNALS, "SIGTERM", "CHLD", "term"),
    *([], ["a"], [""], [7], ["a", ""], [None], [["a"]]),
    *(["a"] * LIMITS.command_words_max, ["a"] * (LIMITS.command_words_max + 1)),
    *({}, {"A": "b"}, {"A": None}, {"A": ["b"]}, {"A": {"B": "c"}}, {"attempts": 1}),
    *({f"A{n}": "" for n in range(LIMITS.variables_max + more)} for more in (0, 1)),
)
PHASES = [{"name": "map", "activities": 1, "duration_ms": 1, "after": None}]


@pytest.fixture
def connection(database_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database_url) as connection:
        yield connection


def changed(place: tuple[str | int, ...], value: object) -> dict[str, Any]:
    """Return the job with another value in one place."""
    wire = json.loads(json.dumps(WIRE))
    inner = wire
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    return wire  # type: ignore[no-any-return]


def without(key: str, *, inside: tuple[str | int, ...] = PLACE) -> dict[str, Any]:
    """Return the job without a key of its program."""
    wire = json.loads(json.dumps(WIRE))
    inner = wire
    for step in inside:
        inner = inner[step]
    del inner[key]
    return wire  # type: ignore[no-any-return]


def python_reads(wire: dict[str, Any]) -> bool:
    try:
        spec_from_wire(wire)
    except BadInput:
        return False
    return True


def database_takes(connection: psycopg.Connection, wires: list[dict[str, Any]]) -> list[bool]:
    rows = connection.execute(
        "SELECT omega.problem_with_job(w.it::jsonb) IS NULL"
        " FROM unnest(%s::text[]) WITH ORDINALITY AS w (it, n) ORDER BY w.n",
        [[json.dumps(wire) for wire in wires]],
    )
    return [bool(row[0]) for row in rows]


def test_the_database_takes_what_python_reads_and_nothing_else(
    connection: psycopg.Connection, dose: Dose
) -> None:
    one_in = dose(short=4, long=1)
    wires = [
        changed(place, value)
        for n, place in enumerate(PLACES)
        for value in VALUES[n % one_in :: one_in]  # each value, at one place in so many
    ]
    program: dict[str, Any] = WIRE["groups"][0]["program"]  # type: ignore[index]
    wires += [without(key) for key in program]
    wires += [without(key, inside=(*PLACE, "restart")) for key in program["restart"]]
    wires += [without("program", inside=("groups", 0))]
    read = [python_reads(wire) for wire in wires]

    taken = database_takes(connection, wires)

    assert {True, False} == set(read)
    assert [] == [
        json.dumps(wire)[:2_000]
        for wire, is_read, is_taken in zip(wires, read, taken, strict=True)
        if is_read != is_taken
    ]


def test_a_program_without_words_needs_an_image(connection: psycopg.Connection) -> None:
    for image, runs in ((None, False), ("a", True)):
        wire = changed((*PLACE, "command"), [])
        wire["groups"][0]["program"]["image"] = image

        assert [runs] == database_takes(connection, [wire])
        assert runs == python_reads(wire)


def test_workers_run_programs_unless_they_process_phases(connection: psycopg.Connection) -> None:
    for phases, runs in (([], True), (PHASES, False)):
        wire = {**WIRE, "workers": {"at_most": 2, "phases": phases}}

        assert [runs] == database_takes(connection, [wire])
        assert runs == python_reads(wire)


def test_steps_are_made_by_programs_too(connection: psycopg.Connection) -> None:
    wire = {**WIRE, "work": {"kind": "a", "steps": 1}}

    assert [True] == database_takes(connection, [wire])
    assert python_reads(wire)
