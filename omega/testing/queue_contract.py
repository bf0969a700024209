"""What every store must do with jobs: submission, order, states and cancellation.

Goal     The queue, as users see it, as tests that read as stories.
Promise  The order is precedence, then age. A job can be cancelled in each state. No job is lost.
Source   docs/decisions/0004-the-job-queue.md.
"""

from dataclasses import replace

import pytest

from omega.lifecycle.states import FINAL, ParkReason, State
from omega.model.jobs import Constraint, Operator, Preference
from omega.model.outcomes import Verdict
from omega.model.resources import Kind
from omega.store.leases import Parking
from omega.store.protocols import Store
from omega.testing.builders import a_group, a_spec
from omega.testing.contract import Contract
from omega.testing.steps import (
    LONG_MS,
    a_leased_job,
    a_running_job,
    add_a_cell,
    claim,
    end,
    grant,
    lease_all,
    lease_ids,
    row_of,
    status_of,
    submit_and_lease,
    verdicts_of,
)

LIVE_STATES = [state for state in State if state not in FINAL]


class SubmissionContract(Contract):
    """Submitting jobs, and the order in which they are leased."""

    def test_a_thousand_jobs_keep_their_order(self, store: Store) -> None:
        ids = store.submit([a_spec(name=f"job-{number}") for number in range(1_000)])

        assert sorted(set(ids)) == ids
        assert ids == lease_ids(store)
        names = [status_of(store, ids[at]).name for at in (0, 500, 999)]
        assert ["job-0", "job-500", "job-999"] == names

    def test_submitting_nothing_is_fine(self, store: Store) -> None:
        assert [] == store.submit([])

    def test_a_job_comes_out_as_it_went_in(self, store: Store) -> None:
        in_the_east = Constraint("zone", Operator.IN, ("east", "north-east"))
        with_a_gpu = Constraint("gpu_model", Operator.EXISTS)
        spec = a_spec(
            name="a name with 'quotes', a comma and ümlauts",
            tenant="research",
            precedence=-3,
            minimum=2,
            groups=[
                a_group(2, memory_mib=512, constraints=(in_the_east, with_a_gpu)),
                a_group(3, cpu_milli=0, gpus=1, gpu_slices=500, spread_over="rack"),
                a_group(1, gpus=2, disk_mib=9, duration_ms=7, different_machines=True),
                a_group(1, preferences=(Preference(in_the_east, 5),), patience_ms=1_000),
            ],
        )

        job = a_leased_job(store, spec)

        assert spec == job.spec
        assert [0, 1, 2, 3, 4, 5, 6] == job.unplaced.tolist()
        assert (0, 0, 2) == (job.placed, job.fruitless, job.lacking)
        assert 0 == len(job.placed_task) == len(job.placed_machine)

    def test_a_new_job_is_pending(self, store: Store) -> None:
        (job,) = store.submit([a_spec(5, minimum=2, name="web", tenant="shop", precedence=9)])

        status = status_of(store, job)

        assert (job, "web", "batch", "shop", 9) == (
            status.id,
            status.name,
            status.scheduler,
            status.tenant,
            status.precedence,
        )
        assert (State.PENDING, 5, 2) == (status.state, status.tasks, status.minimum)
        assert 0 == status.placed == status.ended == status.attempts == status.fruitless
        assert status.park_reason is None
        assert status.park_detail is None
        assert status.first_leased_ms is None
        assert status.finished_ms is None
        assert status.lease_holder is None

    def test_a_job_that_never_was_has_no_status(self, store: Store) -> None:
        assert store.job(1_000_000) is None

    def test_the_highest_precedence_is_served_first_and_then_the_oldest(self, store: Store) -> None:
        specs = [a_spec(precedence=precedence) for precedence in (0, 5, -1, 5, 0)]
        ids = store.submit(specs)

        assert [ids[at] for at in (1, 3, 0, 4, 2)] == lease_ids(store)

    def test_a_scheduler_gets_jobs_of_its_kind_and_no_more_than_it_asks_for(
        self, store: Store
    ) -> None:
        kinds = ["batch", "service", "batch", "batch"]
        ids = store.submit([a_spec(scheduler=kind) for kind in kinds])

        assert [ids[0], ids[2]] == lease_ids(store, jobs_max=2)
        assert [ids[3]] == lease_ids(store, jobs_max=2)
        assert [] == lease_ids(store, jobs_max=2)
        assert [ids[1]] == lease_ids(store, scheduler="service")
        assert [] == lease_ids(store, scheduler="nobody")

    def test_tenants_share_one_queue(self, store: Store) -> None:
        ids = store.submit([a_spec(tenant=tenant) for tenant in ("a", "b", "a")])

        assert ids == lease_ids(store)

    def test_the_later_and_more_urgent_overtake_what_is_not_leased(self, store: Store) -> None:
        first, second = store.submit([a_spec(), a_spec()])
        assert [first] == lease_ids(store, jobs_max=1)
        (urgent,) = store.submit([a_spec(precedence=1)])

        assert [urgent, second] == lease_ids(store)


