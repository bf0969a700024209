"""The function in Postgres decides as the slow twin does: same verdicts, rows and sequences."""

from uuid import UUID

import numpy as np
import psycopg
from hypothesis import assume, given, settings
from psycopg import sql

from omega.model.arrays import Mask
from omega.model.resources import COLUMNS, KINDS
from omega.store.postgres.store import PostgresStore
from omega.testing.strategies import Case, cases
from omega.testing.twin import differences, judge_slowly

TASKS = 8  # as many as the strategies number
EMPTY = "DELETE FROM omega.{0}"
MACHINE = sql.SQL(
    "INSERT INTO omega.machine (id, sequence, revision, state, {}, {}) VALUES ({})"
).format(
    sql.SQL(", ").join(sql.Identifier(f"{kind}_capacity") for kind in COLUMNS),
    sql.SQL(", ").join(sql.Identifier(f"{kind}_used") for kind in COLUMNS),
    sql.SQL(", ").join([sql.Placeholder()] * (4 + 2 * KINDS)),
)
JOB = """
    INSERT INTO omega.job (id, scheduler, tasks, minimum, unplaced, state, lease_token)
    VALUES (%s, 'batch', %s, %s,
            (SELECT coalesce(range_agg(int4range(t, t + 1)), '{}') FROM unnest(%s::int[]) AS t),
            'planning', %s)
"""


def hold(connection: psycopg.Connection, case: Case) -> None:
    """Make the tables hold what the case's judge is given."""
    for table in ("machine", "job", "allocation", "transaction"):
        connection.execute(sql.SQL(EMPTY).format(sql.Identifier(table)))
    rows, claims = case.rows, case.transaction.claims
    for at in range(len(rows)):
        numbers = (rows.id[at], rows.sequence[at], rows.revision[at], rows.state[at])
        amounts = (*rows.capacity[at], *rows.used[at])
        connection.execute(MACHINE, [int(number) for number in (*numbers, *amounts)])
    for number, part in enumerate(case.transaction.jobs):
        mine = claims.task[part.claims]
        placed = set(mine[~case.standing.unplaced[part.claims]].tolist())
        token = part.token if case.standing.lease_held[number] else UUID(int=2**100)
        lacking = int(case.standing.lacking[number])
        unplaced = sorted(set(range(TASKS)) - placed)
        connection.execute(JOB, (part.job, TASKS, lacking, unplaced, token))


@settings(max_examples=150)
@given(case=cases())
def test_the_function_agrees_with_the_slow_twin(
    store: PostgresStore, database_url: str, case: Case
) -> None:
    assume(case.transaction.jobs)
    with psycopg.connect(database_url) as connection:
        hold(connection, case)
        connection.commit()
        actual = store.commit(case.transaction)
        named = np.flatnonzero(np.isin(case.rows.id, case.transaction.claims.machine))
        expected = judge_slowly(case.rows.take(named), case.transaction, case.standing)
        live = connection.execute("SELECT job_id, task, machine_id FROM omega.allocation")

        assert [] == differences(expected, actual)
        assert granted(case, expected.accepted) == set(live)


def granted(case: Case, accepted: Mask) -> set[tuple[int, int, int]]:
    """Return job, task and machine of each claim that was granted."""
    claims = case.transaction.claims
    return {
        (part.job, int(claims.task[at]), int(claims.machine[at]))
        for part in case.transaction.jobs
        for at in range(part.claims.start, part.claims.stop)
        if accepted[at]
    }


@settings(max_examples=50)
@given(case=cases())
def test_the_same_id_is_answered_alike_and_applied_once(
    store: PostgresStore, database_url: str, case: Case
) -> None:
    assume(case.transaction.jobs)
    with psycopg.connect(database_url) as connection:
        hold(connection, case)
        connection.commit()
        first = store.commit(case.transaction)
        again = store.commit(case.transaction)

        assert [] == differences(first, again)
