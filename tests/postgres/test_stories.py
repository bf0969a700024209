"""Stories of jobs and machines on Postgres: what the verbs print and write, and what is bounded."""

import re
from itertools import pairwise
from typing import Any

import pytest
from psycopg import connect

from omega.model.arrays import integers
from omega.model.exits import Exit, ExitCause, TaskExit
from omega.model.machines import MachineState
from omega.store.postgres import inquiries, stories
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell, a_claim, a_spec, a_transaction, claims_of_job, evicting
from omega.testing.steps import (
    a_leased_job,
    a_running_job,
    add_a_cell,
    claim,
    end,
    grant,
)
from tests.fixtures.command_line import Omega, document
from tests.fixtures.logins import Login

pytestmark = pytest.mark.usefixtures("kept_sessions")


@pytest.fixture(autouse=True)
def _cell(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every command work on the test's own database."""
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)


def played(store: PostgresStore) -> tuple[int, int]:
    """Have a job refused, placed, evicted, placed again, moved and ended; return it and its rival.

    Machine 1 is where the two meet.
    """
    one, two, three = add_a_cell(store, 3, cpu_milli=1_000)
    first = a_running_job(store, a_spec(name="first", precedence=10), [two])
    job = a_leased_job(store, a_spec(2, name="job", precedence=10))
    claim(store, job, [0, 1], [one, two])
    a_moment_later(store)
    rival = a_leased_job(store, a_spec(name="rival", precedence=200))
    taken = evicting(a_claim(0, machine=one), (0, job.id, 0))
    store.commit(a_transaction(claims_of_job(rival, taken)))
    a_moment_later(store)
    end(store, first, 0)
    a_moment_later(store)
    grant(store, job, [0], [three])
    a_moment_later(store)
    moved = evicting(a_claim(0, machine=two), (0, job.id, 0))
    store.commit(a_transaction(claims_of_job(job, moved)))
    a_moment_later(store)
    end(store, rival, 0)
    a_moment_later(store)
    grant(store, job, [1], [one])
    runs = store.job_records(job.id).runs
    for task, code in enumerate((0, 3)):
        exit_ = Exit(cause=ExitCause.EXITED, code=code)
        a_moment_later(store)
        store.report_exits([TaskExit(job.id, task, runs[1 - task].started_ms, exit_)])
    return job.id, rival.id


def a_moment_later(store: PostgresStore) -> None:
    """Let the clock of the store go on, so that what comes next has another time."""
    before = store.now_ms()
    while store.now_ms() <= before:
        pass


def told(omega: Omega, *arguments: object) -> list[dict[str, Any]]:
    """Return the events of a story, after a look at their order."""
    story = document(omega(*arguments, "--json", "-"))["summary"]["story"]
    events: list[dict[str, Any]] = story["events"]
    before = [it for it in events if it["what"] != "finished"]
    assert all(one["at_ms"] <= two["at_ms"] for one, two in pairwise(before))
    assert all(event["at_ms"] <= event["until_ms"] for event in events)
    return events


def test_a_job_tells_its_whole_story(store: PostgresStore, omega: Omega) -> None:
    job, rival = played(store)

    assert [
        ("submitted", None, "2 tasks, for batch"),
        ("leased", None, None),
        ("placed", "batch 0", "task 0 on machine-1"),
        ("refused", "batch 0", "1 claim: 1 overcommit, taken by batch 0 for job 1"),
        ("evicted", "batch 0", f"task 0 on machine-1, for job {rival}"),
        ("placed", "batch 0", "task 0 on machine-3"),
        ("moved", "batch 0", "task 0 on machine-3: to machine-2"),
        ("placed", "batch 0", "task 1 on machine-1"),
        ("ended", None, "task 0 on machine-2: exited with code 0"),
        ("ended", None, "task 1 on machine-1: exited with code 3"),
        ("finished", None, "failed"),
    ] == [
        (it["what"], it["by"], None if it["what"] == "leased" else it["told"])
        for it in told(omega, "job", job)
    ]


