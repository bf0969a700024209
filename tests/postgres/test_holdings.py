"""Holdings in Postgres: hand-made histories beside a bookkeeping run by run."""

from collections import Counter

import numpy as np
import psycopg
import pytest

from omega.errors import BadInput
from omega.limits import LIMITS
from omega.model.quotas import QuotaScope
from omega.model.resources import COLUMNS
from omega.store.holdings import IdleCause
from omega.store.postgres.history import prune
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell, a_spec
from omega.testing.steps import a_running_job, add_a_cell, end, grant, submit_and_lease
from tests.fixtures.held_over import Asked, Run, held_by_hand, held_in, runs_in

HOUR_MS = 60 * 60 * 1_000
INSERT_ENDED = """
    INSERT INTO omega.ended_task (job_id, task, machine_id, started_at, ended_at, cause)
    VALUES (%s, %s, 1, to_timestamp(%s / 1000.0), to_timestamp(%s / 1000.0), %s)
"""
MANY_SPECS = """
    INSERT INTO omega.job_spec
           (job_id, name, tenant, needs_sibling_machines, group_starts, group_durations_ms, wire,
            demand)
    SELECT s.job_id + n, s.name, n::text, false, s.group_starts, s.group_durations_ms, s.wire,
           s.demand
      FROM omega.job_spec s, generate_series(1, %s) AS n WHERE s.job_id = %s
"""
MANY_RUNS = """
    INSERT INTO omega.ended_task (job_id, task, machine_id, started_at, ended_at)
    SELECT s.job_id, 0, 1, to_timestamp((%s - 1000 - s.tenant::integer) / 1000.0),
           to_timestamp((%s - 1000) / 1000.0)
      FROM omega.job_spec s WHERE s.tenant::integer BETWEEN 1 AND %s
"""
INSERT_LIVE = f"""
    INSERT INTO omega.allocation (job_id, task, machine_id, started_at, {", ".join(COLUMNS)})
    VALUES (%s, %s, 1, to_timestamp(%s / 1000.0), {", ".join(["%s"] * len(COLUMNS))})
"""


def drawn(seed: int, now_ms: int) -> tuple[list[Asked], list[Run]]:
    """Return a history of up to two days before now."""
    rng = np.random.default_rng(seed)
    jobs = [
        Asked(
            tenant=str(rng.choice(["ann", "bob", "Änne"])),
            scheduler=str(rng.choice(["batch", "service"])),
            cpu_milli=int(rng.integers(1, 2**31 - 1)),
            memory_mib=int(rng.integers(0, 2**31 - 1)),
            gpu_slices=int(rng.choice([0, 1, 250, 1_000])),
        )
        for _ in range(20)
    ]
    runs = []
    for _ in range(300):
        began_ms = now_ms - int(rng.integers(0, 48 * HOUR_MS))
        ended_ms = min(now_ms, began_ms + int(rng.integers(0, 24 * HOUR_MS)))
        job, is_over = int(rng.integers(len(jobs))), rng.random() < 0.8
        runs.append(Run(job, began_ms, ended_ms if is_over else None))
    return jobs, runs


def written(database_url: str, ids: list[int], jobs: list[Asked], runs: list[Run]) -> None:
    """Write a history, as a cell that had lived it would have."""
    with psycopg.connect(database_url) as connection:
        for task, run in enumerate(runs):
            job = ids[run.job]
            if run.ended_ms is not None:
                cause = "ended" if task % 2 else "evicted"
                times = (run.began_ms, run.ended_ms, cause)
                connection.execute(INSERT_ENDED, (job, task, *times))
            else:
                named = jobs[run.job].named
                amounts = [named.get(column, 0) for column in COLUMNS]
                connection.execute(INSERT_LIVE, (job, task, run.began_ms, *amounts))


@pytest.mark.parametrize("seed", range(3))
def test_what_was_held_is_the_sum_over_all_runs(
    store: PostgresStore, database_url: str, seed: int
) -> None:
    jobs, runs = drawn(seed, store.now_ms())
    ids = store.submit([asked.spec(len(runs)) for asked in jobs])
    written(database_url, ids, jobs, runs)

    for over_ms in (1, 3 * HOUR_MS, 24 * HOUR_MS, 10 * 365 * 24 * HOUR_MS):
        told = store.holdings(over_ms)

        assert held_by_hand(jobs, runs, told.since_ms, told.until_ms) == held_in(told)
        counted = [r for r in runs if r.ended_ms is None or r.ended_ms > told.since_ms]
        assert (len(counted), 0) == (runs_in(told), told.unknown)
    with psycopg.connect(database_url) as connection:
        connection.execute("TRUNCATE omega.allocation, omega.ended_task")


