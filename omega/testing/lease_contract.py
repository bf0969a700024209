"""What every store must do about leases: the time-limited right to plan a job.

Goal     The queue, as schedulers use it, as tests that read as stories.
Promise  A job has one lease at a time, and a scheduler that has lost it can change nothing. An
         expired lease is held until the job is rescued: the token decides, not the clock.
Source   docs/decisions/0004-the-job-queue.md.
"""

from collections.abc import Callable
from uuid import UUID

import pytest

from omega.lifecycle.states import OF_SCHEDULERS, ParkReason, State
from omega.limits import LIMITS
from omega.model.jobs import LeasedJob
from omega.model.outcomes import Verdict
from omega.store.leases import HandBack, ParkedJob, Parking
from omega.store.protocols import Store
from omega.testing.builders import a_cell, a_group, a_spec
from omega.testing.contract import Contract
from omega.testing.steps import (
    LONG_MS,
    OVER_AT_ONCE_MS,
    a_leased_job,
    add_a_cell,
    claim,
    end,
    grant,
    lease_all,
    lease_ids,
    status_of,
    submit_and_lease,
    verdicts_of,
)

WRONG = UUID(int=7)


def back(job: LeasedJob, *, delay_ms: int = 0, progressed: bool = False) -> HandBack:
    """Return the HandBack of a job."""
    return HandBack(job.id, job.token, delay_ms, progressed)


def a_job_that_needs_siblings(store: Store) -> tuple[LeasedJob, dict[int, int]]:
    """Lease a job that depends on where its tasks are; place three, end one; say where two run."""
    one, two = store.add_machines(a_cell(2, attributes={"rack": ["a", "b"]})).tolist()
    groups = [a_group(3, spread_over="rack"), a_group(2, different_machines=True)]
    job = a_leased_job(store, a_spec(groups=groups))
    grant(store, job, [0, 1, 4], [one, two, two])
    end(store, job, 1)
    return job, {0: one, 4: two}


def places_of(job: LeasedJob | ParkedJob) -> dict[int, int]:
    """Return the machine of each running task in a lease or a parked job."""
    return dict(zip(job.placed_task.tolist(), job.placed_machine.tolist(), strict=True))


def aside(job: LeasedJob, reason: ParkReason = ParkReason.NO_ROOM, detail: str = "") -> Parking:
    """Return the Parking of a job."""
    return Parking(job.id, job.token, reason, detail)