def test_a_job_s_story_is_read_on_the_screen(store: PostgresStore, omega: Omega) -> None:
    job, _ = played(store)

    ran = omega("job", job)

    assert 0 == ran.code
    story = ran.out.partition("what happened, in UTC\n")[2].splitlines()
    assert [
        *("submitted", "leased", "placed", "refused", "evicted", "placed", "moved", "placed"),
        *("ended", "ended", "finished"),
    ] == [line.split()[2] for line in story if re.match(r"\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} ", line)]
    assert "Leases are on record only where a commit followed" in ran.out


def test_a_machine_tells_who_placed_there_and_who_was_refused(
    store: PostgresStore, omega: Omega
) -> None:
    job, rival = played(store)

    assert [
        ("placed", "batch 0", f"task 0 of job {job}"),
        ("evicted", "batch 0", f"task 0 of job {job}, for job {rival}"),
        ("placed", "batch 0", f"task 0 of job {rival}"),
        ("ended", None, f"task 0 of job {rival}"),
        ("placed", "batch 0", f"task 1 of job {job}"),
        ("ended", None, f"task 1 of job {job}"),
    ] == [(it["what"], it["by"], it["told"]) for it in told(omega, "cell", "show", "machine-1")]
    events = told(omega, "cell", "show", "machine-2")
    assert [
        f"task 1 of job {job}: 1 overcommit, taken by batch 0 for job 1",
    ] == [it["told"] for it in events if it["what"] == "refused"]
    (moved,) = [it for it in told(omega, "cell", "show", "machine-3") if it["what"] == "moved"]
    assert f"task 0 of job {job}: to another machine" == moved["told"]


def test_what_its_machine_ended_is_lost(store: PostgresStore, omega: Omega) -> None:
    one, two = add_a_cell(store, 2)
    job = a_running_job(store, a_spec(3), [one, one, two])
    store.set_state(integers([one]), MachineState.DOWN)
    store.lose_tasks(integers([one]))

    (lost,) = [it for it in told(omega, "job", job.id) if it["what"] == "lost"]

    assert "tasks 0-1 on machine-1: the machine failed, left or shrank" == lost["told"]
    assert [{"job": job.id, "task": task, "machine": "machine-1"} for task in (0, 1)] == lost[
        "places"
    ]


def test_ends_one_after_another_are_one_event(store: PostgresStore, omega: Omega) -> None:
    (machine,) = add_a_cell(store, 1)
    job = a_running_job(store, a_spec(4), [machine] * 4)
    for task in range(4):
        end(store, job, task)

    (ended,) = [it for it in told(omega, "job", job.id) if it["what"] == "ended"]

    assert (4, "tasks 0-3 on machine-1") == (ended["tasks"], ended["told"])


def test_without_the_records_of_commits_runs_tell_where_it_was(
    store: PostgresStore, omega: Omega, database_url: str
) -> None:
    job, _ = played(store)
    with connect(database_url, autocommit=True) as owner:
        owner.execute("DELETE FROM omega.transaction")

    events = told(omega, "job", job)

    unknown = "by a commit that is not among those told here"
    assert [
        ("placed", f"task 0 on machine-1: {unknown}"),
        ("evicted", f"task 0 on machine-1: {unknown}"),
        ("placed", f"task 0 on machine-3: {unknown}"),
        ("evicted", f"task 0 on machine-3: {unknown}"),
    ] == [(it["what"], it["told"]) for it in events if it["what"] in ("placed", "evicted")][:4]
    assert {None} == {it["by"] for it in events}


