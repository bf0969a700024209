"""What a memory store does beyond the contract: its clock, its tokens, its memory."""

from itertools import count
from uuid import UUID

import numpy as np
import pytest

from omega.clock import ManualClock
from omega.lifecycle.states import State
from omega.model.machines import MachineState
from omega.model.outcomes import Verdict
from omega.model.resources import machine_capacity
from omega.store.leases import HandBack
from omega.store.memory.store import MemoryStore
from omega.store.protocols import Store
from omega.testing.builders import a_claim, a_spec, a_transaction, claims_of_job
from omega.testing.steps import (
    a_leased_job,
    a_running_job,
    add_a_cell,
    end,
    grant,
    lease_all,
    lease_ids,
    places,
    status_of,
    submit_and_lease,
    verdicts_of,
)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(now=1_000.0)


@pytest.fixture
def store(clock: ManualClock) -> MemoryStore:
    return MemoryStore(clock)


def test_a_memory_store_is_a_store(store: MemoryStore) -> None:
    as_store: Store = store  # a type checker reads this line

    as_store.close()
    as_store.close()
    assert 0 == as_store.use().machines


class TestItsClock:
    def test_waiting_is_measured_from_submission_to_the_first_lease(
        self, store: MemoryStore, clock: ManualClock
    ) -> None:
        store.submit([a_spec()])
        clock.advance(2.5)
        (job,) = lease_all(store)

        assert 2_500 == job.waited_ms
        status = status_of(store, job)
        assert (1_000_000, 1_002_500) == (status.submitted_ms, status.first_leased_ms)

    def test_age_is_measured_from_submission_to_every_lease(
        self, store: MemoryStore, clock: ManualClock
    ) -> None:
        store.submit([a_spec()])
        clock.advance(2.5)
        (first,) = lease_all(store)
        store.hand_back([HandBack(first.id, first.token, delay_ms=0, progressed=False)])
        clock.advance(1.0)
        (second,) = lease_all(store)

        assert [2_500, 3_500] == [first.age_ms, second.age_ms]

    def test_a_notice_runs_out_on_time_and_not_before(
        self, store: MemoryStore, clock: ManualClock
    ) -> None:
        (machine,) = add_a_cell(store, 1)
        a_running_job(store, a_spec(), [machine])
        store.resize(machine, machine_capacity(0, 0, 0, 0), notice_ms=5_000)
        clock.advance(4.999)
        early = store.enforce_notices()
        clock.advance(0.001)

        assert (0, 1) == (early, store.enforce_notices())

    def test_of_equal_precedence_what_was_started_last_ends_first(
        self, store: MemoryStore, clock: ManualClock
    ) -> None:
        (machine,) = add_a_cell(store, 1)
        first, second = submit_and_lease(store, a_spec(2), a_spec(1))
        grant(store, first, [1], [machine])
        clock.advance(0.001)
        grant(store, second, [0], [machine])
        clock.advance(0.001)
        grant(store, first, [0], [machine])
        left = []
        for cores in (2, 1, 0):
            store.resize(machine, machine_capacity(cores * 1_000, 0, 0, 0), notice_ms=0)
            store.enforce_notices()
            left.append(sorted(places(store)))

        assert [[(1, 1), (2, 0)], [(1, 1)], []] == left

    def test_an_allocation_is_told_by_its_start(
        self, store: MemoryStore, clock: ManualClock
    ) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_running_job(store, a_spec(), [machine])
        before = store.allocations()
        clock.advance(1.0)
        store.set_state(before.machine, MachineState.DOWN)
        store.lose_tasks(before.machine)
        store.set_state(before.machine, MachineState.OPEN)
        (again,) = lease_all(store)
        grant(store, again, [0], [machine])

        assert 0 == store.end_tasks(before.job, before.task, before.started_ms)
        assert State.RUNNING is status_of(store, job).state

    def test_a_lease_ends_on_time_and_not_before(
        self, store: MemoryStore, clock: ManualClock
    ) -> None:
        job = a_leased_job(store, lease_ms=5_000)
        rescued = []
        for seconds in (4.999, 0.001, 1.0):
            clock.advance(seconds)
            rescued.append(store.rescue())

        assert [[], [job.id], []] == rescued

    def test_a_renewal_counts_from_now(self, store: MemoryStore, clock: ManualClock) -> None:
        job = a_leased_job(store, lease_ms=5_000)
        clock.advance(4)
        store.renew({job.id: job.token}, lease_ms=5_000)
        clock.advance(4.999)
        before = store.rescue()
        clock.advance(0.001)

        assert [] == before
        assert [job.id] == store.rescue()

    def test_a_job_handed_back_waits_out_its_delay(
        self, store: MemoryStore, clock: ManualClock
    ) -> None:
        job = a_leased_job(store)
        store.hand_back([HandBack(job.id, job.token, 300, progressed=False)])
        clock.advance(0.299)
        before = lease_ids(store)
        clock.advance(0.001)

        assert [] == before
        assert [job.id] == lease_ids(store)

    def test_a_delay_over_puts_a_job_back_where_its_precedence_belongs(
        self, store: MemoryStore, clock: ManualClock
    ) -> None:
        plain, urgent = submit_and_lease(store, a_spec(), a_spec(precedence=1))
        backs = [HandBack(job.id, job.token, 300, progressed=False) for job in (plain, urgent)]
        store.hand_back(backs)
        clock.advance(1)

        assert [urgent.id, plain.id] == lease_ids(store)

    def test_allocations_and_ends_are_dated(self, store: MemoryStore, clock: ManualClock) -> None:
        (machine,) = add_a_cell(store, 1)
        clock.advance(1)
        job = a_running_job(store, a_spec(duration_ms=2_000), [machine])
        live = store.allocations()
        clock.advance(2)
        end(store, job, 0)

        assert ([1_001_000], [2_000]) == (live.started_ms.tolist(), live.duration_ms.tolist())
        assert 1_003_000 == status_of(store, job).finished_ms == store.now_ms()

    def test_reports_grow_old(self, store: MemoryStore, clock: ManualClock) -> None:
        store.report("batch", "0", pid=1, facts={})
        clock.advance(3)
        store.report("batch", "1", pid=2, facts={})
        clock.advance(1)

        assert [("0", 1_000_000, 4_000), ("1", 1_003_000, 1_000)] == [
            (report.replica, report.started_ms, report.seen_ms_ago) for report in store.reports()
        ]

    def test_a_process_that_starts_anew_has_a_new_start(
        self, store: MemoryStore, clock: ManualClock
    ) -> None:
        store.report("batch", "0", pid=1, facts={})
        clock.advance(3)
        store.report("batch", "0", pid=2, facts={})

        assert [(2, 1_003_000)] == [(r.pid, r.started_ms) for r in store.reports()]


