"""What an attempt comes to where a quota has a say; test_attempt.py has the rest of the loop."""

from collections.abc import Mapping

import numpy as np
import pytest

from omega.cell.view import View
from omega.clock import ManualClock
from omega.framework.attempt import attempt
from omega.framework.effects import drive
from omega.framework.job_attempt import AttemptEnd, JobResult
from omega.model.claims import Claims, Granularity
from omega.model.jobs import JobSpec, LeasedJob
from omega.model.quotas import Budget, Quota, QuotaScope
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_claim, a_group, a_spec, some_claims
from omega.testing.steps import a_running_job, add_a_cell, end, submit_and_lease
from tests.unit.framework.loops import AnswersFrom, InOrder, a_replica


@pytest.fixture
def store() -> MemoryStore:
    """Three machines of four cores, two of which ann may have."""
    store = MemoryStore(ManualClock())
    add_a_cell(store, 3)
    limit(store, {Budget.CPU_MILLI: 2_000})
    return store


def limit(store: MemoryStore, limits: Mapping[Budget, int]) -> None:
    store.set_quota(Quota(QuotaScope.TENANT, "ann", limits))


def attempted(store: MemoryStore, spec: JobSpec, scheduler: InOrder | None = None) -> JobResult:
    """Attempt a job."""
    (one,) = drive(attempt(a_replica(scheduler), submit_and_lease(store, spec)), AnswersFrom(store))
    return one


def test_a_job_takes_what_its_quota_has_left_and_then_ends(store: MemoryStore) -> None:
    one = attempted(store, a_spec(5, tenant="ann"))

    assert AttemptEnd.OVER_QUOTA is one.ending
    assert (2, 3, 2) == (one.placed, one.left, one.tries), "the second try is refused whole"
    assert [2, 3, 4] == one.job.unplaced.tolist()


def test_a_job_that_its_quota_covers_is_done(store: MemoryStore) -> None:
    assert AttemptEnd.DONE is attempted(store, a_spec(2, tenant="ann")).ending


def test_one_refusal_for_a_quota_is_enough_if_nothing_is_granted(store: MemoryStore) -> None:
    """There is no point in trying again at once, as there is where others were faster."""
    one = attempted(store, a_spec(tenant="ann", cpu_milli=2_001))

    assert AttemptEnd.OVER_QUOTA is one.ending
    assert (0, 1) == (one.placed, one.tries)


def test_a_gang_that_breaks_for_its_quota_ends_at_once(store: MemoryStore) -> None:
    one = attempted(store, a_spec(3, tenant="ann", minimum=3))

    assert AttemptEnd.OVER_QUOTA is one.ending
    assert (0, 1) == (one.placed, one.tries)


def test_all_or_nothing_ends_at_once_likewise(store: MemoryStore) -> None:
    scheduler = InOrder(granularity=Granularity.ALL_OR_NOTHING)
    one = attempted(store, a_spec(3, tenant="ann"), scheduler)

    assert AttemptEnd.OVER_QUOTA is one.ending
    assert (0, 1) == (one.placed, one.tries)


def test_a_try_that_was_granted_something_is_followed_by_another(store: MemoryStore) -> None:
    """The first group is refused, the second is not; meanwhile somebody else's task ends."""
    running = a_running_job(store, a_spec(tenant="ann"), [3])
    groups = [a_group(cpu_milli=1_500), a_group(cpu_milli=500)]
    jobs = submit_and_lease(store, a_spec(groups=groups, tenant="ann"))
    answers = AnswersFrom(store, [lambda: None, lambda: end(store, running, 0)])

    (one,) = drive(attempt(a_replica(), jobs), answers)

    assert AttemptEnd.DONE is one.ending
    assert (2, 2) == (one.placed, one.tries)


def test_of_two_jobs_planned_together_only_the_one_over_its_quota_ends(store: MemoryStore) -> None:
    jobs = submit_and_lease(store, a_spec(3, tenant="ann", minimum=3), a_spec(3, tenant="bob"))

    both = drive(attempt(a_replica(InOrder(together=2)), jobs), AnswersFrom(store))

    assert {jobs[0].id: AttemptEnd.OVER_QUOTA, jobs[1].id: AttemptEnd.DONE} == {
        one.job.id: one.ending for one in both
    }


class Stubborn(InOrder):
    """Claims twice as much of machine 1 as it has left, whatever its view shows."""

    def place(self, view: View, job: LeasedJob, rng: np.random.Generator) -> Claims:
        first, *others = job.unplaced.tolist()
        return Claims.of(
            [
                a_claim(first, machine=1, cpu_milli=8_000),
                some_claims(others, [2] * len(others), cpu_milli=1_000),
            ]
        )


def test_a_conflict_beside_a_quota_is_no_reason_to_go_on(store: MemoryStore) -> None:
    limit(store, {Budget.CPU_MILLI: 0})
    spec = a_spec(groups=[a_group(cpu_milli=8_000), a_group(1)], tenant="ann")

    assert AttemptEnd.OVER_QUOTA is attempted(store, spec, Stubborn()).ending


def test_conflicts_alone_have_nothing_to_do_with_a_quota(store: MemoryStore) -> None:
    limit(store, {Budget.JOBS: 0})

    assert AttemptEnd.CONFLICTS is attempted(store, a_spec(), Stubborn()).ending
