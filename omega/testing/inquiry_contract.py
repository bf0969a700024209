"""What every store must tell to explain one job: the job, its line, and its story.

Goal     The reads of `omega why`, as tests that read as stories.
Promise  Whoever took a machine is told if the record is still there, and nothing is guessed.
Source   docs/decisions/0054-why-a-job-waits.md.
"""

from dataclasses import replace

from omega.model.outcomes import Verdict
from omega.store.leases import HandBack
from omega.store.protocols import Store
from omega.testing.builders import a_spec
from omega.testing.contract import Contract
from omega.testing.steps import (
    LONG_MS,
    a_leased_job,
    a_running_job,
    add_a_cell,
    claim,
    end,
    grant,
    lease_ids,
    submit_and_lease,
)


class WaitingJobContract(Contract):
    """A job as placement sees it."""

    def test_a_job_is_read_as_a_lease_would_show_it(self, store: Store) -> None:
        one, two, _ = add_a_cell(store, 3)
        spec = a_spec(4, minimum=2, different_machines=True)
        job = a_leased_job(store, spec)
        grant(store, job, [0, 2], [one, two])
        end(store, job, 0)

        told = store.waiting_job(job.id)

        assert told is not None
        assert (job.id, spec) == (told.id, told.spec)
        assert [1, 3] == told.unplaced.tolist()
        assert ([2], [two]) == (told.placed_task.tolist(), told.placed_machine.tolist())
        assert (2, 1, 0) == (told.placed, told.running, told.waits_ms)

    def test_places_are_told_only_where_placement_asks_for_them(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_running_job(store, a_spec(1), [machine])

        told = store.waiting_job(job.id)

        assert told is not None
        assert [] == told.unplaced.tolist() == told.placed_task.tolist()
        assert 1 == told.running

    def test_a_job_that_was_handed_back_with_a_delay_waits_for_it(self, store: Store) -> None:
        job = a_leased_job(store)
        store.hand_back([HandBack(job.id, job.token, LONG_MS, progressed=False)])

        told = store.waiting_job(job.id)

        assert told is not None
        assert 0 < told.waits_ms <= LONG_MS
        assert 0 <= told.age_ms < LONG_MS

    def test_a_job_that_has_ended_or_never_was_is_not_told(self, store: Store) -> None:
        (job,) = store.submit([a_spec()])
        store.cancel(job)

        assert store.waiting_job(job) is None
        assert store.waiting_job(job + 1_000) is None


class LineContract(Contract):
    """Who is leased before a job."""

    def test_higher_precedence_comes_first_and_then_age(self, store: Store) -> None:
        old, high, other, job, late, higher = store.submit(
            [
                a_spec(precedence=5),
                a_spec(precedence=7),
                replace(a_spec(precedence=9), scheduler="service"),
                a_spec(precedence=5),
                a_spec(precedence=5),
                a_spec(precedence=8),
            ]
        )

        line = store.line_before("batch", 5, job, jobs_max=2)

        assert (2, 1, 3) == (line.higher, line.older, line.ahead)
        assert [higher, high] == [it.id for it in line.first]
        every = store.line_before("batch", 5, job, jobs_max=9)
        assert [higher, high, old] == [it.id for it in every.first]
        assert other not in {it.id for it in every.first}
        assert late not in {it.id for it in every.first}

    def test_who_is_leased_or_waits_for_a_delay_is_not_ahead(self, store: Store) -> None:
        store.submit([a_spec(precedence=3), a_spec(precedence=2)])
        first = store.lease("batch", holder="batch-0", jobs_max=1, lease_ms=LONG_MS)
        (second,) = store.lease("batch", holder="batch-0", jobs_max=1, lease_ms=LONG_MS)
        store.hand_back([HandBack(second.id, second.token, LONG_MS, progressed=False)])
        (job,) = store.submit([a_spec()])

        assert 1 == len(first)
        assert 0 == store.line_before("batch", 0, job, jobs_max=5).ahead

    def test_the_line_is_the_order_of_leases(self, store: Store) -> None:
        jobs = store.submit([a_spec(precedence=each) for each in (1, 3, 2, 3, 1)])
        line = store.line_before("batch", -1, max(jobs) + 1, jobs_max=9)

        assert lease_ids(store) == [it.id for it in line.first]


class AttemptContract(Contract):
    """What is on record of a job's claims."""

    def test_a_refused_claim_is_told_with_who_had_taken_the_machine(self, store: Store) -> None:
        one, two = add_a_cell(store, 2, cpu_milli=1_000)
        winner, other, loser = submit_and_lease(store, a_spec(), a_spec(), a_spec(2))
        grant(store, winner, [0], [one])
        grant(store, other, [0], [two], cpu_milli=1)

        claim(store, loser, [0, 1], [two, one])

        (attempt,) = store.transactions_of(loser.id, transactions_max=5)
        assert (0, 2) == (attempt.granted, attempt.refused)
        assert ("batch", "0") == (attempt.scheduler, attempt.replica)
        assert [(0, two, Verdict.OVERCOMMIT), (1, one, Verdict.OVERCOMMIT)] == [
            (it.task, it.machine, it.verdict) for it in attempt.claims
        ]
        assert [other.id, winner.id] == [it.taken_by and it.taken_by.job for it in attempt.claims]
        (won,) = store.transactions_of(winner.id, transactions_max=5)
        assert (1, 0, None) == (won.granted, won.refused, won.claims[0].taken_by)

    def test_the_last_who_was_granted_the_machine_before_is_told(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=2_000)
        first, second, loser, late = submit_and_lease(store, *[a_spec()] * 4)
        grant(store, first, [0], [machine])
        grant(store, second, [0], [machine])
        claim(store, loser, [0], [machine])
        end(store, second, 0)
        grant(store, late, [0], [machine])

        (attempt,) = store.transactions_of(loser.id, transactions_max=5)

        rival = attempt.claims[0].taken_by
        assert rival is not None
        assert second.id == rival.job
        assert rival.committed_ms <= attempt.committed_ms

    def test_a_refusal_that_nobody_caused_names_nobody(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=1_000)
        job = a_leased_job(store)

        claim(store, job, [0], [machine], cpu_milli=1_001)

        (attempt,) = store.transactions_of(job.id, transactions_max=5)
        assert [None] == [it.taken_by for it in attempt.claims]

    def test_the_newest_come_first_and_no_more_than_asked_for(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=1_000)
        job = a_leased_job(store, a_spec(2))
        claim(store, job, [0], [machine], cpu_milli=9_000)
        claim(store, job, [1], [machine])

        assert [(1, 0), (0, 1)] == [
            (it.granted, it.refused) for it in store.transactions_of(job.id, transactions_max=5)
        ]
        assert 1 == len(store.transactions_of(job.id, transactions_max=1))
        assert [] == store.transactions_of(job.id + 1_000, transactions_max=5)
