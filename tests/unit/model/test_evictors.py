"""Who evicted whom, of transactions that a store has judged."""

import pytest

from omega.clock import ManualClock
from omega.events import TasksEvicted
from omega.framework.effects import Commit
from omega.model.claims import Transaction
from omega.model.evictors import evicted_tasks, evictors
from omega.model.jobs import LeasedJob
from omega.model.outcomes import Outcome
from omega.store.memory.store import MemoryStore
from omega.testing.builders import (
    a_claim,
    a_spec,
    a_transaction,
    claims_of_job,
    evicting,
    some_claims,
)
from omega.testing.steps import a_leased_job, a_running_job, add_a_cell


@pytest.fixture
def store() -> MemoryStore:
    """Three machines of four cores."""
    store = MemoryStore(ManualClock())
    add_a_cell(store, 3)
    return store


def urgent(store: MemoryStore, tasks: int = 1) -> LeasedJob:
    return a_leased_job(store, a_spec(tasks, precedence=50))


def commit(store: MemoryStore, transaction: Transaction) -> Outcome:
    outcome = store.commit(transaction)
    assert outcome.accepted.any()
    return outcome


def test_of_several_evictors_the_one_with_the_highest_id_counts(store: MemoryStore) -> None:
    low = a_running_job(store, a_spec(3), [1, 1, 2])
    one, two = urgent(store), urgent(store)
    transaction = a_transaction(
        claims_of_job(one, evicting(a_claim(0, machine=2), (0, low.id, 2))),
        claims_of_job(two, evicting(a_claim(0, machine=1), (0, low.id, 0), (0, low.id, 1))),
    )
    outcome = commit(store, transaction)

    assert {low.id: two.id} == evictors(transaction, outcome)
    assert {low.id: 3} == evicted_tasks(transaction, outcome)


def test_a_gang_that_breaks_loses_all_its_tasks(store: MemoryStore) -> None:
    gang = a_running_job(store, a_spec(3, minimum=3), [1, 2, 3])
    other = a_running_job(store, a_spec(2), [1, 1])
    job = urgent(store)
    claim = evicting(a_claim(0, machine=1), (0, gang.id, 0), (0, other.id, 1))
    transaction = a_transaction(claims_of_job(job, claim))
    outcome = commit(store, transaction)

    assert {gang.id: 3, other.id: 1} == evicted_tasks(transaction, outcome)
    assert [
        TasksEvicted(gang.id, 3, job.id),
        TasksEvicted(other.id, 1, job.id),
    ] == list(Commit(transaction).evicted(outcome))


def test_what_a_job_moves_itself_is_not_evicted(store: MemoryStore) -> None:
    job = a_leased_job(store, a_spec(2))
    commit(store, a_transaction(claims_of_job(job, a_claim(0, machine=1))))
    moves = evicting(a_claim(0, machine=2), (0, job.id, 0))
    transaction = a_transaction(claims_of_job(job, moves))
    outcome = commit(store, transaction)

    assert 1 == len(outcome.evicted_job)
    assert {} == evictors(transaction, outcome)
    assert [] == list(Commit(transaction).evicted(outcome))


def test_a_job_that_moves_one_task_and_loses_another_has_lost_one(store: MemoryStore) -> None:
    job, other = a_leased_job(store, a_spec(3)), urgent(store)
    commit(store, a_transaction(claims_of_job(job, some_claims([0, 1], [1, 2]))))
    transaction = a_transaction(
        claims_of_job(job, evicting(a_claim(0, machine=3), (0, job.id, 0))),
        claims_of_job(other, evicting(a_claim(0, machine=2), (0, job.id, 1))),
    )
    outcome = commit(store, transaction)

    assert {job.id: other.id} == evictors(transaction, outcome)
    assert {job.id: 1} == evicted_tasks(transaction, outcome)


def test_who_is_refused_evicts_nobody(store: MemoryStore) -> None:
    low, equal = (a_running_job(store, a_spec(precedence=one), [1]) for one in (0, 50))
    job = urgent(store, 2)
    claims = evicting(some_claims([0, 1], [1, 1]), (0, low.id, 0), (1, equal.id, 0))
    transaction = a_transaction(claims_of_job(job, claims))
    outcome = commit(store, transaction)

    assert {low.id: 1} == evicted_tasks(transaction, outcome)