class HoldingContract(Contract):
    """Taking, renewing and losing a lease."""

    def test_a_leased_job_is_not_leased_again(self, store: Store) -> None:
        job = a_leased_job(store)

        assert [] == lease_ids(store)
        assert "batch-0" == status_of(store, job).lease_holder

    def test_every_lease_has_a_token_of_its_own(self, store: Store) -> None:
        jobs = submit_and_lease(store, *[a_spec() for _ in range(3)])
        store.hand_back([back(job) for job in jobs])
        again = lease_all(store)

        assert 6 == len({job.token for job in [*jobs, *again]})

    def test_waiting_is_told_with_the_first_lease_only(self, store: Store) -> None:
        first = a_leased_job(store)
        store.hand_back([back(first)])
        (second,) = lease_all(store)

        assert first.waited_ms is not None
        assert first.waited_ms >= 0
        assert second.waited_ms is None

    def test_age_is_told_with_every_lease(self, store: Store) -> None:
        first = a_leased_job(store)
        store.hand_back([back(first)])
        (second,) = lease_all(store)

        assert first.age_ms == first.waited_ms
        assert second.age_ms >= first.age_ms

    def test_a_renewed_lease_is_not_rescued(self, store: Store) -> None:
        job = a_leased_job(store, lease_ms=OVER_AT_ONCE_MS)

        assert {job.id} == store.renew({job.id: job.token}, lease_ms=LONG_MS)
        assert [] == store.rescue()
        assert State.PLANNING is status_of(store, job).state

    def test_a_renewal_sets_the_end_of_the_lease(self, store: Store) -> None:
        job = a_leased_job(store)
        store.renew({job.id: job.token}, lease_ms=OVER_AT_ONCE_MS)

        assert [job.id] == store.rescue()

    def test_only_who_holds_a_lease_renews_it(self, store: Store) -> None:
        mine, stolen, returned = submit_and_lease(store, a_spec(), a_spec(), a_spec())
        store.hand_back([back(returned)])
        leases = {
            mine.id: mine.token,
            stolen.id: WRONG,
            returned.id: returned.token,
            1_000_000: WRONG,
        }

        assert {mine.id} == store.renew(leases, lease_ms=LONG_MS)
        assert set() == store.renew({}, lease_ms=LONG_MS)

    def test_jobs_whose_lease_ran_out_are_rescued(self, store: Store) -> None:
        lost = submit_and_lease(store, a_spec(), a_spec(), lease_ms=OVER_AT_ONCE_MS)
        kept = a_leased_job(store)

        assert [job.id for job in lost] == sorted(store.rescue())
        assert [] == store.rescue()
        assert State.PENDING is status_of(store, lost[0]).state
        assert State.PLANNING is status_of(store, kept).state
        assert status_of(store, lost[0]).lease_holder is None

    def test_a_rescued_job_is_planned_by_another_with_what_is_left(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_leased_job(store, a_spec(3), lease_ms=OVER_AT_ONCE_MS)
        grant(store, job, [1], [machine])  # not rescued yet, so the lease is still the current one
        store.rescue()
        (again,) = lease_all(store)

        late = claim(store, job, [0], [machine])
        in_time = claim(store, again, [0, 2], [machine] * 2)

        assert [0, 2] == again.unplaced.tolist()
        assert 1 == again.placed
        assert [Verdict.LEASE_LOST] == verdicts_of(late)
        assert [Verdict.ACCEPTED] * 2 == verdicts_of(in_time)

    @pytest.mark.parametrize(
        "lose",
        [
            pytest.param(lambda store, job: store.hand_back([back(job)]), id="handed back"),
            pytest.param(lambda store, job: store.park([aside(job)]), id="parked"),
            pytest.param(lambda store, job: store.cancel(job.id), id="cancelled"),
            pytest.param(
                lambda store, job: (
                    store.renew({job.id: job.token}, lease_ms=OVER_AT_ONCE_MS),
                    store.rescue(),
                ),
                id="rescued",
            ),
        ],
    )
    def test_who_has_lost_a_lease_can_change_nothing(
        self, store: Store, lose: Callable[[Store, LeasedJob], object]
    ) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_leased_job(store)
        lose(store, job)
        before = status_of(store, job)

        assert [Verdict.LEASE_LOST] == verdicts_of(claim(store, job, [0], [machine]))
        assert set() == store.renew({job.id: job.token}, lease_ms=LONG_MS)
        assert 0 == store.hand_back([back(job)])
        assert 0 == store.park([aside(job)])
        assert before == status_of(store, job)

    def test_a_job_that_is_complete_needs_no_lease(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_leased_job(store, lease_ms=OVER_AT_ONCE_MS)
        grant(store, job, [0], [machine])

        assert set() == store.renew({job.id: job.token}, lease_ms=LONG_MS)
        assert [] == store.rescue()
        assert 0 == store.hand_back([back(job)])
        assert 0 == store.park([aside(job)])
        assert State.RUNNING is status_of(store, job).state

    def test_a_lease_tells_where_tasks_run_when_placement_must_know(self, store: Store) -> None:
        job, places = a_job_that_needs_siblings(store)
        store.hand_back([back(job, progressed=True)])

        (again,) = lease_all(store)

        assert places == places_of(again)
        assert [2, 3] == again.unplaced.tolist()
        assert 3 == again.placed


class HandBackContract(Contract):
    """Giving a job with unplaced tasks back."""

    def test_a_job_given_back_is_pending_with_what_is_left(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_leased_job(store, a_spec(3, minimum=1))
        grant(store, job, [0, 2], [machine] * 2)

        assert 1 == store.hand_back([back(job, progressed=True)])

        assert State.PENDING is status_of(store, job).state
        (again,) = lease_all(store)
        assert [1] == again.unplaced.tolist()
        assert (2, 0) == (again.placed, again.lacking)
        assert 2 == status_of(store, job).attempts

    def test_a_job_that_is_to_wait_is_not_leased_before(self, store: Store) -> None:
        soon, later = submit_and_lease(store, a_spec(), a_spec(precedence=5))
        store.hand_back([back(later, delay_ms=LONG_MS), back(soon)])

        assert [soon.id] == lease_ids(store)
        assert State.PENDING is status_of(store, later).state

    def test_fruitless_attempts_are_counted_until_one_places_something(self, store: Store) -> None:
        job = a_leased_job(store)
        counted = [job.fruitless]
        for progressed in (False, False, True, False):
            store.hand_back([back(job, progressed=progressed)])
            (job,) = lease_all(store)
            counted.append(job.fruitless)

        assert [0, 1, 2, 0, 1] == counted
        assert 1 == status_of(store, job).fruitless

    def test_those_who_hold_no_lease_are_passed_over(self, store: Store) -> None:
        mine, other = submit_and_lease(store, a_spec(), a_spec())
        stolen = HandBack(other.id, WRONG, 0, progressed=False)
        unknown = HandBack(1_000_000, WRONG, 0, progressed=False)

        assert 1 == store.hand_back([stolen, back(mine), unknown])
        assert 0 == store.hand_back([])
        assert State.PLANNING is status_of(store, other).state

    def test_order_in_the_queue_is_kept(self, store: Store) -> None:
        jobs = submit_and_lease(store, a_spec(), a_spec(precedence=1), a_spec())
        store.hand_back([back(job) for job in reversed(jobs)])

        assert [jobs[1].id, jobs[0].id, jobs[2].id] == lease_ids(store)


class ParkingContract(Contract):
    """Parking jobs, and waking them."""

    @pytest.mark.parametrize("reason", OF_SCHEDULERS)
    def test_a_parked_job_says_why(self, store: Store, reason: ParkReason) -> None:
        job = a_leased_job(store)
        detail = "no machine has the attribute 'tpu'; 3 of 4 tasks wait"

        assert 1 == store.park([aside(job, reason, detail)])

        status = status_of(store, job)
        assert (State.PARKED, reason, detail) == (
            status.state,
            status.park_reason,
            status.park_detail,
        )
        assert [] == lease_ids(store)

    def test_a_detail_is_cut_and_escaped_and_never_refused(self, store: Store) -> None:
        """A detail quotes submitted text; a refusal would end each scheduler that plans the job."""
        raw, long = a_leased_job(store), a_leased_job(store)

        store.park([aside(raw, ParkReason.NO_ROOM, "of \x1b[2J\u202e\u3164\n")])
        store.park([aside(long, ParkReason.NO_ROOM, "x" * LIMITS.detail_length_max + "\x1b")])

        assert r"of \x1b[2J\u202e\u3164\n" == status_of(store, raw).park_detail
        detail = status_of(store, long).park_detail
        assert detail is not None
        assert (LIMITS.detail_length_max, "xxx...") == (len(detail), detail[-6:])

    def test_parked_jobs_are_listed_with_what_is_left_of_them(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        spec = a_spec(3)
        job = a_leased_job(store, spec)
        grant(store, job, [1, 2], [machine] * 2)
        end(store, job, 2)
        store.park([aside(job, ParkReason.CONFLICTS)])

        (parked,) = store.parked("batch", jobs_max=10)

        assert (parked.id, parked.reason) == (job.id, ParkReason.CONFLICTS)
        assert (parked.placed, parked.running) == (2, 1)
        assert spec == parked.spec
        assert [0] == parked.unplaced.tolist()

    def test_a_parked_job_tells_where_tasks_run_when_placement_must_know(
        self, store: Store
    ) -> None:
        spread, places = a_job_that_needs_siblings(store)
        anywhere = a_leased_job(store, a_spec(2))
        grant(store, anywhere, [0], [places[0]])
        store.park([aside(spread), aside(anywhere)])

        first, second = store.parked("batch", jobs_max=2)

        assert [2, 3] == first.unplaced.tolist()
        assert places == places_of(first)
        assert {} == places_of(second)

    def test_parked_jobs_are_listed_by_precedence_then_age_and_by_kind(self, store: Store) -> None:
        specs = [a_spec(precedence=precedence) for precedence in (0, 2, 0, 2)]
        jobs = submit_and_lease(store, *specs)
        store.park([aside(job) for job in reversed(jobs)])

        ids = [jobs[at].id for at in (1, 3, 0, 2)]
        assert ids == [job.id for job in store.parked("batch", jobs_max=10)]
        assert ids[:3] == [job.id for job in store.parked("batch", jobs_max=3)]
        assert [] == store.parked("service", jobs_max=10)

    def test_a_parked_job_remembers_the_cell_it_was_parked_in(self, store: Store) -> None:
        add_a_cell(store, 1)
        job = a_leased_job(store)
        store.park([aside(job, ParkReason.NEVER_FITS)])
        before = store.snapshot().generation
        store.add_machines(a_cell(1, first=2))

        (parked,) = store.parked("batch", jobs_max=1)

        assert before == parked.generation
        assert parked.generation < store.snapshot().generation

    def test_a_woken_job_is_pending_again(self, store: Store) -> None:
        job, still_parked = submit_and_lease(store, a_spec(), a_spec())
        store.park([aside(job, detail="why"), aside(still_parked)])

        assert [job.id] == store.wake([job.id])

        status = status_of(store, job)
        assert (
            status.state,
            status.park_reason,
            status.park_detail,
        ) == (State.PENDING, None, None)
        assert [job.id] == lease_ids(store)
        assert [still_parked.id] == [parked.id for parked in store.parked("batch", jobs_max=9)]

    def test_only_parked_jobs_are_woken_and_each_once(self, store: Store) -> None:
        parked, planning = submit_and_lease(store, a_spec(), a_spec())
        (pending,) = store.submit([a_spec()])
        store.park([aside(parked)])

        woken = store.wake([parked.id, planning.id, pending, 1_000_000, parked.id])

        assert [parked.id] == woken
        assert [] == store.wake([parked.id]) == store.wake([])
        assert State.PLANNING is status_of(store, planning).state
        assert sorted([parked.id, pending]) == lease_ids(store)

    def test_tasks_of_a_parked_job_go_on_running(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_leased_job(store, a_spec(3))
        grant(store, job, [0, 1], [machine] * 2)
        store.park([aside(job)])

        assert 1 == end(store, job, 0)
        assert {1: "machine-1"} == dict(store.placements(job.id))
        assert State.PARKED is status_of(store, job).state

    def test_those_who_hold_no_lease_are_passed_over(self, store: Store) -> None:
        mine, other = submit_and_lease(store, a_spec(), a_spec())
        stolen = Parking(other.id, WRONG, ParkReason.NO_ROOM, "")

        assert 1 == store.park([stolen, aside(mine)])
        assert 0 == store.park([])
        assert State.PLANNING is status_of(store, other).state


class LeaseContract(HoldingContract, HandBackContract, ParkingContract):
    """Leases, as schedulers use them."""
