"""What every store must keep of jobs in steps: how far they have come.

Goal     Progress as stories.
Promise  It only ever grows, whatever is reported twice or late, and outlives every interruption.
Source   docs/decisions/0027-jobs-in-steps.md.
"""

from omega.model.arrays import integers
from omega.model.jobs import JobSpec, StepWork
from omega.store.protocols import NodeStore, ProgressReader, Store
from omega.testing.builders import a_claim, a_spec, a_transaction, claims_of_job, evicting
from omega.testing.contract import Contract
from omega.testing.steps import (
    a_leased_job,
    a_running_job,
    add_a_cell,
    end,
    grant,
    lease_all,
    submit_and_lease,
)

RESNET = "ResNet-18 (batch size 64)"


def a_job_in_steps(tasks: int = 2, *, steps: int = 1_000) -> JobSpec:
    """Return a gang whose work is counted in steps."""
    return a_spec(tasks, minimum=tasks, work=StepWork(RESNET, steps))


def told(store: ProgressReader, *jobs: int) -> list[tuple[int, int, int]]:
    """Return job, steps made and time run of each of these jobs that is in steps."""
    its = store.progress(integers(jobs))
    return list(zip(its.job.tolist(), its.done.tolist(), its.run_ms.tolist(), strict=True))


def report(store: NodeStore, job: int, steps: int, run_ms: int) -> None:
    """Report the progress of one job."""
    store.report_progress(integers([job]), integers([steps]), integers([run_ms]))


class ProgressContract(Contract):
    """How far jobs in steps have come."""

    def test_a_job_that_was_just_submitted_has_come_nowhere(self, store: Store) -> None:
        (job,) = store.submit([a_job_in_steps(3, steps=10**15)])

        its = store.progress(integers([job]))

        assert 1 == len(its)
        assert (job, RESNET, 10**15, 0, 0, 3, -1) == (
            int(its.job[0]),
            its.kind[0],
            int(its.wanted[0]),
            int(its.done[0]),
            int(its.run_ms[0]),
            int(its.tasks[0]),
            int(its.since_ms[0]),
        )

    def test_only_jobs_in_steps_are_told_in_order_and_once(self, store: Store) -> None:
        first, other, second = store.submit([a_job_in_steps(), a_spec(), a_job_in_steps()])

        assert [(first, 0, 0), (second, 0, 0)] == told(
            store, second, other, first, second, 1_000_000
        )
        assert [] == told(store)

    def test_what_is_reported_is_on_record(self, store: Store) -> None:
        first, second = store.submit([a_job_in_steps(), a_job_in_steps()])

        store.report_progress(
            integers([second, first]), integers([20, 10]), integers([2_000, 1_000])
        )

        assert [(first, 10, 1_000), (second, 20, 2_000)] == told(store, first, second)

    def test_a_report_that_comes_twice_or_late_changes_nothing(self, store: Store) -> None:
        (job,) = store.submit([a_job_in_steps()])
        report(store, job, 30, 3_000)

        for steps, run_ms in [(30, 3_000), (20, 2_000), (0, 0)]:
            report(store, job, steps, run_ms)

            assert [(job, 30, 3_000)] == told(store, job)

    def test_steps_and_time_grow_each_by_itself(self, store: Store) -> None:
        (job,) = store.submit([a_job_in_steps()])
        report(store, job, 30, 3_000)

        report(store, job, 40, 2_000)
        report(store, job, 20, 5_000)

        assert [(job, 40, 5_000)] == told(store, job)

    def test_nobody_makes_more_steps_than_are_wanted(self, store: Store) -> None:
        (job,) = store.submit([a_job_in_steps()])
        wanted = int(store.progress(integers([job])).wanted[0])

        report(store, job, wanted - 1, 1_000)
        report(store, job, 10 * wanted, 2_000)

        assert [(job, wanted, 2_000)] == told(store, job)

    def test_of_a_job_named_twice_the_most_counts(self, store: Store) -> None:
        (job,) = store.submit([a_job_in_steps()])

        store.report_progress(
            integers([job, job, job]), integers([1, 3, 2]), integers([30, 10, 20])
        )

        assert [(job, 3, 30)] == told(store, job)

    def test_jobs_that_are_not_in_steps_or_never_were_are_passed_over(self, store: Store) -> None:
        plain, counted = store.submit([a_spec(), a_job_in_steps()])

        store.report_progress(
            integers([1_000_000, plain, counted]), integers([1, 2, 3]), integers([1, 2, 3])
        )
        store.report_progress(integers(), integers(), integers())

        assert [(counted, 3, 3)] == told(store, 1_000_000, plain, counted)

    def test_it_is_told_since_when_all_tasks_run(self, store: Store) -> None:
        machine, *_ = add_a_cell(store)
        (job,) = submit_and_lease(store, a_spec(2, work=StepWork(RESNET, 9)))

        def since_ms() -> int:
            return int(store.progress(integers([job.id])).since_ms[0])

        grant(store, job, [0], [machine])
        assert since_ms() == -1
        grant(store, job, [1], [machine])
        assert since_ms() == store.allocations().started_ms.max()
        end(store, job, 0)
        assert since_ms() == -1

    def test_progress_outlives_the_end_and_grows_no_more(self, store: Store) -> None:
        machine, *_ = add_a_cell(store)
        over = a_running_job(store, a_job_in_steps(), [machine] * 2)
        (cancelled,) = store.submit([a_job_in_steps()])
        report(store, over.id, 1_000, 5_000)
        report(store, cancelled, 7, 70)
        end(store, over, 0, 1)
        store.cancel(cancelled)

        report(store, over.id, 2_000, 6_000)
        report(store, cancelled, 8, 80)

        assert [(over.id, 1_000, 5_000), (cancelled, 7, 70)] == told(store, over.id, cancelled)

    def test_progress_outlives_an_interruption(self, store: Store) -> None:
        machine, *_ = add_a_cell(store)
        job = a_running_job(store, a_job_in_steps(), [machine] * 2)
        report(store, job.id, 400, 4_000)
        fall_and_rise(store, job.id, machine)

        assert [(job.id, 400, 4_000)] == told(store, job.id)
        report(store, job.id, 500, 5_000)
        assert [(job.id, 500, 5_000)] == told(store, job.id)


def fall_and_rise(store: Store, job: int, machine: int) -> None:
    """Evict a gang of two from a machine by a claim of higher precedence, and place it again."""
    pusher = a_leased_job(store, a_spec(precedence=10))
    store.commit(
        a_transaction(claims_of_job(pusher, evicting(a_claim(0, machine=machine), (0, job, 0))))
    )
    (again,) = lease_all(store)

    assert job == again.id
    grant(store, again, [0, 1], [machine] * 2)
