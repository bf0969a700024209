"""What every store must do with the exits of programs.

Goal     Each rule of what an exit does to its task, its job and what is left of its gang.
Promise  A report that comes again changes nothing.
Source   docs/decisions/0044-programs-and-agents.md.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from omega.errors import BadInput
from omega.lifecycle.states import ParkReason, State
from omega.limits import LIMITS
from omega.model.arrays import integers
from omega.model.exits import Exit, ExitCause, TaskExit, TaskOutput
from omega.model.jobs import JobSpec, LeasedJob
from omega.model.quotas import Budget, Quota, QuotaScope
from omega.store.leases import HandBack, Parking
from omega.store.protocols import Store
from omega.testing.builders import a_claim, a_spec, a_transaction, claims_of_job, evicting
from omega.testing.contract import Contract
from omega.testing.elastic_contract import (
    all_helping,
    an_elastic_job,
    an_elastic_spec,
    some_helpers,
)
from omega.testing.steps import (
    a_leased_job,
    a_running_job,
    add_a_cell,
    end,
    grant,
    lease_all,
    places,
    row_of,
    status_of,
)

WELL = Exit(cause=ExitCause.EXITED, code=0)
BADLY = Exit(cause=ExitCause.EXITED, code=3, restarts=2, detail="it gave up")
KILLED = Exit(cause=ExitCause.OUT_OF_MEMORY, signal=9)


def some_exit(*, bad: bool) -> Exit:
    """Return an exit that is a success or not."""
    return BADLY if bad else WELL


def started(store: Store, job: LeasedJob | int, task: int) -> int:
    """Return when the allocation of a task that runs began, in milliseconds."""
    live = store.allocations_of([job if isinstance(job, int) else job.id])
    (at,) = np.flatnonzero(live.task == task)
    return int(live.started_ms[at])


def an_exit(store: Store, job: LeasedJob, task: int, how: Exit = WELL) -> TaskExit:
    """Return the exit of a task that runs."""
    return TaskExit(job.id, task, started(store, job, task), how)


def report(store: Store, job: LeasedJob, *tasks: int, how: Exit = WELL) -> int:
    """Report one exit of all these tasks, which run; return how many were recorded."""
    return store.report_exits([an_exit(store, job, task, how) for task in tasks])


def counts(store: Store, job: LeasedJob | int) -> tuple[State, int, int, int]:
    """Return the state of a job, and how many tasks are placed, over and failed."""
    status = status_of(store, job)
    return status.state, status.placed, status.ended, status.failed


def moved(store: Store, job: LeasedJob, here: int, there: int) -> LeasedJob:
    """Evict the one task of a job from one machine and place it on another."""
    pusher = a_leased_job(store, a_spec(precedence=20))
    evicted = evicting(a_claim(0, machine=here), (0, job.id, 0))
    assert store.commit(a_transaction(claims_of_job(pusher, evicted))).accepted.all()
    (again,) = lease_all(store)
    grant(store, again, [0], [there])
    return again


class ExitContract(Contract):
    """How exits end tasks and jobs."""

    def test_a_job_whose_tasks_all_exit_well_has_succeeded(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_running_job(store, a_spec(2), [machine] * 2)

        assert 1 == report(store, job, 0)
        assert (State.RUNNING, 2, 1, 0) == counts(store, job)
        assert 1 == report(store, job, 1)

        assert (State.SUCCEEDED, 2, 2, 0) == counts(store, job)
        assert 0 == row_of(store, machine).used.sum()
        assert status_of(store, job).finished_ms is not None

    def test_a_job_goes_on_until_its_last_task_and_has_failed_then(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_running_job(store, a_spec(3), [machine] * 3)

        report(store, job, 1, how=BADLY)
        assert (State.RUNNING, 3, 1, 1) == counts(store, job)
        report(store, job, 0, how=KILLED)
        assert (State.RUNNING, 3, 2, 2) == counts(store, job)
        report(store, job, 2)

        assert (State.FAILED, 3, 3, 2) == counts(store, job)
        assert {} == places(store)

    def test_the_last_task_of_a_failed_job_may_end_without_an_exit(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_running_job(store, a_spec(2), [machine] * 2)
        report(store, job, 1, how=BADLY)

        end(store, job, 0)

        assert (State.FAILED, 2, 2, 1) == counts(store, job)

    def test_exits_of_several_jobs_come_in_one_report(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        one = a_running_job(store, a_spec(2), [machine] * 2)
        other = a_running_job(store, a_spec(2), [machine] * 2)

        recorded = store.report_exits(
            [
                an_exit(store, other, 1, BADLY),
                an_exit(store, one, 0),
                an_exit(store, one, 1),
                an_exit(store, other, 0),
            ]
        )

        assert 4 == recorded
        assert (State.SUCCEEDED, 2, 2, 0) == counts(store, one)
        assert (State.FAILED, 2, 2, 1) == counts(store, other)

    def test_a_report_that_comes_again_counts_nothing(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_running_job(store, a_spec(2), [machine] * 2)
        told = an_exit(store, job, 0, BADLY)

        assert 1 == store.report_exits([told, told, replace(told, exit=WELL)])
        assert [0, 0] == [store.report_exits([told]), store.report_exits([])]

        assert (State.RUNNING, 2, 1, 1) == counts(store, job)
        assert [BADLY] == [it.exit for it in store.exits(job.id)]

    def test_an_exit_of_an_earlier_start_is_passed_over(self, store: Store) -> None:
        here, there, _ = add_a_cell(store)
        job = a_running_job(store, a_spec(), [here])
        late = replace(an_exit(store, job, 0, BADLY), started_ms=started(store, job, 0) - 1)
        moved(store, job, here, there)

        assert 0 == store.report_exits([late])

        assert (State.RUNNING, 1, 0, 0) == counts(store, job)
        assert there == places(store)[job.id, 0]
        assert [] == store.exits(job.id)

    def test_what_does_not_run_is_passed_over(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_running_job(store, a_spec(), [machine])
        (waits,) = store.submit([a_spec()])
        began = started(store, job, 0)

        assert 0 == store.report_exits(
            [
                TaskExit(job.id, 1, began, BADLY),
                TaskExit(waits, 0, began, BADLY),
                TaskExit(10**9, 0, began, BADLY),
            ]
        )
        assert (State.PENDING, 0, 0, 0) == counts(store, waits)

    def test_exits_are_told_failed_ones_first_and_the_newest_first(self, store: Store) -> None:
        first, second, _ = add_a_cell(store)
        job = a_running_job(store, a_spec(4), [first, second, first, second])
        began = [started(store, job, task) for task in range(4)]
        for task, how in ((2, BADLY), (0, WELL), (3, KILLED), (1, WELL)):
            report(store, job, task, how=how)

        told = store.exits(job.id)

        names = store.snapshot().names
        assert {3, 2} == {it.task for it in told[:2]}
        assert [True] * 2 == [it.exit.is_success for it in told[2:]]
        assert sorted(-it.ended_ms for it in told[:2]) == [-it.ended_ms for it in told[:2]]
        by_task = {it.task: it for it in told}
        assert {2: BADLY, 0: WELL, 3: KILLED, 1: WELL} == {n: it.exit for n, it in by_task.items()}
        assert began == [by_task[task].started_ms for task in range(4)]
        assert [names[0], names[1]] == [by_task[0].machine, by_task[3].machine]
        assert all(it.ended_ms >= it.started_ms for it in told)
        assert told[:1] == store.exits(job.id, exits_max=1)
        assert [] == store.exits(job.id + 1)

    def test_a_detail_is_readable(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_running_job(store, a_spec(2), [machine] * 2)
        rude = Exit(cause=ExitCause.NOT_STARTED, detail="\x1b[2J")
        long = Exit(cause=ExitCause.LOST, detail="x" * 2_000)

        report(store, job, 0, how=rude)
        report(store, job, 1, how=long)

        details = {it.task: it.exit.detail for it in store.exits(job.id)}
        assert {0: "\\x1b[2J", 1: "x" * 997 + "..."} == details

    def test_an_exit_gives_back_to_quotas_and_causes_no_conflict(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        store.set_quota(Quota(QuotaScope.TENANT, "default", {Budget.JOBS: 5}))
        job = a_running_job(store, a_spec(2, minimum=2), [machine] * 2)
        before = row_of(store, machine)

        report(store, job, 0, how=BADLY)

        (quota,) = store.quotas()
        after = row_of(store, machine)
        assert 5 == quota.left[Budget.JOBS]
        assert before.sequence.tolist() == after.sequence.tolist()
        assert after.revision[0] > before.revision[0]

    def test_more_than_a_call_may_name_are_refused(self, store: Store) -> None:
        many = [TaskExit(1, task, 0, WELL) for task in range(LIMITS.tasks_per_release_max + 1)]
        jobs = integers(range(len(many)))
        calls: list[Callable[[], object]] = [
            lambda: store.report_exits(many),
            lambda: store.running(jobs, jobs.astype(np.intp), jobs),
            lambda: store.programs(jobs),
            lambda: store.addresses(jobs),
            lambda: store.report_outputs(
                [TaskOutput(it.job, it.task, 0, "stdout", 0, b"") for it in many]
            ),
        ]

        for call in calls:
            with pytest.raises(BadInput, match="a list of at most 1000"):
                call()


def _park(store: Store, job: LeasedJob) -> None:
    store.park([Parking(job.id, job.token, ParkReason.NO_ROOM, "full")])


def _hand_back(store: Store, job: LeasedJob) -> None:
    store.hand_back([HandBack(job.id, job.token, 0, progressed=True)])


LEASES: dict[State, Callable[[Store, LeasedJob], None]] = {
    State.PLANNING: lambda _store, _job: None,
    State.PENDING: _hand_back,
    State.PARKED: _park,
}


class FailedGangContract(Contract):
    """A gang fails as soon as one of its tasks does."""

    def test_the_other_tasks_end_with_the_one_that_fails(self, store: Store) -> None:
        machines = add_a_cell(store)
        job = a_running_job(store, a_spec(3, minimum=2), machines)

        assert 1 == report(store, job, 1, how=BADLY)

        assert (State.FAILED, 3, 3, 1) == counts(store, job)
        assert {} == places(store)
        assert [1] == [it.task for it in store.exits(job.id)]
        assert 0 == store.snapshot().rows.used.sum()

    def test_a_task_that_exits_well_breaks_nothing(self, store: Store) -> None:
        machines = add_a_cell(store)
        job = a_running_job(store, a_spec(3, minimum=3), machines)

        report(store, job, 0)
        assert (State.RUNNING, 3, 1, 0) == counts(store, job)
        report(store, job, 1, 2)

        assert (State.SUCCEEDED, 3, 3, 0) == counts(store, job)

    @pytest.mark.parametrize("state", LEASES)
    def test_what_is_unplaced_is_dropped(self, store: Store, state: State) -> None:
        machines = add_a_cell(store)
        job = a_leased_job(store, a_spec(4, minimum=2))
        grant(store, job, [0, 1], machines[:2])
        LEASES[state](store, job)
        assert state is status_of(store, job).state

        report(store, job, 0, how=KILLED)

        assert (State.FAILED, 2, 2, 1) == counts(store, job)
        status = status_of(store, job)
        assert (None, None) == (status.park_reason, status.lease_holder)
        assert {} == places(store)
        assert [] == store.wake([job.id])
        assert [] == lease_all(store)
        assert set() == store.renew({job.id: job.token}, lease_ms=1_000)
        assert set() == store.unfinished([job.id])
        assert not store.cancel(job.id)

    def test_all_exits_of_one_report_are_recorded(self, store: Store) -> None:
        machines = add_a_cell(store)
        job = a_running_job(store, a_spec(3, minimum=3), machines)
        told = [an_exit(store, job, 0), an_exit(store, job, 1, BADLY), an_exit(store, job, 2)]

        assert 3 == store.report_exits(told)

        assert (State.FAILED, 3, 3, 1) == counts(store, job)
        assert {0, 1, 2} == {it.task for it in store.exits(job.id)}

    def test_another_job_in_the_report_goes_on(self, store: Store) -> None:
        machines = add_a_cell(store)
        gang = a_running_job(store, a_spec(2, minimum=2), machines[:2])
        loose = a_running_job(store, a_spec(2), machines[:2])

        store.report_exits([an_exit(store, gang, 0, BADLY), an_exit(store, loose, 0, BADLY)])

        assert (State.FAILED, 2, 2, 1) == counts(store, gang)
        assert (State.RUNNING, 2, 1, 1) == counts(store, loose)

    def test_helpers_end_with_a_gang_that_fails(self, store: Store) -> None:
        parent, helpers, _ = all_helping(store, spec=_elastic_gang())

        report(store, parent, 0, how=BADLY)

        assert (State.FAILED, 2, 2, 1) == counts(store, parent)
        assert (State.SUCCEEDED, 2, 2, 0) == counts(store, helpers)
        assert {} == places(store)

    def test_helpers_without_places_end_too(self, store: Store) -> None:
        parent, _ = an_elastic_job(store, _elastic_gang())
        helpers = some_helpers(store, parent, 2)

        report(store, parent, 0, 1, how=BADLY)

        assert (State.FAILED, 2, 2, 2) == counts(store, parent)
        assert (State.SUCCEEDED, 2, 2, 0) == counts(store, helpers)

    def test_helpers_end_with_the_last_task_of_a_job_that_failed(self, store: Store) -> None:
        parent, helpers, _ = all_helping(store)

        report(store, parent, 0, how=BADLY)
        assert (State.RUNNING, 2, 0, 0) == counts(store, helpers)
        report(store, parent, 1)

        assert (State.FAILED, 2, 2, 1) == counts(store, parent)
        assert (State.SUCCEEDED, 2, 2, 0) == counts(store, helpers)

    def test_a_helper_that_fails_leaves_its_parent_alone(self, store: Store) -> None:
        parent, helpers, _ = all_helping(store)

        report(store, helpers, 0, how=BADLY)
        assert (State.RUNNING, 2, 1, 1) == counts(store, helpers)
        report(store, parent, 0, 1)

        assert (State.SUCCEEDED, 2, 2, 0) == counts(store, parent)
        assert (State.FAILED, 2, 2, 1) == counts(store, helpers)

    def test_a_job_that_is_cancelled_after_a_failure_is_cancelled(self, store: Store) -> None:
        parent, helpers, _ = all_helping(store)
        report(store, helpers, 0, how=BADLY)
        report(store, parent, 0, how=BADLY)

        assert store.cancel(parent.id)

        assert (State.CANCELLED, 2, 2, 1) == counts(store, parent)
        assert (State.CANCELLED, 2, 2, 1) == counts(store, helpers)


def _elastic_gang() -> JobSpec:
    return replace(an_elastic_spec(2), minimum=2)
