"""The function in Postgres decides as the slow twin does: same verdicts, rows and sequences."""

from collections.abc import Iterator
from uuid import UUID

import numpy as np
import psycopg
import pytest
from hypothesis import assume, given
from psycopg import sql

from omega.model.outcomes import Outcome
from omega.model.resources import COLUMNS, KINDS
from omega.store.postgres.store import PostgresStore
from omega.testing.strategies import TASKS_MAX, Case, cases
from omega.testing.twin import differences, judge_slowly
from tests.fixtures.doses import examples

EMPTY = "DELETE FROM omega.{0}"
MACHINE = sql.SQL(
    "INSERT INTO omega.machine (id, sequence, revision, state, notice, {}, {}) VALUES ({})"
).format(
    sql.SQL(", ").join(sql.Identifier(f"{kind}_capacity") for kind in COLUMNS),
    sql.SQL(", ").join(sql.Identifier(f"{kind}_used") for kind in COLUMNS),
    sql.SQL(", ").join([sql.Placeholder()] * (5 + 2 * KINDS)),
)
JOB = """
    INSERT INTO omega.job (id, scheduler, precedence, preemptible, tasks, minimum, placed, ended,
                           unplaced, state, lease_token, lease_expires_at, tenant)
    VALUES (%s, %s, %s, %s, %s, %s, %s, %s,
            (SELECT coalesce(range_agg(int4range(t, t + 1)), '{}') FROM unnest(%s::int[]) AS t),
            %s, %s, 'infinity', 'default')
"""
ALLOCATION = sql.SQL(
    "INSERT INTO omega.allocation (job_id, task, machine_id, {}) VALUES ({})"
).format(
    sql.SQL(", ").join(sql.Identifier(kind) for kind in COLUMNS),
    sql.SQL(", ").join([sql.Placeholder()] * (3 + KINDS)),
)
SPEC = """
    INSERT INTO omega.job_spec (job_id, name, tenant, needs_sibling_machines, group_starts,
                                group_durations_ms, wire, demand)
    VALUES (%s, 'job', %s, false, '{0}', '{1}', '{}', '{0,0,0,0}')
"""
SOMEBODY = UUID(int=2**100)


QUOTA_VIOLATIONS = "SELECT * FROM omega.verify() WHERE subject LIKE 'quota%'"
TABLES = (
    *("machine", "job", "job_spec", "allocation", "transaction", "ended_task"),
    *("quota", "quota_shard"),
)


def hold(connection: psycopg.Connection, case: Case) -> None:
    """Make the tables hold what the case's judge is given."""
    with connection.transaction():
        for table in TABLES:
            connection.execute(sql.SQL(EMPTY).format(sql.Identifier(table)))
        rows = case.rows
        for at in range(len(rows)):
            numbers = [
                int(column[at]) for column in (rows.id, rows.sequence, rows.revision, rows.state)
            ]
            tolerated = np.maximum(rows.used[at] - rows.capacity[at], 0).tolist()
            amounts = [*rows.capacity[at].tolist(), *rows.used[at].tolist()]
            connection.execute(MACHINE, [*numbers, tolerated, *amounts])
        tokens = {
            part.job: part.token if held else SOMEBODY
            for part, held in zip(case.transaction.jobs, case.context.lease_held, strict=True)
        }
        for job, known in case.jobs.items():
            unplaced = sorted(set(range(TASKS_MAX)) - known.placed)
            state = "planning" if job in tokens else "pending" if unplaced else "running"
            told = (known.scheduler, known.precedence, known.preemptible)
            counts = (TASKS_MAX, known.minimum, len(known.placed), len(known.over))
            connection.execute(
                JOB,
                (job, *told, *counts, unplaced, state, tokens.get(job)),
            )
            connection.execute(SPEC, (job, known.tenant))
            for task, (machine, amounts) in known.runs.items():
                connection.execute(ALLOCATION, [job, task, machine, *amounts])


def set_quotas(store: PostgresStore, case: Case) -> None:
    """Have the store count what the case's jobs hold already."""
    for quota in case.quotas:
        store.set_quota(quota)


@pytest.fixture
def superuser(database_url: str) -> Iterator[psycopg.Connection]:
    """One session for all cases: to begin one costs more than to judge a case."""
    with psycopg.connect(database_url, autocommit=True) as connection:
        yield connection


@examples(1_200, one_in=48)
@given(case=cases())
def test_the_function_agrees_with_the_slow_twin(
    store: PostgresStore, superuser: psycopg.Connection, case: Case
) -> None:
    assume(case.transaction.jobs)
    hold(superuser, case)
    set_quotas(store, case)
    actual = store.commit(case.transaction)
    expected = judge_slowly(case.rows, case.transaction, case.context)
    live = superuser.execute("SELECT job_id, task, machine_id FROM omega.allocation")

    assert [] == differences(expected, actual)
    assert running(case, expected) == set(live)
    broken = superuser.execute(QUOTA_VIOLATIONS).fetchall()
    assert [] == broken


def running(case: Case, outcome: Outcome) -> set[tuple[int, int, int]]:
    """Return job, task and machine of all that runs once the outcome is applied."""
    before = {
        (job, task): machine
        for job, known in case.jobs.items()
        for task, (machine, _) in known.runs.items()
    }
    for evicted in zip(outcome.evicted_job.tolist(), outcome.evicted_task.tolist(), strict=True):
        del before[evicted]
    tasks = case.transaction.claims.task
    granted = {
        (part.job, int(tasks[at])): int(outcome.machine[at])
        for part in case.transaction.jobs
        for at in range(part.claims.start, part.claims.stop)
        if outcome.accepted[at]
    }
    assert not before.keys() & granted.keys()
    return {(job, task, machine) for (job, task), machine in {**before, **granted}.items()}


@examples(300)
@given(case=cases())
def test_the_same_id_is_answered_alike_and_applied_once(
    store: PostgresStore, superuser: psycopg.Connection, case: Case
) -> None:
    assume(case.transaction.jobs)
    hold(superuser, case)
    set_quotas(store, case)
    first = store.commit(case.transaction)
    again = store.commit(case.transaction)

    assert [] == differences(first, again)
