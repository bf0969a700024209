"""Usage in Postgres: a drawn history beside a bookkeeping run by run, from plain rows."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np
import psycopg
import pytest

from omega.errors import BadInput
from omega.limits import LIMITS
from omega.model.quotas import Budget
from omega.store.holdings import RESOURCES
from omega.store.postgres.history import prune
from omega.store.postgres.store import PostgresStore
from omega.store.usage import Consumer, UsageBy, Used
from omega.testing.builders import a_cell, a_spec
from omega.testing.elastic_contract import all_helping
from omega.testing.steps import a_running_job, add_a_cell, end
from tests.postgres.test_holdings import INSERT_ENDED, drawn, written

HOUR_MS = 60 * 60 * 1_000
DAY_MS = 24 * HOUR_MS
CAUSES = ("ended", "evicted", "lost", "resized")
RUNS = """
    SELECT s.job_id, s.name, s.tenant, s.wire ->> 'scheduler', r.us_from, r.us_to, r.cause, r.cpu, r.memory, r.gpu
      FROM omega.job_spec s JOIN (
        SELECT e.job_id, (extract(epoch FROM e.started_at) * 1000000)::bigint AS us_from,
               (extract(epoch FROM e.ended_at) * 1000000)::bigint AS us_to, e.cause,
               (x.wire #>> '{groups,0,cpu_milli}')::bigint AS cpu, (x.wire #>> '{groups,0,memory_mib}')::bigint AS memory,
               (x.wire #>> '{groups,0,gpus}')::bigint * (x.wire #>> '{groups,0,gpu_slices}')::bigint AS gpu
          FROM omega.ended_task e JOIN omega.job_spec x USING (job_id)
         UNION ALL
        SELECT a.job_id, (extract(epoch FROM a.started_at) * 1000000)::bigint, NULL, 'live', a.cpu_milli, a.memory_mib, a.gpu_0
          FROM omega.allocation a) AS r ON r.job_id = s.job_id
"""  # noqa: E501 - a table
WAITS = """
    SELECT s.job_id, s.name, s.tenant, s.wire ->> 'scheduler',
           (extract(epoch FROM j.first_leased_at) * 1000000)::bigint,
           (extract(epoch FROM j.submitted_at) * 1000000)::bigint, j.finished_at IS NOT NULL
      FROM omega.job j JOIN omega.job_spec s ON s.job_id = j.id
"""
SET_WAIT = """
    UPDATE omega.job SET submitted_at = to_timestamp(%s / 1000.0),
           first_leased_at = to_timestamp(%s / 1000.0) WHERE id = %s
"""
SET_CAUSE = "UPDATE omega.ended_task SET cause = %s WHERE task = %s"
MANY = """
    INSERT INTO omega.job_spec
           (job_id, name, tenant, needs_sibling_machines, group_starts, group_durations_ms, wire,
            demand)
    SELECT s.job_id + n, n::text, s.tenant, false, s.group_starts, s.group_durations_ms, s.wire,
           s.demand
      FROM omega.job_spec s, generate_series(1, %s) AS n WHERE s.job_id = %s;
    INSERT INTO omega.ended_task (job_id, task, machine_id, started_at, ended_at)
    SELECT s.job_id, 0, 1, now() - interval '1 h', now() - interval '1 h' + s.name::integer * interval '1 ms'
      FROM omega.job_spec s WHERE s.job_id > %s
"""  # noqa: E501 - a table


@pytest.fixture
def lived(store: PostgresStore, database_url: str) -> Iterator[PostgresStore]:
    """A cell with two days of runs, evictions and waits."""
    now_ms = store.now_ms()
    store.add_machines(a_cell(3))
    jobs, runs = drawn(7, now_ms)
    ids = store.submit([asked.spec(len(runs)) for asked in jobs])
    store.cancel(ids[19])
    written(database_url, ids, jobs, runs)
    rng = np.random.default_rng(7)
    with psycopg.connect(database_url) as connection:
        for task in range(len(runs)):
            connection.execute(SET_CAUSE, (str(rng.choice(CAUSES)), task))
        for job in ids[:15]:
            submitted_ms = now_ms - int(rng.integers(2 * DAY_MS))
            waited_ms = int(rng.integers(now_ms - submitted_ms))
            connection.execute(SET_WAIT, (submitted_ms, submitted_ms + waited_ms, job))
    yield store
    with psycopg.connect(database_url) as connection:
        connection.execute("TRUNCATE omega.allocation, omega.ended_task")


def consumer(by: UsageBy, job: int, name: str, tenant: str, scheduler: str) -> Consumer:
    match by:
        case UsageBy.TENANT:
            return Consumer(tenant)
        case UsageBy.SCHEDULER:
            return Consumer(scheduler)
        case UsageBy.JOB:
            return Consumer(name, job, tenant, scheduler)


def by_hand(url: str, by: UsageBy, since_ms: int, until_ms: int) -> dict[Consumer, Used]:
    """Return what each used, from the plain rows of the tables, run by run."""
    since_us, until_us = since_ms * 1_000, until_ms * 1_000
    sums: dict[Consumer, dict[str, Any]] = defaultdict(
        lambda: defaultdict(int) | {"held_us": [0] * len(RESOURCES)}
    )
    with psycopg.connect(url) as connection:
        runs, waits = connection.execute(RUNS).fetchall(), connection.execute(WAITS).fetchall()
    for *whose, from_us, to_us, cause, cpu, memory, gpu in runs:
        if to_us is not None and to_us <= since_us:
            continue
        its = sums[consumer(by, *whose)]
        its["runs"] += 1
        its["evicted"] += cause == "evicted"
        its["lost"] += cause in {"lost", "resized"}
        last_us = until_us if to_us is None else min(to_us, until_us)
        lasted_us = max(0, last_us - max(from_us, since_us))
        for resource, amount in (
            (Budget.CPU_MILLI, cpu),
            (Budget.MEMORY_MIB, memory),
            (Budget.GPU_SLICES, gpu),
        ):
            its["held_us"][RESOURCES.index(resource)] += amount * lasted_us
    for *whose, leased_us, submitted_us, is_over in waits:
        its = sums[consumer(by, *whose)]
        if leased_us is None:
            its["unattempted"] += not is_over
        elif leased_us > since_us:
            its["attempted"] += 1
            its["waited_us"] += leased_us - submitted_us
            longest_us = max(its["waited_longest_us"], leased_us - submitted_us)
            its["waited_longest_us"] = longest_us
    found = {who: Used(**its | {"held_us": tuple(its["held_us"])}) for who, its in sums.items()}
    return {who: its for who, its in found.items() if its != Used()}


@pytest.mark.parametrize("by", list(UsageBy))
def test_what_is_told_is_the_sum_over_plain_rows(
    lived: PostgresStore, database_url: str, by: UsageBy
) -> None:
    """Over each length of time in one test: to live through two days costs more than to ask."""
    for over_ms in (1, 3 * HOUR_MS, DAY_MS, 3_650 * DAY_MS):
        told = lived.usage(over_ms, by)

        expected = by_hand(database_url, by, told.since_ms, told.until_ms)
        assert expected == dict(told.rows), over_ms
        assert (0, 0) == (told.left_out, told.unknown), over_ms
        held = [its.held_us for _, its in told.rows]
        assert told.total.held_us == tuple(map(sum, zip(*held, strict=True))), over_ms
        assert told.total.attempted == sum(its.attempted for _, its in told.rows), over_ms


def test_what_was_pruned_is_told_as_the_age_of_what_is_left(
    store: PostgresStore, database_url: str
) -> None:
    add_a_cell(store, 1)
    job = a_running_job(store, a_spec(3), [1, 1, 1])
    end(store, job, 0)
    now_ms = store.now_ms()
    with psycopg.connect(database_url) as connection:
        long_ago = (job.id, 1, now_ms - 3 * DAY_MS, now_ms - 2 * DAY_MS, "ended")
        connection.execute(INSERT_ENDED, long_ago)
    before = store.usage(7 * DAY_MS, UsageBy.TENANT)

    prune(database_url, older_than_ms=DAY_MS, statement_timeout_ms=30_000, progress=lambda *_: None)
    after = store.usage(7 * DAY_MS, UsageBy.TENANT)

    assert now_ms - 2 * DAY_MS == before.oldest_ms
    assert after.oldest_ms is not None
    assert (4, 3) == (before.total.runs, after.total.runs)
    assert now_ms - DAY_MS < after.oldest_ms


def test_runs_of_jobs_that_are_not_on_record_are_told_and_not_counted(
    store: PostgresStore, database_url: str
) -> None:
    add_a_cell(store, 1)
    job = a_running_job(store, a_spec(2), [1, 1])
    end(store, job, 0, 1)
    with psycopg.connect(database_url) as connection:
        connection.execute("DELETE FROM omega.job_spec; DELETE FROM omega.job")

    for by in UsageBy:
        told = store.usage(HOUR_MS, by)
        assert ((), 2, 0) == (told.rows, told.unknown, told.total.runs)


def test_of_very_many_jobs_those_of_the_largest_shares_are_returned(
    store: PostgresStore, database_url: str
) -> None:
    store.add_machines(a_cell(1))
    most = LIMITS.holders_max
    (job,) = store.submit([a_spec(name="0")])
    with psycopg.connect(database_url, autocommit=True) as connection:
        for statement, values in zip(MANY.split(";"), ((most + 5, job), (job,)), strict=True):
            connection.execute(statement, values)

    told = store.usage(HOUR_MS * 2, UsageBy.JOB)

    assert [str(number) for number in range(most + 5, 5, -1)] == [who.name for who, _ in told.rows]
    assert 6 == told.left_out, "five that ran for less, and the one that waits"
    assert (most + 5, 1) == (told.total.runs, told.total.unattempted)
    with psycopg.connect(database_url) as connection:
        connection.execute("TRUNCATE omega.ended_task")
        connection.execute("DELETE FROM omega.job_spec WHERE job_id > %s", (job,))


def test_helpers_count_for_what_they_hold_and_not_for_waits(store: PostgresStore) -> None:
    parent, helpers, _ = all_helping(store)

    told = dict(store.usage(HOUR_MS, UsageBy.JOB).rows)

    assert {parent.id: 1, helpers.id: 0} == {who.job: its.attempted for who, its in told.items()}
    assert all(its.runs for its in told.values())


@pytest.mark.parametrize("over_ms", [0, -1, 2**62])
def test_a_window_that_is_none_is_refused(store: PostgresStore, over_ms: int) -> None:
    with pytest.raises(BadInput, match="bad length of time"):
        store.usage(over_ms, UsageBy.JOB)
