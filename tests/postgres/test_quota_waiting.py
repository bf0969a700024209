"""Who waits for whom at a quota: nobody while enough is left, and everybody at its last bit."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial

import psycopg
import pytest
from psycopg import Connection

from omega.model.jobs import LeasedJob
from omega.model.outcomes import Outcome, Verdict
from omega.model.quotas import UNLIMITED, Budget
from omega.store.postgres.packing import Big
from omega.store.postgres.store import PostgresStore
from omega.store.postgres.tables import SHARDS
from omega.store.protocols import Store
from omega.testing.builders import a_cell, a_claim, a_spec, a_transaction, claims_of_job
from omega.testing.steps import (
    a_leased_job,
    a_running_job,
    end,
    grant,
    submit_and_lease,
    verdicts_of,
)
from tests.fixtures.at_work import wait_until
from tests.postgres.drawing import ANN, BATCH, COMMITTERS, CORE, a_store, limit, used


@contextmanager
def held_open(url: str, act: Callable[[PostgresStore], object]) -> Iterator[Connection[object]]:
    """Do something, and leave the transaction of the database open in which it was done."""
    with a_store(url, "omega holder") as store:
        connection = store._link._open()  # noqa: SLF001 - the store itself leaves none open
        connection.autocommit = False
        act(store)
        yield connection


def claim_a_core(job: LeasedJob, machine: int, store: Store) -> Outcome:
    return store.commit(a_transaction(claims_of_job(job, a_claim(0, machine=machine))))


def take_a_core(job: LeasedJob, machine: int, store: Store) -> None:
    assert [Verdict.ACCEPTED] == verdicts_of(claim_a_core(job, machine, store))


def test_commits_of_one_tenant_do_not_wait_for_each_other_while_enough_is_left(
    database_url: str, store: PostgresStore
) -> None:
    """All shards but one are held. Of several who come, most look for it elsewhere at first."""
    commits = SHARDS + COMMITTERS
    machines = store.add_machines(a_cell(commits)).tolist()
    limit(store, ANN, Budget.CPU_MILLI, 1_000 * CORE)
    limit(store, BATCH, Budget.JOBS, 1_000)
    jobs = submit_and_lease(store, *[a_spec(tenant="ann")] * commits)
    takes = [partial(take_a_core, *both) for both in zip(jobs, machines, strict=True)]

    with ExitStack() as stack:
        connections = [
            stack.enter_context(held_open(database_url, take)) for take in takes[: SHARDS - 1]
        ]
        for take in takes[SHARDS - 1 :]:
            with a_store(database_url) as another:
                take(another)
        while_open = used(store)
        for connection in connections:
            connection.commit()

    assert {Budget.CPU_MILLI: (commits - SHARDS + 1) * CORE} == while_open
    assert {Budget.CPU_MILLI: commits * CORE} == used(store)
    assert {Budget.JOBS: commits} == used(store, BATCH)
    assert [] == list(store.verify())


@pytest.mark.parametrize(
    ("holds", "ends", "verdict"),
    [
        ("the last core", "commit", Verdict.QUOTA),
        ("the last core", "rollback", Verdict.ACCEPTED),
        ("an end", "commit", Verdict.ACCEPTED),
        ("an end", "rollback", Verdict.QUOTA),
    ],
)
def test_nobody_is_refused_or_granted_what_another_may_yet_give_back_or_take(
    database_url: str, store: PostgresStore, holds: str, ends: str, verdict: Verdict
) -> None:
    one, two, three = store.add_machines(a_cell(3)).tolist()
    limit(store, ANN, Budget.CPU_MILLI, 2 * CORE)
    running = a_running_job(store, a_spec(tenant="ann"), [one])
    job, rival = submit_and_lease(store, *[a_spec(tenant="ann")] * 2)
    if holds == "an end":
        grant(store, a_leased_job(store, a_spec(tenant="ann")), [0], [one])

    acts: dict[str, Callable[[PostgresStore], object]] = {
        "the last core": partial(take_a_core, rival, two),
        "an end": lambda mine: end(mine, running, 0),
    }
    with (
        ThreadPoolExecutor(1) as pool,
        a_store(database_url, "omega waiter") as waiter,
        held_open(database_url, acts[holds]) as connection,
    ):
        answer = pool.submit(claim_a_core, job, three, waiter)
        wait_until(
            lambda: answer.done() or waits(database_url, "omega waiter"), "one to wait for another"
        )
        assert not answer.done()
        getattr(connection, ends)()
        outcome = answer.result()

    assert [verdict] == verdicts_of(outcome)
    assert {Budget.CPU_MILLI: 2 * CORE} == used(store)
    assert [] == list(store.verify())


def test_an_end_that_begins_while_a_quota_is_counted_is_given_back(
    database_url: str, store: PostgresStore
) -> None:
    """Counting waits for whoever looked before, and then for what others have changed since."""
    one, two = store.add_machines(a_cell(2)).tolist()
    running, another = (
        a_running_job(store, a_spec(tenant=tenant), [machine])
        for tenant, machine in (("ann", one), ("bob", two))
    )
    limits = [2 * CORE] + [UNLIMITED] * 4
    store._link.call("SELECT omega.set_quota('tenant', 'ann', %s)", (Big(limits),))  # noqa: SLF001
    with (
        ThreadPoolExecutor(1) as pool,
        a_store(database_url, "omega counter") as counter,
        held_open(database_url, lambda mine: end(mine, another, 0)) as past,
    ):
        count = "SELECT omega.count_quota('tenant', 'ann')"
        answer = pool.submit(counter._link.call, count)  # noqa: SLF001
        wait_until(lambda: waits(database_url, "omega counter", "Timeout"), "it to wait for one")
        with held_open(database_url, lambda mine: end(mine, running, 0)) as since:
            past.commit()
            wait_until(lambda: answer.done() or waits(database_url, "omega counter"), "it to go on")
            since.commit()
        assert [(True,)] == answer.result()

    assert {Budget.CPU_MILLI: 0} == used(store)
    assert [] == list(store.verify())


def test_an_open_transaction_is_named_and_others_are_not(
    database_url: str, store: PostgresStore
) -> None:
    """It may end only what holds the count up; the quota says that it is not counted."""
    one, two = store.add_machines(a_cell(2)).tolist()
    running, another = (a_running_job(store, a_spec(), [machine]) for machine in (one, two))
    limits = [2 * CORE] + [UNLIMITED] * 4
    count = "SELECT omega.count_quota('tenant', 'ann')"
    with held_open(database_url, lambda mine: end(mine, another, 0)) as past:
        store._link.call(  # noqa: SLF001
            "SELECT omega.set_quota('tenant', 'ann', %s)", (Big(limits),)
        )
        (before,) = store.quotas()
        with (
            ThreadPoolExecutor(1) as pool,
            psycopg.connect(database_url, application_name="omega counter") as counter,
        ):
            answer = pool.submit(counter.execute, count)
            wait_until(lambda: waits(database_url, "omega counter", "Timeout"), "it to wait")
            with held_open(database_url, lambda mine: end(mine, running, 0)) as since:
                error = answer.exception()
                its, others = past.info.backend_pid, since.info.backend_pid
    assert isinstance(error, psycopg.errors.LockNotAvailable)
    assert f"process {its}" in str(error)
    assert f"process {others}" not in str(error)
    assert not before.counted

    store.set_quota(before.quota)
    (after,) = store.quotas()
    assert after.counted
    assert [] == list(store.verify())


def test_a_prepared_transaction_is_called_that(database_url: str, store: PostgresStore) -> None:
    """It has no process, and whoever prepared it may be gone."""
    running = a_running_job(store, a_spec(), store.add_machines(a_cell(1)).tolist())
    limits = [CORE] + [UNLIMITED] * 4
    with psycopg.connect(database_url, autocommit=True) as owner:
        if owner.execute("SHOW max_prepared_transactions").fetchall() == [("0",)]:
            pytest.skip("this server prepares no transactions")
        owner.execute("BEGIN")
        owner.execute("SELECT omega.end_tasks(ARRAY[%s::bigint], '{0}', NULL)", (running.id,))
        owner.execute("PREPARE TRANSACTION 'ends a task'")
        try:
            owner.execute("SELECT omega.set_quota('tenant', 'ann', %s)", (limits,))
            with pytest.raises(psycopg.errors.LockNotAvailable, match=r"open \(a prepared one\)"):
                owner.execute("SELECT omega.count_quota('tenant', 'ann')")
        finally:
            owner.execute("COMMIT PREPARED 'ends a task'")
        assert [(True,)] == owner.execute("SELECT omega.count_quota('tenant', 'ann')").fetchall()
    assert [] == list(store.verify())


def waits(url: str, application: str, what: str = "Lock") -> bool:
    """Say whether a session waits for a lock, or something else."""
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT FROM pg_stat_activity WHERE application_name = %s AND wait_event_type = %s",
            (application, what),
        )
        return bool(found.fetchall())
