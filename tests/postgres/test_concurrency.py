"""Several connections on one small cell at once: what each is told adds up to what is there."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier

import numpy as np
import psycopg
import pytest

from omega.cell.view import View
from omega.model.claims import ConflictRule
from omega.model.outcomes import Outcome
from omega.model.quotas import UNLIMITED, Budget, Quota, QuotaScope
from omega.model.resources import Kind
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_cell, a_spec, a_transaction, claims_in, claims_of_job
from omega.testing.twin import row_differences
from tests.fixtures.at_work import wait_until

RIVALS = 4
JOBS = 15
TASKS = 8
LIMITED = ((QuotaScope.TENANT, "default"), (QuotaScope.SCHEDULER, "batch"))
"""All jobs are of either."""


@contextmanager
def a_store(url: str) -> Iterator[PostgresStore]:
    store = PostgresStore(url, application_name="omega tests")
    yield store
    assert "DeadlockDetected" not in store.counts
    store.close()


def together(url: str, work: Callable[[PostgresStore, int], object]) -> list[object]:
    """Let each rival work on a connection of its own, all starting at once."""
    barrier = Barrier(RIVALS)

    def rival(number: int) -> object:
        with a_store(url) as store:
            store.now_ms()  # connected
            barrier.wait()
            return work(store, number)

    with ThreadPoolExecutor(RIVALS) as pool:
        return list(pool.map(rival, range(RIVALS)))


def race(store: PostgresStore, number: int, rule: ConflictRule) -> list[Outcome]:
    """Lease jobs and claim at random until none are left; views are patched, never read anew."""
    rng = np.random.default_rng(number)
    view = View(store.snapshot())
    outcomes = []
    while jobs := store.lease("batch", holder=str(number), jobs_max=3, lease_ms=60_000):
        claims_by_job = []
        for job in jobs:
            minimum = int(rng.choice([0, TASKS]))
            machines = rng.integers(1, len(view) + 1, len(job.unplaced)).tolist()
            claims = claims_in(view, job.unplaced.tolist(), machines, cpu_milli=500)
            claims_by_job.append(claims_of_job(job, claims, minimum=minimum))
        outcome = store.commit(a_transaction(*claims_by_job, rule=rule, replica=str(number)))
        view.patch(outcome.fresh)
        outcomes.append(outcome)
        ended = [job for job in jobs if rng.random() < 0.5]
        store.end_tasks(
            np.repeat([job.id for job in ended], TASKS), np.tile(np.arange(TASKS), len(ended))
        )
    return outcomes


@pytest.mark.parametrize("limits", [{}, {Budget.CPU_MILLI: 20_000, Budget.JOBS: 10}], ids=len)
@pytest.mark.parametrize("rule", ConflictRule)
def test_what_rivals_are_granted_is_what_the_cell_holds(
    database_url: str, store: PostgresStore, rule: ConflictRule, limits: Mapping[Budget, int]
) -> None:
    for scope, name in LIMITED if limits else ():
        store.set_quota(Quota(scope, name, limits))
    store.add_machines(a_cell(6, cpu_milli=8_000))
    store.submit([a_spec(TASKS, cpu_milli=500) for _ in range(RIVALS * JOBS)])
    outcomes = [
        outcome
        for found in together(database_url, lambda s, n: race(s, n, rule))
        for outcome in found  # type: ignore[attr-defined]
    ]
    told = Counter(verdict for outcome in outcomes for verdict in outcome.verdicts.tolist())
    rows = store.snapshot().rows
    ((granted,),) = store._link.call(  # noqa: SLF001 - the books, read past the store's own sums
        "SELECT (SELECT count(*) FROM omega.allocation) + (SELECT count(*) FROM omega.ended_task)"
    )

    assert [] == list(store.verify())
    assert granted == told[0]
    assert 500 * len(store.allocations()) == rows.used[:, Kind.CPU_MILLI].sum()
    assert rows.used[:, Kind.CPU_MILLI].sum() <= limits.get(Budget.CPU_MILLI, UNLIMITED)
    assert RIVALS * JOBS * TASKS == sum(told.values())
    assert told[0] < sum(told.values()), "nobody was ever refused: this was no race"


def test_a_job_is_leased_to_one_rival(database_url: str, store: PostgresStore) -> None:
    jobs = store.submit([a_spec() for _ in range(200)])

    def take_all(mine: PostgresStore, number: int) -> list[int]:
        taken = []
        while jobs := mine.lease("batch", holder=str(number), jobs_max=7, lease_ms=60_000):
            taken += [job.id for job in jobs]
        return taken

    taken = together(database_url, take_all)

    assert jobs == sorted(job for mine in taken for job in mine)  # type: ignore[attr-defined]


def test_the_same_transaction_from_many_connections_is_applied_once(
    database_url: str, store: PostgresStore
) -> None:
    store.add_machines(a_cell(1))
    store.submit([a_spec(2)])
    (job,) = store.lease("batch", holder="me", jobs_max=1, lease_ms=60_000)
    view = View(store.snapshot())
    transaction = a_transaction(
        claims_of_job(job, claims_in(view, [0, 1], [1, 1], cpu_milli=1_000))
    )
    outcomes = together(database_url, lambda mine, _: mine.commit(transaction))

    assert [[0, 0]] * RIVALS == [o.verdicts.tolist() for o in outcomes]  # type: ignore[attr-defined]
    assert 2 == len(store.allocations())
    assert [1] == store.snapshot().rows.sequence.tolist()
    assert [] == list(store.verify())


def test_a_delta_misses_nothing_that_was_in_flight_when_the_last_one_was_read(
    database_url: str, store: PostgresStore
) -> None:
    store.add_machines(a_cell(3))
    view = View(store.snapshot())
    touch = (
        "WITH changed AS (UPDATE omega.machine SET revision = revision + 1,"
        " changed_by = pg_current_xact_id() WHERE id = %s RETURNING id)"
        " INSERT INTO omega.machine_change (machines) SELECT ARRAY[id] FROM changed"
    )
    with psycopg.connect(database_url) as slow, psycopg.connect(database_url) as quick:
        slow.execute(touch, (1,))  # begins first, ends last
        quick.execute(touch, (2,))
        quick.commit()
        view.catch_up(store.changes_since(view.mark))
        between = view.rows()
        slow.commit()
        view.catch_up(store.changes_since(view.mark))

    assert [0, 1, 0] == between.revision.tolist()
    assert [] == row_differences(store.snapshot().rows, view.rows())


def test_an_empty_delta_moves_the_mark_past_what_is_over(store: PostgresStore) -> None:
    store.add_machines(a_cell(3))
    first = store.changes_since(0)

    def catch_up() -> bool:
        """Say whether a delta is empty: not while others' transactions are under way."""
        nonlocal first
        changes = store.changes_since(first.mark)
        assert first.mark <= changes.mark
        first = changes
        return not len(changes.rows)

    assert 3 == len(first.rows)
    wait_until(catch_up, "an empty delta")
