"""What changed while a call waited counts: rows are judged as they are once they are locked."""

from collections.abc import Callable
from contextlib import closing

import psycopg
import pytest

from omega.model.claims import Claims
from omega.model.outcomes import Verdict
from omega.model.quotas import Budget
from omega.store.postgres.store import PostgresStore
from omega.store.rounds import NotYet, Round
from omega.testing.builders import a_cell, a_spec, a_transaction, claims_of_job, or_on, some_claims
from omega.testing.steps import (
    LONG_MS,
    a_leased_job,
    a_running_job,
    add_a_cell,
    lease_all,
    verdicts_of,
)
from tests.fixtures.locks import in_the_way


def on_the_first(claims: Claims) -> Claims:
    return claims


def or_on_one_that_never_was(claims: Claims) -> Claims:
    """Judged in order, on more machines than are there."""
    return or_on(claims, (0, 2))


def twice(_: Claims) -> Claims:
    """Judged in order from the beginning: no task can be placed twice."""
    return some_claims([0, 0], [1, 1], cpu_milli=4_000)


@pytest.mark.parametrize(
    ("meanwhile", "verdict"),
    [
        ("SELECT omega.cancel_job(1)", Verdict.LEASE_LOST),
        ("SELECT omega.set_state('{1}', 1::smallint)", Verdict.CLOSED),
        ("SELECT omega.resize_machine(1, array_fill(1, '{11}'), 0)", Verdict.OVERCOMMIT),
    ],
)
@pytest.mark.parametrize("chosen", [on_the_first, or_on_one_that_never_was, twice])
def test_a_commit_judges_what_it_finds_once_it_need_not_wait(
    database_url: str,
    store: PostgresStore,
    chosen: Callable[[Claims], Claims],
    meanwhile: str,
    verdict: Verdict,
) -> None:
    store.add_machines(a_cell(1, cpu_milli=4_000))
    job = a_leased_job(store, a_spec(2))
    claims = chosen(some_claims([0], [1], cpu_milli=4_000))
    transaction = a_transaction(claims_of_job(job, claims))
    with (
        closing(PostgresStore(database_url)) as rival,
        in_the_way(database_url, meanwhile, lambda: rival.commit(transaction)) as (session, call),
    ):
        assert not call.done()
        session.commit()

        assert {verdict} == set(verdicts_of(call.result()))
    assert [] == list(store.verify())


@pytest.mark.parametrize("chosen", [on_the_first, or_on_one_that_never_was])
def test_a_commit_waits_for_nobody_who_sets_a_quota(
    database_url: str, store: PostgresStore, chosen: Callable[[Claims], Claims]
) -> None:
    """It came first, then; what it was granted is counted."""
    store.add_machines(a_cell(1, cpu_milli=4_000))
    job = a_leased_job(store, a_spec(2))
    transaction = a_transaction(claims_of_job(job, chosen(some_claims([0], [1], cpu_milli=4_000))))
    setting = "SELECT omega.set_quota('tenant', 'default', array_fill(1, '{5}'))"
    with (
        closing(PostgresStore(database_url)) as rival,
        in_the_way(database_url, setting, lambda: rival.commit(transaction)) as (session, call),
    ):
        assert call.done()
        session.commit()

        assert {Verdict.ACCEPTED} == set(verdicts_of(call.result()))
    with psycopg.connect(database_url) as session:
        session.execute("SELECT omega.count_quota('tenant', 'default')")
    (quota,) = store.quotas()
    assert 1 - 4_000 == quota.left[Budget.CPU_MILLI]
    assert [] == list(store.verify())


def test_of_two_that_begin_a_round_at_once_one_does(
    database_url: str, store: PostgresStore
) -> None:
    """The second has found it due, and waits for the first."""
    beginning = "SELECT omega.begin_round('batch', 'another', 600000)"
    with (
        closing(PostgresStore(database_url)) as rival,
        in_the_way(
            database_url,
            beginning,
            lambda: rival.begin_round("batch", holder="me", length_ms=LONG_MS),
        ) as (session, call),
    ):
        assert not call.done()
        session.commit()

        assert isinstance(call.result(), NotYet)


def test_a_recall_tells_where_tasks_run_now(database_url: str, store: PostgresStore) -> None:
    """Not where they ran before the job's row was locked."""
    job = a_running_job(store, a_spec(2), add_a_cell(store, 2))
    begun = store.begin_round("batch", holder="x", length_ms=0)
    assert isinstance(begun, Round)
    ending = f"SELECT omega.end_tasks('{{{job.id}}}', '{{0}}', NULL)"
    with (
        closing(PostgresStore(database_url)) as rival,
        in_the_way(
            database_url,
            ending,
            lambda: rival.recall("batch", begun.number, [job.id], lease_ms=LONG_MS),
        ) as (session, call),
    ):
        assert not call.done()
        session.commit()

        (again,) = call.result()
    assert [1] == again.placed_task.tolist()


def test_who_leases_passes_over_what_another_is_about_to_lease(
    database_url: str, store: PostgresStore
) -> None:
    store.submit([a_spec() for _ in range(3)])
    leasing = f"SELECT id FROM omega.lease_jobs('batch', 'another', 2, {LONG_MS})"
    with (
        closing(PostgresStore(database_url)) as rival,
        in_the_way(database_url, leasing, lambda: lease_all(rival)) as (session, call),
    ):
        assert call.done(), "it waits for nobody"
        session.commit()

        assert [3] == [job.id for job in call.result()]