class StatusContract(Contract):
    """The status of jobs."""

    def test_jobs_are_listed_newest_first_and_by_state_and_kind(self, store: Store) -> None:
        ids = store.submit([a_spec(scheduler=kind) for kind in ("batch", "service", "batch")])
        store.cancel(ids[0])

        listed = {
            "all": store.jobs(),
            "two": store.jobs(jobs_max=2),
            "batch": store.jobs(scheduler="batch"),
            "pending": store.jobs(state=State.PENDING),
            "both": store.jobs(state=State.CANCELLED, scheduler="batch"),
            "none": store.jobs(state=State.CANCELLED, scheduler="service"),
        }

        assert {
            "all": [ids[2], ids[1], ids[0]],
            "two": [ids[2], ids[1]],
            "batch": [ids[2], ids[0]],
            "pending": [ids[2], ids[1]],
            "both": [ids[0]],
            "none": [],
        } == {name: [job.id for job in jobs] for name, jobs in listed.items()}

    def test_jobs_are_listed_by_tenant_and_name(self, store: Store) -> None:
        names = (("train-1", "ann"), ("train-2", "bob"), ("train_%", "ann"), ("strain-1", "ann"))
        ids = store.submit([replace(a_spec(tenant=of), name=name) for name, of in names])

        def listed(tenant: str | None = None, name: str | None = None) -> list[int]:
            return [job.id for job in store.jobs(tenant=tenant, name=name)][::-1]

        assert [ids[0], ids[2], ids[3]] == listed("ann")
        assert [ids[0], ids[1]] == listed(name="train-*")
        assert [ids[0]] == listed("ann", "train-*")
        assert [ids[0], ids[1], ids[3]] == listed(name="*train-*"), "a star may be no text"
        assert [ids[2]] == listed(name="train_%"), "no other character is special"
        assert [] == listed("ann", "train") == listed("nobody")

    def test_a_status_follows_the_job(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_leased_job(store, a_spec(2))
        planning = status_of(store, job)
        grant(store, job, [0], [machine])
        partly = status_of(store, job)
        grant(store, job, [1], [machine])
        running = status_of(store, job)

        assert (
            planning.state,
            planning.lease_holder,
            planning.attempts,
        ) == (State.PLANNING, "batch-0", 1)
        assert planning.first_leased_ms is not None
        assert planning.first_leased_ms >= planning.submitted_ms
        assert (State.PLANNING, 1) == (partly.state, partly.placed)
        assert (State.RUNNING, 2, None) == (running.state, running.placed, running.lease_holder)


class CancelContract(Contract):
    """Cancelling jobs."""

    @pytest.mark.parametrize("state", LIVE_STATES)
    def test_a_job_is_cancelled_whatever_it_does(self, store: Store, state: State) -> None:
        machines = add_a_cell(store, 2)
        job = job_in(store, state, machines)

        cancelled = [store.cancel(job), store.cancel(job)]

        status = status_of(store, job)
        assert [True, False] == cancelled
        assert State.CANCELLED is status.state
        assert status.finished_ms is not None
        assert status.lease_holder is None
        assert status.ended == status.placed  # all placed tasks have ended
        assert 0 == len(store.allocations())
        assert not store.snapshot().rows.used.any()

    @pytest.mark.parametrize("state", LIVE_STATES)
    def test_a_cancelled_job_never_comes_back(self, store: Store, state: State) -> None:
        job = job_in(store, state, add_a_cell(store, 2))
        store.cancel(job)

        assert [] == store.wake([job])
        assert [] == store.rescue()
        assert [] == store.parked("batch", jobs_max=10)
        assert [] == lease_ids(store)

    def test_a_job_that_is_over_or_never_was_is_not_cancelled(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_running_job(store, a_spec(), [machine])
        end(store, job, 0)

        assert not store.cancel(job.id)
        assert not store.cancel(1_000_000)
        assert State.SUCCEEDED is status_of(store, job).state

    def test_cancelling_frees_room_as_an_end_does(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_running_job(store, a_spec(3), [machine] * 3)
        before = row_of(store, machine)

        store.cancel(job.id)

        after = row_of(store, machine)
        assert 0 == after.used[0, Kind.CPU_MILLI]
        assert before.sequence[0] == after.sequence[0]
        assert before.revision[0] < after.revision[0]

    def test_a_scheduler_that_plans_for_a_cancelled_job_is_refused(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_leased_job(store)
        store.cancel(job.id)

        assert [Verdict.LEASE_LOST] == verdicts_of(claim(store, job, [0], [machine]))
        assert set() == store.renew({job.id: job.token}, lease_ms=LONG_MS)

    def test_others_keep_what_they_have(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        victim, other = submit_and_lease(store, a_spec(), a_spec())
        grant(store, victim, [0], [machine])
        grant(store, other, [0], [machine])

        store.cancel(victim.id)

        assert [other.id] == store.allocations().job.tolist()
        assert 1_000 == row_of(store, machine).used[0, Kind.CPU_MILLI]

    def test_ends_of_a_cancelled_jobs_tasks_are_harmless(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_running_job(store, a_spec(2), [machine] * 2)
        store.cancel(job.id)

        assert 0 == end(store, job, 0, 1)
        assert State.CANCELLED is status_of(store, job).state


def job_in(store: Store, state: State, machines: list[int]) -> int:
    """Bring a job of three tasks into a state, with as many tasks placed as the state allows."""
    if state is State.RUNNING:
        return a_running_job(store, a_spec(3), [*machines, machines[0]]).id
    (job,) = store.submit([a_spec(3)])
    if state is not State.PENDING:
        (leased,) = lease_all(store)
        grant(store, leased, [0, 1], machines)
        if state is State.PARKED:
            store.park([Parking(job, leased.token, ParkReason.NO_ROOM, "no room")])

    assert state is status_of(store, job).state
    return job


class QueueContract(SubmissionContract, StatusContract, CancelContract):
    """Jobs, as users see them."""
