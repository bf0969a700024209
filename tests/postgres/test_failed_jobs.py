"""Jobs that fail in Postgres: on the command line, in checks, in history and in migrations."""

from contextlib import closing

import psycopg
import pytest

from omega.cli.job.submit import told_of
from omega.lifecycle.states import State
from omega.model.exits import Exit, ExitCause, TaskOutput
from omega.model.jobs import LeasedJob
from omega.store.postgres import schema
from omega.store.postgres.history import prune
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_spec
from omega.testing.exit_contract import BADLY, KILLED, an_exit, counts, report, started
from omega.testing.steps import a_running_job, add_a_cell, end, status_of
from tests.fixtures.command_line import Omega, document, summary
from tests.unit.cli.hostile_texts import raw_in

pytestmark = pytest.mark.usefixtures("kept_sessions")

HOUR_MS = 60 * 60 * 1_000
AGE = """
    UPDATE omega.transaction SET committed_at = committed_at - interval '40 days';
    UPDATE omega.task_exit SET ended_at = ended_at - interval '40 days';
    UPDATE omega.job SET finished_at = finished_at - interval '40 days'
"""


@pytest.fixture
def omega_here(omega: Omega, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Omega:
    """The command line, on the test's own database."""
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)
    return omega


def a_failed_job(store: PostgresStore, machine: int, name: str = "job") -> LeasedJob:
    """Run a job of two tasks: the first fails with code 3, the second for want of memory."""
    job = a_running_job(store, a_spec(2, name=name), [machine] * 2)
    began = started(store, job, 0)
    report(store, job, 0, how=BADLY)
    report(store, job, 1, how=KILLED)
    store.report_outputs([TaskOutput(job.id, 0, began, "stderr", 4, b"oops")])
    assert (State.FAILED, 2, 2, 2) == counts(store, job)
    return job


def rows_left(url: str) -> dict[str, int]:
    with psycopg.connect(url) as connection:
        return {
            table: connection.execute(f"SELECT count(*) FROM omega.{table}".encode()).fetchone()[0]  # type: ignore[index]
            for table in ("task_exit", "task_output", "job")
        }


def test_a_job_that_failed_is_shown_by_number_and_by_name(
    omega_here: Omega, store: PostgresStore
) -> None:
    (machine,) = add_a_cell(store, 1)
    older, newer = (a_failed_job(store, machine, name="train") for _ in range(2))
    numbered = a_running_job(store, a_spec(name=str(older.id)), [machine])

    shown = summary(omega_here("job", "train", "--json", "-"))
    said = omega_here("job", older.id).out

    assert (newer.id, "failed", 2) == (shown["id"], shown["state"], shown["failed"])
    assert {"exited": 1, "out_of_memory": 1} == shown["exit_counts"]
    assert [(1, None, 9), (0, 3, None)] == [
        (it["task"], it["code"], it["signal"]) for it in shown["exits"]
    ]
    assert f"job          {older.id}  train" in said
    assert "exited with code 3: it gave up" in said
    assert numbered.id == summary(omega_here("job", numbered.id, "--json", "-"))["id"]
    listed = document(omega_here("jobs", "--state", "failed", "--json", "-"))["rows"]
    assert [newer.id, older.id] == [row["id"] for row in listed]
    assert "2 failed" in omega_here("status").out


def test_jobs_that_failed_are_told_apart(store: PostgresStore) -> None:
    (machine,) = add_a_cell(store, 1)
    failed = status_of(store, a_failed_job(store, machine))
    (waits,) = store.submit([a_spec()])

    assert "1 job failed" == told_of([failed])
    assert "1 job not fully placed, 2 jobs failed" == told_of(
        [failed, status_of(store, waits), failed]
    )


@pytest.mark.parametrize("name", ["nobody", "0", "9" * 30, "\u0663"])
def test_a_job_that_never_was_is_told(omega_here: Omega, store: PostgresStore, name: str) -> None:
    add_a_cell(store, 1)

    assert (1, "", f"omega: there is no job {name}\n") == omega_here("job", name)


@pytest.mark.parametrize("name", ["\x1b[2J", "a\n9 fine", "\u202e", "\udcff"])
def test_a_name_that_is_typed_is_complained_of_printably(
    omega_here: Omega, store: PostgresStore, name: str
) -> None:
    add_a_cell(store, 1)

    ran = omega_here("job", name)

    assert ran.code in (1, 2)
    assert [] == raw_in(ran.err)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE omega.job SET failed = 0",
        "UPDATE omega.job SET state = 'succeeded'",
        "UPDATE omega.job SET failed = 1",
        "UPDATE omega.job SET state = 'running', minimum = 2, finished_at = NULL",
    ],
)
def test_a_count_of_failures_that_is_wrong_is_found(
    store: PostgresStore, database_url: str, change: str
) -> None:
    (machine,) = add_a_cell(store, 1)
    a_failed_job(store, machine)
    assert [] == list(store.verify())
    with psycopg.connect(database_url) as connection:
        connection.execute(change.encode())

    assert "a job has failed if a task of it has" in {it.invariant for it in store.verify()}