def test_what_was_not_searched_is_said(
    store: PostgresStore, omega: Omega, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, _ = played(store)
    assert not [it for it in not_told(omega, job) if "newest" in it]

    for module in (inquiries, stories):
        monkeypatch.setattr(module, "TRANSACTIONS_SEARCHED_MAX", 3)
    monkeypatch.setattr(stories, "RUNS_MAX", 2)

    assert [
        "Of commits, only the newest 3 were searched and, of earlier ones, those around 1 time: who"
        " did something else before is not told.",
        "Of times that tasks ran, only some are told: mostly the newest.",
    ] == not_told(omega, job)[:2]


def test_of_an_old_job_the_commits_around_its_times_are_searched(
    store: PostgresStore, omega: Omega, monkeypatch: pytest.MonkeyPatch, database_url: str
) -> None:
    job, _ = played(store)
    whole = told(omega, "job", job)
    (machine,) = store.add_machines(a_cell(1, first=9)).tolist()
    for _ in range(5):
        end(store, a_running_job(store, a_spec(), [machine]), 0)
    with connect(database_url, autocommit=True) as owner:  # long ago, but for the last five
        owner.execute(
            "UPDATE omega.transaction SET committed_at = committed_at - interval '1 day'"
            " WHERE NOT machines @> ARRAY[%s::integer]",
            (machine,),
        )
        owner.execute("UPDATE omega.job SET first_leased_at = first_leased_at - interval '1 day'")
        owner.execute(
            "UPDATE omega.ended_task SET started_at = started_at - interval '1 day',"
            " ended_at = ended_at - interval '1 day' WHERE machine_id <> %s",
            (machine,),
        )
    for module in (inquiries, stories):
        monkeypatch.setattr(module, "TRANSACTIONS_SEARCHED_MAX", 2)

    events = told(omega, "job", job)

    who = [(it["what"], it["by"], it["transaction"], it["conflicts"]) for it in events]
    assert [
        (it["what"], it["by"], it["transaction"], it["conflicts"])
        for it in whole
        if it["by"] is not None
    ] == [it for it in who if it[1] is not None]
    monkeypatch.setattr(stories, "NEAR_TIMES_MAX", 1)
    monkeypatch.setattr(stories, "NEAR_RECORDS_MAX", 1)
    assert [] == [it for it in told(omega, "job", job) if it["what"] == "refused"]


def not_told(omega: Omega, job: int) -> list[str]:
    """Return what a job's story says that it does not tell."""
    story = document(omega("job", job, "--json", "-"))["summary"]["story"]
    return list(map(str, story["not_told"]))


def test_only_the_last_part_of_the_history_of_runs_is_read(
    store: PostgresStore, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Rows of earlier tests, deleted and vacuumed, would leave room before the end of the file.
    with connect(database_url, autocommit=True) as owner:
        owner.execute("TRUNCATE omega.ended_task")
    (machine,) = add_a_cell(store, 1, cpu_milli=1_000_000)
    early = a_running_job(store, a_spec(), [machine])
    end(store, early, 0)
    many = a_running_job(store, a_spec(500), [machine] * 500)
    end(store, many, *range(500))
    monkeypatch.setattr(stories, "RUN_BYTES_MAX", 8_192)

    told = store.job_records(early.id)

    assert ((), False) == (told.runs, told.are_all_runs)
    last = store.job_records(many.id)
    assert 0 < len(last.runs) < 500
    assert not last.are_all_runs


def test_a_history_whose_newest_runs_are_not_at_its_end_is_said_to_be_a_part(
    store: PostgresStore, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(database_url, autocommit=True) as owner:
        owner.execute("TRUNCATE omega.ended_task")  # as above
    (machine,) = add_a_cell(store, 1, cpu_milli=1_000_000)
    new = a_running_job(store, a_spec(), [machine])
    end(store, new, 0)
    many = a_running_job(store, a_spec(1_000), [machine] * 1_000)
    end(store, many, *range(1_000))
    with connect(database_url, autocommit=True) as owner:
        # The newest run comes first in the file, as after a prune whose room is filled again. A
        # prune here would not do: where the next row goes afterwards is Postgres's choice.
        owner.execute(
            "UPDATE omega.ended_task SET ended_at = ended_at - interval '1 day' WHERE job_id = %s",
            (many.id,),
        )
    monkeypatch.setattr(stories, "RUN_BYTES_MAX", 8_192)

    told = store.job_records(new.id)

    assert ((), False) == (told.runs, told.are_all_runs)


def test_a_reader_is_told_stories(
    store: PostgresStore, login: Login, omega: Omega, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, _ = played(store)
    monkeypatch.setenv("OMEGA_DATABASE_URL", login("looks", "omega_reader"))

    assert 11 == len(told(omega, "job", job))
    assert 6 == len(told(omega, "cell", "show", "machine-1"))


def test_a_submitter_is_shown_a_job_without_its_story(
    store: PostgresStore, login: Login, omega: Omega, monkeypatch: pytest.MonkeyPatch
) -> None:
    job, _ = played(store)
    monkeypatch.setenv("OMEGA_DATABASE_URL", login("submits", "omega_submitter"))

    assert document(omega("job", job, "--json", "-"))["summary"]["story"] is None
    assert "what happened" not in omega("job", job).out