def test_runs_of_jobs_that_are_not_on_record_are_told_and_not_counted(
    store: PostgresStore, database_url: str
) -> None:
    add_a_cell(store, 1)
    job = a_running_job(store, a_spec(2), [1, 1])
    end(store, job, 0, 1)
    with psycopg.connect(database_url) as connection:
        connection.execute("DELETE FROM omega.job_spec; DELETE FROM omega.job")

    told = store.holdings(HOUR_MS)

    assert ([], 2) == (list(told.by), told.unknown)


def test_what_was_pruned_is_held_no_more(store: PostgresStore, database_url: str) -> None:
    add_a_cell(store, 1)
    (job,) = submit_and_lease(store, a_spec(3))
    grant(store, job, [0, 1], [1, 1])
    end(store, job, 0)
    before = store.holdings(HOUR_MS)

    prune(database_url, older_than_ms=0, statement_timeout_ms=30_000, progress=lambda *_: None)

    assert [2, 1] == [runs_in(told) for told in (before, store.holdings(HOUR_MS))]


def test_an_eviction_that_no_job_asked_for_begins_the_wait(
    store: PostgresStore, database_url: str
) -> None:
    """A task that was lost a moment ago does not make its job idle for hours."""
    add_a_cell(store, 1)
    (job,) = submit_and_lease(store, a_spec(2))
    grant(store, job, [0], [1])
    now_ms = store.now_ms()
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("UPDATE omega.allocation SET started_at = started_at - interval '5 h'")
        long = store.idle_jobs(4 * HOUR_MS)
        times = (now_ms - 6 * HOUR_MS, now_ms - 2 * HOUR_MS, "machine down")
        connection.execute(INSERT_ENDED, (job.id, 1, *times))

    assert [IdleCause.UNPLACED_SIBLINGS] == [idle.cause for idle in long]
    assert [] == store.idle_jobs(4 * HOUR_MS)
    assert [now_ms - 2 * HOUR_MS] == [idle.since_ms for idle in store.idle_jobs(HOUR_MS)]


@pytest.mark.parametrize("over_ms", [0, -1, 2**62])
def test_a_window_that_is_none_is_refused(store: PostgresStore, over_ms: int) -> None:
    with pytest.raises(BadInput, match="bad length of time"):
        store.holdings(over_ms)


def test_the_sums_of_the_largest_amounts_are_exact(store: PostgresStore, database_url: str) -> None:
    store.add_machines(a_cell(1))
    most = Asked("ann", "batch", 2**31 - 1, 2**31 - 1, 0)
    (job,) = store.submit([most.spec(1_000)])
    now_ms = store.now_ms()
    years_ms = 9 * 365 * 24 * HOUR_MS
    with psycopg.connect(database_url) as connection:
        for task in range(1_000):
            times = (now_ms - years_ms - 1, now_ms - 1, "ended")
            connection.execute(INSERT_ENDED, (job, task, *times))

    told = store.holdings(10 * 365 * 24 * HOUR_MS)

    held = 1_000 * (2**31 - 1) * years_ms * 1_000
    whose = ("tenant", "ann"), ("scheduler", "batch")
    expected = {(*one, resource): held for one in whose for resource in ("cpu", "memory")}
    assert Counter(expected) == held_in(told)
    with psycopg.connect(database_url) as connection:
        connection.execute("TRUNCATE omega.ended_task")


def test_of_very_many_tenants_those_of_the_largest_shares_are_returned(
    store: PostgresStore, database_url: str
) -> None:
    store.add_machines(a_cell(1, cpu_milli=2**30))
    most = LIMITS.holders_max
    (job,) = store.submit([a_spec(1, tenant="0")])
    now_ms = store.now_ms()
    with psycopg.connect(database_url) as connection:
        connection.execute(MANY_SPECS, (most + 2, job))
        # Tenant n holds for n milliseconds, in order of the numbers.
        connection.execute(MANY_RUNS, (now_ms, now_ms, most + 2))

    told = store.holdings(HOUR_MS)

    tenants = {one.name for one in told.by if one.scope is QuotaScope.TENANT}
    assert {str(number) for number in range(3, most + 3)} == tenants
    assert {QuotaScope.TENANT: 2} == told.left_out
    assert most + 2 == sum(one.runs for one in told.by if one.scope is QuotaScope.SCHEDULER)
    with psycopg.connect(database_url) as connection:
        connection.execute("TRUNCATE omega.ended_task")
        connection.execute("DELETE FROM omega.job_spec WHERE job_id > %s", (job,))
