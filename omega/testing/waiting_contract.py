"""What every store must do when users change jobs that wait.

Goal     Hold, release, requeue and precedence as tests that read as stories.
Promise  A held job is neither leased nor woken; tasks that run go on.
Source   omega/store/waiting.py.
"""

import pytest

from omega.errors import BadInput
from omega.lifecycle.states import ParkReason, State
from omega.model.outcomes import Verdict
from omega.store.leases import HandBack, Parking
from omega.store.protocols import Store
from omega.testing.builders import a_claim, a_spec, a_transaction, claims_of_job
from omega.testing.contract import Contract
from omega.testing.steps import (
    a_leased_job,
    a_running_job,
    add_a_cell,
    grant,
    lease_ids,
    status_of,
    submit_and_lease,
)

HOUR_MS = 3_600_000


class WaitingContract(Contract):
    """Jobs that wait, changed by their users."""

    def test_a_held_job_is_not_leased_until_it_is_released(self, store: Store) -> None:
        held, other = store.submit([a_spec(), a_spec()])

        assert store.hold(held)
        assert not store.hold(held), "it is held already"
        status = store.job(held)
        assert status is not None
        assert (State.PARKED, ParkReason.HELD) == (status.state, status.park_reason)
        assert [other] == lease_ids(store)
        assert store.release(held)
        assert not store.release(held)
        assert [held] == lease_ids(store), "once, although it was in the queue before"
        assert [] == lease_ids(store)

    def test_a_held_job_is_woken_by_nobody(self, store: Store) -> None:
        parked, held = submit_and_lease(store, a_spec(), a_spec())
        reasons = [Parking(it.id, it.token, ParkReason.NO_ROOM, "full") for it in (parked, held)]
        store.park(reasons)

        assert not store.release(parked.id), "nobody holds it"
        assert store.hold(held.id)
        assert [parked.id] == [it.id for it in store.parked("batch", jobs_max=9)]
        assert [parked.id] == store.wake([parked.id, held.id])
        assert not store.requeue(held.id)
        assert State.PARKED is status_of(store, held).state
        assert {ParkReason.HELD: 1} == {
            reason: jobs for reason, jobs in store.use().parked_by_reason.items() if jobs
        }

    def test_no_scheduler_holds_a_job(self, store: Store) -> None:
        job = a_leased_job(store)

        with pytest.raises(BadInput, match="bad reason"):
            store.park([Parking(job.id, job.token, ParkReason.HELD, "mine")])

        assert State.PLANNING is status_of(store, job).state

    def test_to_hold_a_job_takes_its_lease_away(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_leased_job(store, a_spec(2))
        grant(store, job, [0], [machine])

        assert store.hold(job.id)
        late = store.commit(a_transaction(claims_of_job(job, a_claim(task=1, machine=machine))))
        assert [Verdict.LEASE_LOST] == late.verdicts.tolist()
        assert 0 == store.hand_back([HandBack(job.id, job.token, 0, progressed=True)])
        assert set() == store.renew({job.id: job.token}, lease_ms=1_000)
        status = status_of(store, job)
        assert (State.PARKED, 1, 0) == (status.state, status.placed, status.ended)
        assert [] == store.verify()

    def test_what_runs_whole_or_is_over_is_not_held(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        runs = a_running_job(store, a_spec(), [machine])
        (over,) = store.submit([a_spec()])
        store.cancel(over)

        for job in (runs.id, over, 99):
            assert not store.hold(job)
            assert not store.release(job)
            assert not store.requeue(job)
            assert not store.set_precedence(job, 5)
        assert State.RUNNING is status_of(store, runs).state

    def test_a_job_that_is_requeued_waits_no_longer_for_its_delay(self, store: Store) -> None:
        delayed, parked = submit_and_lease(store, a_spec(), a_spec())
        store.hand_back([HandBack(delayed.id, delayed.token, HOUR_MS, progressed=False)])
        store.park([Parking(parked.id, parked.token, ParkReason.NO_ROOM, "full")])
        assert [] == lease_ids(store)

        assert store.requeue(delayed.id)
        assert store.requeue(delayed.id)
        assert store.requeue(parked.id)
        assert 0 == status_of(store, delayed).fruitless
        assert [delayed.id, parked.id] == lease_ids(store)
        assert [] == lease_ids(store)

    def test_the_order_follows_a_changed_precedence(self, store: Store) -> None:
        first, second, held = store.submit([a_spec(), a_spec(), a_spec()])
        store.hold(held)

        assert store.set_precedence(second, 7)
        assert store.set_precedence(held, 9)
        status = store.job(held)
        assert status is not None
        assert (State.PARKED, 9) == (status.state, status.precedence)
        leased = store.lease("batch", holder="b", jobs_max=9, lease_ms=HOUR_MS)
        assert [(second, 7), (first, 0)] == [(job.id, job.spec.precedence) for job in leased]
        assert not store.set_precedence(first, 1), "it is being planned"

    def test_a_precedence_has_32_bits(self, store: Store) -> None:
        (job,) = store.submit([a_spec()])

        for bad in (2**31, -(2**31) - 1):
            with pytest.raises(BadInput, match="precedence"):
                store.set_precedence(job, bad)

    def test_a_held_job_can_be_cancelled(self, store: Store) -> None:
        (job,) = store.submit([a_spec()])
        store.hold(job)

        assert store.cancel(job)
        assert [] == store.verify()