def test_tokens_come_from_the_source_that_was_passed(clock: ManualClock) -> None:
    numbers = count(1)
    store = MemoryStore(clock, new_token=lambda: UUID(int=next(numbers)))
    store.submit([a_spec(), a_spec()])

    assert [UUID(int=1), UUID(int=2)] == [job.token for job in lease_all(store)]


def test_old_outcomes_are_forgotten_and_still_nothing_is_applied_twice(clock: ManualClock) -> None:
    store = MemoryStore(clock, outcomes_kept_max=2)
    (machine,) = add_a_cell(store, 1)
    job = a_leased_job(store, a_spec(4))
    transactions = [
        a_transaction(claims_of_job(job, a_claim(n, machine=machine))) for n in range(3)
    ]
    for transaction in transactions:
        store.commit(transaction)

    again = [verdicts_of(store.commit(transaction)) for transaction in reversed(transactions)]

    assert [[Verdict.ACCEPTED], [Verdict.ACCEPTED], [Verdict.ALREADY_PLACED]] == again
    assert 3 == len(store.allocations())


def test_marks_count_transactions_that_changed_something(store: MemoryStore) -> None:
    (machine,) = add_a_cell(store, 1)
    mark = store.snapshot().mark
    job = a_leased_job(store, a_spec(2))
    store.commit(a_transaction(claims_of_job(job, a_claim(machine=machine, cpu_milli=9_999))))
    end(store, job, 0)
    refused = store.snapshot().mark
    grant(store, job, [0, 1], [machine] * 2)
    end(store, job, 1)

    assert (mark, mark + 2) == (refused, store.snapshot().mark)


def test_a_job_that_is_over_keeps_no_arrays(store: MemoryStore) -> None:
    (machine,) = add_a_cell(store, 1)
    job = a_running_job(store, a_spec(3), [machine] * 3)
    end(store, job, 0, 1, 2)

    assert 0 == end(store, job, 0)
    assert {} == dict(store.placements(job.id))
    assert (State.SUCCEEDED, 3, 3) == (
        status_of(store, job).state,
        status_of(store, job).tasks,
        status_of(store, job).ended,
    )


def test_many_short_jobs_use_the_same_slots_again(store: MemoryStore) -> None:
    machines = add_a_cell(store, 20, cpu_milli=100_000)
    for _ in range(5):
        job = a_running_job(store, a_spec(1_500), machines * 75)
        end(store, job, *range(1_500))

    assert 0 == len(store.allocations())
    assert not store.snapshot().rows.used.any()
    assert np.all(store.snapshot().rows.sequence == 5)