def test_what_programs_left_goes_with_their_job(store: PostgresStore, database_url: str) -> None:
    (machine,) = add_a_cell(store, 1)
    a_failed_job(store, machine)
    with psycopg.connect(database_url) as connection:
        connection.execute("UPDATE omega.job SET finished_at = finished_at - interval '40 days'")
        connection.execute("DELETE FROM omega.transaction")

    told = prune(
        database_url, older_than_ms=HOUR_MS, statement_timeout_ms=30_000, progress=_nothing
    )

    assert {"task_exit": 0, "task_output": 0, "job": 0} == rows_left(database_url)
    assert 1 == told["job"]


def test_old_exits_of_a_job_that_goes_on_go_and_its_outputs_stay(
    store: PostgresStore, database_url: str
) -> None:
    (machine,) = add_a_cell(store, 1)
    job = a_running_job(store, a_spec(3), [machine] * 3)
    out = TaskOutput(job.id, 0, started(store, job, 0), "stdout", 1, b"x")
    store.report_outputs([out])
    report(store, job, 0, how=BADLY)
    with psycopg.connect(database_url) as connection:
        connection.execute(AGE.encode())
    report(store, job, 1)

    told = prune(
        database_url, older_than_ms=HOUR_MS, statement_timeout_ms=30_000, progress=_nothing
    )

    assert 1 == told["task_exit"]
    assert {"task_exit": 1, "task_output": 1, "job": 1} == rows_left(database_url)
    assert out == store.output(job.id, 0, "stdout")
    assert [] == list(store.verify())
    end(store, job, 2)
    assert State.FAILED is status_of(store, job).state


def test_an_output_whose_job_is_gone_goes_too(store: PostgresStore, database_url: str) -> None:
    """It may have been reported just as the job was removed."""
    with psycopg.connect(database_url) as connection:
        connection.execute(
            "INSERT INTO omega.task_output VALUES (77, 0, 'stdout', clock_timestamp(), 0, '')"
        )

    prune(database_url, older_than_ms=HOUR_MS, statement_timeout_ms=30_000, progress=_nothing)

    assert 0 == rows_left(database_url)["task_output"]


def _nothing(_done: int, _total: int) -> None:
    pass


def test_jobs_that_failed_outlive_down_and_up_as_cancelled_ones(empty_database_url: str) -> None:
    schema.migrate(empty_database_url)
    with closing(PostgresStore(empty_database_url)) as store:
        (machine,) = add_a_cell(store, 1)
        failed = a_failed_job(store, machine)
        gang = a_running_job(store, a_spec(2, minimum=2), [machine] * 2)
        store.report_exits([an_exit(store, gang, 0, Exit(cause=ExitCause.LOST))])
        loose = a_running_job(store, a_spec(2), [machine] * 2)
        report(store, loose, 0, how=BADLY)
    with psycopg.connect(empty_database_url) as owner:
        owner.execute(
            "UPDATE omega.job_spec SET wire = jsonb_set(wire, '{groups,0,program}', '{}')"
            " WHERE job_id = %s",
            (loose.id,),
        )
        wires = owner.execute("SELECT wire FROM omega.job_spec ORDER BY job_id").fetchall()
    assert all("program" in wire["groups"][0] for (wire,) in wires)
    schema.downgrade(empty_database_url, "0016")
    with psycopg.connect(empty_database_url) as owner:
        before = owner.execute("SELECT wire FROM omega.job_spec ORDER BY job_id").fetchall()
        states = owner.execute("SELECT state FROM omega.job ORDER BY id").fetchall()
    schema.migrate(empty_database_url)

    with closing(PostgresStore(empty_database_url)) as store:
        assert [] == list(store.verify())
        assert (State.CANCELLED, 2, 2, 0) == counts(store, failed)
        assert (State.CANCELLED, 2, 2, 0) == counts(store, gang)
        assert (State.RUNNING, 2, 1, 0) == counts(store, loose)
        end(store, loose, 1)
        assert State.SUCCEEDED is status_of(store, loose).state
    assert [("cancelled",), ("cancelled",), ("running",)] == states
    for (wire,) in wires:
        for group in wire["groups"]:
            del group["program"]
    assert wires == before
