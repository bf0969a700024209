"""What a recorder keeps of a store's calls."""

from pathlib import Path

import numpy as np
import pytest

from omega.clock import Clock, ManualClock
from omega.errors import StoreUnavailable
from omega.model.arrays import integers
from omega.model.claims import Transaction
from omega.model.outcomes import Outcome
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_transaction, claims_of_job, some_claims
from omega.testing.faults import FaultyStore, Losses, Rates
from omega.testing.pass_through import PassThrough
from omega.testing.recorder import (
    Ended,
    Event,
    Judged,
    Recorder,
    keeping_in,
    kept_in,
    lost_grants,
    places,
)
from omega.testing.steps import a_leased_job, add_a_cell


class Slow(PassThrough):
    """Takes a second, and loses the first replies."""

    def __init__(self, store: MemoryStore, clock: Clock, losses: int = 0) -> None:
        super().__init__(store)
        self._clock = clock
        self._losses = losses

    def commit(self, transaction: Transaction) -> Outcome:
        outcome = super().commit(transaction)
        self._clock.sleep(1.0)
        self._losses -= 1
        if self._losses >= 0:
            raise StoreUnavailable("the reply was lost")
        return outcome


def recorded(losses: int = 0) -> tuple[Recorder, MemoryStore, Transaction, list[Event]]:
    clock = ManualClock(10.0)
    store = MemoryStore(clock)
    add_a_cell(store)
    transaction = a_transaction(claims_of_job(a_leased_job(store), some_claims([0], [2])))
    events: list[Event] = []
    return (
        Recorder(Slow(store, clock, losses), "me", clock, events.append),
        store,
        transaction,
        events,
    )


def test_a_commit_is_kept_with_its_answer_and_its_times() -> None:
    recorder, _, transaction, events = recorded()
    outcome = recorder.commit(transaction)

    (event,) = events
    assert isinstance(event, Judged)
    assert ("me", 10.0, 11.0, False) == (
        event.worker, event.started, event.answered, event.asked_again,
    )  # fmt: skip
    assert event.transaction is transaction
    assert event.outcome is outcome


def test_a_commit_that_is_repeated_is_one_event_from_the_first_call_on() -> None:
    recorder, _, transaction, events = recorded(losses=2)
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            recorder.commit(transaction)
    assert [] == events
    recorder.commit(transaction)

    (event,) = events
    assert isinstance(event, Judged)
    assert (10.0, 13.0, True) == (event.started, event.answered, event.asked_again)


def test_ends_are_kept_with_their_count() -> None:
    recorder, _, transaction, events = recorded()
    recorder.commit(transaction)
    job = transaction.jobs[0].job
    recorder.end_tasks(integers([job, job]), np.array([0, 7]))

    event = events[-1]
    assert isinstance(event, Ended)
    assert (1, [job, job], [0, 7]) == (event.ended, event.job.tolist(), event.task.tolist())


def test_an_end_without_an_answer_is_one_of_unknown_effect() -> None:
    events: list[Event] = []
    clock = ManualClock()
    lossy = FaultyStore(
        MemoryStore(clock), Losses(Rates(lose_reply=1.0), np.random.default_rng(0), clock)
    )
    with pytest.raises(StoreUnavailable):
        Recorder(lossy, "me", clock, events.append).end_tasks(integers([1]), np.array([0]))

    (event,) = events
    assert isinstance(event, Ended)
    assert event.ended is None


def test_a_file_keeps_what_was_answered_even_if_the_last_was_cut_off(tmp_path: Path) -> None:
    _, _, transaction, _ = recorded()
    path = tmp_path / "events"
    with keeping_in(path) as keep:
        for number in range(3):
            keep(Ended(worker=str(number), started=0, answered=1, job=integers(),
                       task=np.zeros(0, np.intp), ended=0))  # fmt: skip
    path.write_bytes(path.read_bytes()[:-5])

    assert ["0", "1"] == [event.worker for event in kept_in(path)]
    assert [] == kept_in(tmp_path / "nothing")
    assert 1 == len(transaction.claims)


def test_a_grant_that_is_not_there_is_told_of() -> None:
    recorder, store, transaction, events = recorded()
    recorder.commit(transaction)
    job = transaction.jobs[0].job

    assert {(job, 0): 2} == places(store.allocations())
    assert [] == lost_grants(events, store.allocations())
    store.cancel(job)
    assert [f"job {job} task 0: granted on machine 2, is on None"] == lost_grants(
        events, store.allocations()
    )
