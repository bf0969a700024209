"""One attempt: what the loop asks for, what it claims, and when it tries again."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from omega.cell.view import View
from omega.clock import ManualClock
from omega.errors import InvariantBroken
from omega.framework.attempt import attempt
from omega.framework.effects import Commit, Effect, Refresh, Think, drive
from omega.framework.job_attempt import AttemptEnd, events_of
from omega.framework.scheduler import DecisionTime
from omega.lifecycle.states import ParkReason, State
from omega.model.claims import Claims, Granularity
from omega.model.jobs import LeasedJob
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_claim, a_group, a_spec, or_on
from omega.testing.steps import (
    add_a_cell,
    end,
    grant,
    lease_all,
    status_of,
    submit_and_lease,
)
from tests.unit.framework.loops import AnswersFrom, Anywhere, InOrder, a_replica


@pytest.fixture
def store() -> MemoryStore:
    """Three machines of four cores."""
    store = MemoryStore(ManualClock())
    add_a_cell(store, 3)
    return store


def rival(store: MemoryStore, machine: int, tasks: int) -> Callable[[], object]:
    """Return a rival that takes so many cores of a machine when it is called."""
    (job,) = submit_and_lease(store, a_spec(tasks, name="rival"))
    return lambda: grant(store, job, range(tasks), [machine] * tasks)


def test_it_looks_then_thinks_then_commits(store: MemoryStore) -> None:
    jobs = submit_and_lease(store, a_spec(2), a_spec(3))
    answers = AnswersFrom(store)
    replica = a_replica(InOrder(together=2), decision_time=DecisionTime(job_s=1.0, task_s=0.1))

    drive(attempt(replica, jobs), answers)

    assert [Refresh, Think, Commit] == [type(effect) for effect in answers.effects]
    assert Think(2 * 1.0 + 5 * 0.1) == answers.effects[1]


def test_a_job_with_room_is_done_in_one_try(store: MemoryStore) -> None:
    jobs = submit_and_lease(store, a_spec(5))

    (attempted,) = drive(attempt(a_replica(), jobs), AnswersFrom(store))

    assert AttemptEnd.DONE is attempted.ending
    assert (5, 0, 1, 5) == (
        attempted.placed,
        attempted.left,
        attempted.tries,
        attempted.tasks_decided,
    )
    assert State.RUNNING is status_of(store, jobs[0]).state


def test_later_jobs_of_a_transaction_see_what_earlier_ones_claimed(store: MemoryStore) -> None:
    jobs = submit_and_lease(store, a_spec(4), a_spec(4), a_spec(4))
    answers = AnswersFrom(store)

    attempted = drive(attempt(a_replica(InOrder(together=3)), jobs), answers)

    assert [AttemptEnd.DONE] * 3 == [one.ending for one in attempted]
    (transaction,) = answers.transactions
    assert [1] * 4 + [2] * 4 + [3] * 4 == transaction.claims.machine.tolist()


def test_the_view_is_as_it_was_when_an_attempt_is_dropped(store: MemoryStore) -> None:
    jobs = submit_and_lease(store, a_spec(4))
    view = View(store.snapshot())
    before = view.free.copy()
    steps = attempt(a_replica(), jobs)
    next(steps)
    steps.send(view)
    steps.send(None)

    steps.close()

    assert (before == view.free).all()


def test_refused_tasks_and_only_those_are_tried_again_on_a_view_brought_up_to_date(
    store: MemoryStore,
) -> None:
    rivals = [rival(store, machine=1, tasks=3)]
    jobs = submit_and_lease(store, a_spec(6))
    scheduler = InOrder()
    answers = AnswersFrom(store, rivals)

    (attempted,) = drive(attempt(a_replica(scheduler), jobs), answers)

    assert [[0, 1, 2, 3, 4, 5], [1, 2, 3]] == scheduler.asked
    again = [Refresh, Think, Commit]
    assert again + again == [type(e) for e in answers.effects]
    assert (6, 2) == (attempted.placed, attempted.tries)
    assert 9 == attempted.tasks_decided


class AnswersFromOneView(AnswersFrom):
    """Gives the same view at each refresh: nobody reads between two tries."""

    def __init__(self, store: MemoryStore, rivals: Sequence[Callable[[], object]]) -> None:
        super().__init__(store, rivals)
        self.view = View(store.snapshot())

    def __call__(self, effect: Effect) -> object:
        answer = super().__call__(effect)
        return self.view if isinstance(effect, Refresh) else answer


@pytest.mark.parametrize(
    ("learns", "then_on", "believed"),
    [(True, [2, 2, 3, 3], [0, 0, 2_000]), (False, [1, 1, 1, 1], [4_000, 2_000, 4_000])],
)
def test_a_scheduler_may_learn_from_refusals_or_from_grants_alone(
    store: MemoryStore, *, learns: bool, then_on: list[int], believed: list[int]
) -> None:
    answers = AnswersFromOneView(store, [rival(store, machine=1, tasks=4)])
    scheduler = InOrder()
    scheduler.learns_from_refusals = learns

    drive(attempt(a_replica(scheduler), submit_and_lease(store, a_spec(6))), answers)

    first, second, *_ = answers.transactions
    assert [1, 1, 1, 1, 2, 2] == first.claims.machine.tolist()
    assert then_on == second.claims.machine.tolist()
    assert believed == answers.view.free[:, 0].tolist()


def test_a_broken_gang_is_planned_anew_as_a_whole(store: MemoryStore) -> None:
    rivals = [rival(store, machine=1, tasks=3)]
    jobs = submit_and_lease(store, a_spec(6, minimum=6))
    scheduler = InOrder()

    (attempted,) = drive(attempt(a_replica(scheduler), jobs), AnswersFrom(store, rivals))

    assert [list(range(6)), list(range(6))] == scheduler.asked
    assert AttemptEnd.DONE is attempted.ending


def test_a_job_that_only_conflicts_is_put_off_after_two_tries(store: MemoryStore) -> None:
    rivals = [rival(store, machine=machine, tasks=4) for machine in (1, 2, 3)]
    jobs = submit_and_lease(store, a_spec(1))

    (attempted,) = drive(attempt(a_replica(), jobs), AnswersFrom(store, rivals))

    assert AttemptEnd.CONFLICTS is attempted.ending
    assert (0, 1, 2) == (attempted.placed, attempted.left, attempted.tries)
    assert attempted.diagnosis is None


def test_tries_are_limited_even_with_progress(store: MemoryStore) -> None:
    rivals = [rival(store, machine=1, tasks=3)]
    jobs = submit_and_lease(store, a_spec(4))

    (attempted,) = drive(attempt(a_replica(tries_max=1), jobs), AnswersFrom(store, rivals))

    assert AttemptEnd.CONFLICTS is attempted.ending
    assert (1, 3, 1) == (attempted.placed, attempted.left, attempted.tries)


def test_what_finds_no_room_leaves_with_a_diagnosis_and_without_a_commit(
    store: MemoryStore,
) -> None:
    jobs = submit_and_lease(store, a_spec(1, cpu_milli=5_000))
    answers = AnswersFrom(store)

    (attempted,) = drive(attempt(a_replica(), jobs), answers)

    assert AttemptEnd.NO_ROOM is attempted.ending
    assert attempted.diagnosis is not None
    assert ParkReason.NEVER_FITS is attempted.diagnosis.reason
    assert [] == answers.transactions


def test_a_job_that_fits_in_part_keeps_what_it_got(store: MemoryStore) -> None:
    jobs = submit_and_lease(store, a_spec(14))

    (attempted,) = drive(attempt(a_replica(), jobs), AnswersFrom(store))

    assert AttemptEnd.NO_ROOM is attempted.ending
    assert (12, 2, 1) == (attempted.placed, attempted.left, attempted.tries)
    assert attempted.diagnosis is not None
    assert ParkReason.NO_ROOM is attempted.diagnosis.reason


def test_the_lucky_leave_while_the_refused_go_on(store: MemoryStore) -> None:
    rivals = [rival(store, machine=1, tasks=2)]
    jobs = submit_and_lease(store, a_spec(2, name="first"), a_spec(2, name="second"))
    answers = AnswersFrom(store, rivals)

    attempted = drive(attempt(a_replica(InOrder(together=2)), jobs), answers)

    assert {jobs[0].id: 1, jobs[1].id: 2} == {one.job.id: one.tries for one in attempted}
    assert [2, 1] == [len(transaction.jobs) for transaction in answers.transactions]


def test_a_job_whose_lease_is_lost_is_let_go(store: MemoryStore) -> None:
    (stale,) = submit_and_lease(store, a_spec(2), lease_ms=0)
    store.rescue()
    lease_all(store)

    (attempted,) = drive(attempt(a_replica(), [stale]), AnswersFrom(store))

    assert AttemptEnd.LEASE_LOST is attempted.ending
    assert (0, 1) == (attempted.placed, attempted.tries)


def test_a_task_that_turns_out_to_run_is_not_asked_for_again(store: MemoryStore) -> None:
    (job,) = submit_and_lease(store, a_spec(3))
    grant(store, job, [1], [3])  # a commit of ours whose answer never came

    (attempted,) = drive(attempt(a_replica(), [job]), AnswersFrom(store))

    assert AttemptEnd.DONE is attempted.ending
    assert (2, 0) == (attempted.placed, attempted.left)


def test_a_job_larger_than_a_transaction_is_planned_slice_by_slice(store: MemoryStore) -> None:
    jobs = submit_and_lease(store, a_spec(10))
    scheduler = InOrder()

    (attempted,) = drive(attempt(a_replica(scheduler, claims_max=4), jobs), AnswersFrom(store))

    assert [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]] == scheduler.asked
    assert (10, AttemptEnd.DONE) == (attempted.placed, attempted.ending)


def test_jobs_that_do_not_fit_one_transaction_wait_for_the_next(store: MemoryStore) -> None:
    jobs = submit_and_lease(store, a_spec(3), a_spec(2), a_spec(1))
    answers = AnswersFrom(store)
    replica = a_replica(InOrder(together=3), claims_max=4)

    attempted = drive(attempt(replica, jobs), answers)

    assert [[1], [2, 3]] == [[part.job for part in t.jobs] for t in answers.transactions]
    assert [AttemptEnd.DONE] * 3 == [one.ending for one in attempted]


def test_a_gang_that_no_transaction_can_hold_is_given_up_with_the_reason(
    store: MemoryStore,
) -> None:
    jobs = submit_and_lease(store, a_spec(6, minimum=5))
    answers = AnswersFrom(store)

    (attempted,) = drive(attempt(a_replica(claims_max=4), jobs), answers)

    assert AttemptEnd.NO_ROOM is attempted.ending
    assert attempted.diagnosis is not None
    assert ParkReason.GANG_TOO_LARGE is attempted.diagnosis.reason
    assert [Refresh()] == answers.effects


@pytest.mark.parametrize(
    ("granularity", "minimum", "expected"),
    [
        (Granularity.INCREMENTAL, 0, 0),
        (Granularity.INCREMENTAL, 2, 2),
        (Granularity.ALL_OR_NOTHING, 0, 3),
    ],
)
def test_the_minimum_follows_from_job_and_scheduler(
    store: MemoryStore, granularity: Granularity, minimum: int, expected: int
) -> None:
    jobs = submit_and_lease(store, a_spec(3, minimum=minimum))
    answers = AnswersFrom(store)

    drive(attempt(a_replica(InOrder(granularity=granularity)), jobs), answers)

    (transaction,) = answers.transactions
    assert expected == transaction.jobs[0].grants_min


def test_a_gang_that_stands_grows_one_by_one(store: MemoryStore) -> None:
    (job,) = submit_and_lease(store, a_spec(14, minimum=10))
    replica = a_replica()
    (first,) = drive(attempt(replica, [job]), AnswersFrom(store))
    assert 1 == end(store, job, 0)

    (second,) = drive(attempt(replica, [first.job]), AnswersFrom(store))

    assert (12, 2) == (first.placed, first.left)
    assert (1, 1) == (second.placed, second.left)


class Careless(InOrder):
    """Claims whatever it was told to, right or wrong."""

    def __init__(self, claims: Claims) -> None:
        super().__init__()
        self.claims = claims

    def place(self, view: View, job: LeasedJob, rng: np.random.Generator) -> Claims:
        return self.claims


class Forgetful(InOrder):
    """Loses a job when it orders them."""

    def order(self, jobs: Sequence[LeasedJob], view: View) -> Sequence[LeasedJob]:
        return jobs[1:]


def test_fewer_claims_than_a_gang_needs_are_not_even_submitted(store: MemoryStore) -> None:
    jobs = submit_and_lease(store, a_spec(2, minimum=2))
    answers = AnswersFrom(store)

    (attempted,) = drive(attempt(a_replica(Careless(a_claim(0))), jobs), answers)

    assert AttemptEnd.NO_ROOM is attempted.ending
    assert [] == answers.transactions


def test_a_scheduler_that_claims_for_other_tasks_is_found_out(store: MemoryStore) -> None:
    jobs = submit_and_lease(store, a_spec(2))

    with pytest.raises(InvariantBroken, match="not asked to place"):
        drive(attempt(a_replica(Careless(a_claim(2))), jobs), AnswersFrom(store))


def test_a_scheduler_that_loses_a_job_is_found_out(store: MemoryStore) -> None:
    jobs = submit_and_lease(store, a_spec(1))

    with pytest.raises(InvariantBroken, match="order"):
        drive(attempt(a_replica(Forgetful()), jobs), AnswersFrom(store))


def test_chance_differs_by_try_and_by_replica_and_by_nothing_else(store: MemoryStore) -> None:
    (job,) = submit_and_lease(store, a_spec(1))
    first, second = a_replica(name="0"), a_replica(name="1")

    drawn = [
        replica.rng(job, tries).integers(2**62)
        for replica, tries in [(first, 1), (first, 2), (second, 1), (first, 1)]
    ]

    assert drawn[0] == drawn[3]
    assert 3 == len(set(drawn))


def test_the_same_answers_lead_to_the_same_claims() -> None:
    machines = []
    for _ in range(2):
        store = MemoryStore(ManualClock())
        add_a_cell(store, 50)
        jobs = submit_and_lease(store, a_spec(20), a_spec(20))
        answers = AnswersFrom(store)
        drive(attempt(a_replica(Anywhere()), jobs), answers)
        machines.append(answers.transactions[0].claims.machine.tolist())

    assert machines[0] == machines[1]
    assert len(set(machines[0])) > 10


def test_decision_time_is_shared_by_tasks_decided_on(store: MemoryStore) -> None:
    jobs = submit_and_lease(store, a_spec(1), a_spec(3))
    attempted = drive(attempt(a_replica(InOrder(together=2)), jobs), AnswersFrom(store))

    events = list(events_of(attempted, thought_s=2.0))

    assert [0.5, 1.5] == [event.thought_s for event in events]
    assert [(1, 0), (3, 0)] == [(event.placed, event.left) for event in events]


class WithAlternates(InOrder):
    """Wants machine 1, or else machine 3; no two tasks on one machine."""

    def place(self, view: View, job: LeasedJob, rng: np.random.Generator) -> Claims:
        return or_on(a_claim(0, machine=1), (0, 3))


def test_the_loop_learns_where_a_claim_landed(store: MemoryStore) -> None:
    (job,) = submit_and_lease(store, a_spec(groups=[a_group(different_machines=True)]))
    answers = AnswersFrom(store, rivals=[rival(store, 1, 4)])

    (attempted,) = drive(attempt(a_replica(WithAlternates()), [job]), answers)

    assert AttemptEnd.DONE is attempted.ending
    assert [3] == attempted.job.placed_machine.tolist()
