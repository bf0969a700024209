"""An attempt that evicts tasks of its own job; test_attempt.py has the rest of the loop."""

import numpy as np
import pytest

from omega.cell.view import View
from omega.clock import ManualClock
from omega.framework.attempt import attempt
from omega.framework.effects import drive
from omega.framework.job_attempt import AttemptEnd
from omega.model.claims import Claims
from omega.model.jobs import LeasedJob
from omega.store.leases import HandBack
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_claim, a_spec, evicting, some_claims
from omega.testing.steps import add_a_cell, grant, lease_all, places, submit_and_lease
from tests.unit.framework.loops import AnswersFrom, InOrder, a_replica


@pytest.fixture
def store() -> MemoryStore:
    """Three machines of four cores."""
    store = MemoryStore(ManualClock())
    add_a_cell(store, 3)
    return store


class Evicts(InOrder):
    """Puts task 1 in the place of its own task 0, which is to move to machine 2 afterwards."""

    def place(self, view: View, job: LeasedJob, rng: np.random.Generator) -> Claims:
        self.asked.append(job.unplaced.tolist())
        task = int(job.unplaced[-1])
        if task == 1:
            return evicting(a_claim(1, machine=1, cpu_milli=4_000), (0, job.id, 0))
        return a_claim(task, machine=2)


def test_a_task_that_the_attempt_evicted_is_asked_for_again(store: MemoryStore) -> None:
    (job,) = submit_and_lease(store, a_spec(2))
    grant(store, job, [0], [1])
    store.hand_back([HandBack(job.id, job.token, 0, progressed=True)])
    scheduler = Evicts()

    (attempted,) = drive(attempt(a_replica(scheduler), lease_all(store)), AnswersFrom(store))

    assert [[1], [0]] == scheduler.asked
    assert AttemptEnd.DONE is attempted.ending
    assert (2, 2) == (attempted.job.placed, attempted.placed)
    assert {(job.id, 0): 2, (job.id, 1): 1} == places(store)


class EvictsAndIsRefused(InOrder):
    """Puts tasks 1 and 2 in the place of its own task 0, which has room for one of them."""

    def place(self, view: View, job: LeasedJob, rng: np.random.Generator) -> Claims:
        self.asked.append(job.unplaced.tolist())
        if len(self.asked) > 1:
            return some_claims(job.unplaced.tolist(), [2, 2])
        evicts = evicting(a_claim(1, machine=1, cpu_milli=4_000), (0, job.id, 0))
        return Claims.of([evicts, a_claim(2, machine=1)])


def test_an_evicted_task_is_asked_for_before_later_ones_that_were_refused(
    store: MemoryStore,
) -> None:
    (job,) = submit_and_lease(store, a_spec(3))
    grant(store, job, [0], [1])
    store.hand_back([HandBack(job.id, job.token, 0, progressed=True)])
    scheduler = EvictsAndIsRefused()

    (attempted,) = drive(attempt(a_replica(scheduler), lease_all(store)), AnswersFrom(store))

    assert [[1, 2], [0, 2]] == scheduler.asked
    assert AttemptEnd.DONE is attempted.ending
    assert {(job.id, 0): 2, (job.id, 1): 1, (job.id, 2): 2} == places(store)
