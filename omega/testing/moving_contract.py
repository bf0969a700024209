"""What every store must do about moves: a scheduler may move the tasks of jobs that it has leased.

Goal     Moves, as evictions of one's own tasks, as tests that read as stories.
Promise  A task that moves frees its old place and has its new one, or keeps the old one. A gang
         moves whole.
Source   docs/decisions/0015-evictions-alternates-machines.md, 0026-moves.md.
"""

from dataclasses import replace

import numpy as np

from omega.lifecycle.states import State
from omega.model.arrays import integers
from omega.model.outcomes import Verdict
from omega.model.resources import Kind
from omega.store.protocols import Store
from omega.testing.builders import (
    a_claim,
    a_spec,
    a_transaction,
    claims_of_job,
    evicting,
    or_on,
    some_claims,
)
from omega.testing.contract import Contract
from omega.testing.steps import (
    a_leased_job,
    a_running_job,
    add_a_cell,
    evicted_tasks,
    grant,
    lease_all,
    places,
    status_of,
    submit_and_lease,
    verdicts_of,
)

ACCEPTED, PRECEDENCE, OVERCOMMIT = Verdict.ACCEPTED, Verdict.PRECEDENCE, Verdict.OVERCOMMIT
ALREADY_PLACED, GANG_BROKEN = Verdict.ALREADY_PLACED, Verdict.GANG_BROKEN


class MovingContract(Contract):
    """A scheduler may move tasks of its own jobs."""

    def test_tasks_of_jobs_that_one_holds_change_places(self, store: Store) -> None:
        one, two = add_a_cell(store, 2, cpu_milli=1_000)
        job = a_leased_job(store, a_spec(3, precedence=0))
        grant(store, job, [0], [one])
        claims = evicting(some_claims([1, 0], [one, two]), (0, job.id, 0))

        outcome = store.commit(a_transaction(claims_of_job(job, claims)))

        assert [ACCEPTED, ACCEPTED] == verdicts_of(outcome)
        assert [(job.id, 0)] == evicted_tasks(outcome)
        assert {(job.id, 0): two, (job.id, 1): one} == places(store)
        assert 2 == status_of(store, job).placed

    def test_a_task_that_was_not_moved_away_has_its_place_still(self, store: Store) -> None:
        one, two = add_a_cell(store, 2, cpu_milli=1_000)
        job = a_leased_job(store, a_spec(3))
        grant(store, job, [0], [one])
        claims = evicting(some_claims([0, 1], [two, one]), (1, job.id, 0))

        outcome = store.commit(a_transaction(claims_of_job(job, claims)))

        assert [ALREADY_PLACED, ACCEPTED] == verdicts_of(outcome)

    def test_a_task_moves_to_another_machine_and_leaves_its_room_behind(self, store: Store) -> None:
        one, two = add_a_cell(store, 2, cpu_milli=1_000)
        job = a_leased_job(store, a_spec(2))
        grant(store, job, [0], [one])
        claim = evicting(a_claim(0, machine=two), (0, job.id, 0))

        outcome = store.commit(a_transaction(claims_of_job(job, claim)))

        assert [ACCEPTED] == verdicts_of(outcome)
        assert [(job.id, 0)] == evicted_tasks(outcome)
        assert {(job.id, 0): two} == places(store)
        assert [one, two] == outcome.fresh.id.tolist()
        assert [0, 1_000] == outcome.fresh.used[:, Kind.CPU_MILLI].tolist()
        assert [] == store.verify()

    def test_a_task_that_cannot_move_stays(self, store: Store) -> None:
        one, two, three = add_a_cell(store, 3, cpu_milli=1_000)
        grant(store, a_leased_job(store, a_spec()), [0], [two])
        job = a_leased_job(store, a_spec(2))
        grant(store, job, [0], [one])
        claim = evicting(a_claim(0, machine=two), (0, job.id, 0))

        outcome = store.commit(a_transaction(claims_of_job(job, or_on(claim, (0, three)))))

        assert [OVERCOMMIT] == verdicts_of(outcome), "an alternate evicts nobody"
        assert [] == evicted_tasks(outcome)
        assert one == places(store)[job.id, 0]

    def test_a_gang_moves_whole(self, store: Store) -> None:
        one, two = add_a_cell(store, 2, cpu_milli=2_000)
        gang = a_leased_job(store, a_spec(3, minimum=2))
        grant(store, gang, [0, 1], [one, one])
        claims = evicting(some_claims([0, 1], [two, two]), (0, gang.id, 0))

        outcome = store.commit(a_transaction(claims_of_job(gang, claims)))

        assert [ACCEPTED, ACCEPTED] == verdicts_of(outcome)
        assert [(gang.id, 0), (gang.id, 1)] == evicted_tasks(outcome)
        assert {(gang.id, 0): two, (gang.id, 1): two} == places(store)

    def test_a_gang_that_cannot_move_whole_stays_whole(self, store: Store) -> None:
        one, two = add_a_cell(store, 2, cpu_milli=2_000)
        grant(store, a_leased_job(store, a_spec()), [0], [two])
        gang = a_leased_job(store, a_spec(3, minimum=2))
        grant(store, gang, [0, 1], [one, one])
        claims = evicting(some_claims([0, 1], [two, two]), (0, gang.id, 0))

        outcome = store.commit(a_transaction(claims_of_job(gang, claims)))

        assert [GANG_BROKEN, OVERCOMMIT] == verdicts_of(outcome)
        assert {(gang.id, 0): one, (gang.id, 1): one} == {
            name: place for name, place in places(store).items() if name[0] == gang.id
        }

    def test_only_ones_own_tasks_move_from_elsewhere(self, store: Store) -> None:
        one, two = add_a_cell(store, 2, cpu_milli=1_000)
        other = a_leased_job(store, a_spec(2))
        grant(store, other, [0], [one])
        job = a_leased_job(store, a_spec())
        claim = evicting(a_claim(0, machine=two), (0, other.id, 0))

        outcome = store.commit(a_transaction(claims_of_job(job, claim), claims_of_job(other)))

        assert [PRECEDENCE] == verdicts_of(outcome)

    def test_work_of_a_lease_that_is_lost_is_not_ones_own(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=1_000)
        lost = a_running_job(store, a_spec(), [machine])
        job = a_leased_job(store, a_spec())
        claim = evicting(a_claim(0, machine=machine), (0, lost.id, 0))

        outcome = store.commit(
            a_transaction(
                claims_of_job(job, claim), claims_of_job(lost, a_claim(0, machine=machine))
            )
        )

        assert [PRECEDENCE, Verdict.LEASE_LOST] == verdicts_of(outcome)

    def test_tasks_of_another_schedulers_job_stay_though_one_holds_its_lease(
        self, store: Store
    ) -> None:
        one, two, three = add_a_cell(store, 3, cpu_milli=1_000)
        (its_own,) = submit_and_lease(store, a_spec(2))
        grant(store, its_own, [0], [one])
        spec = replace(a_spec(2, precedence=20), preemptible=False)
        others = []
        for number, kind in enumerate(("service", "batch")):
            store.submit([replace(spec, scheduler=kind)])
            others += lease_all(store, scheduler=kind)
            grant(store, others[number], [0], [(two, three)[number]])
        service, batch = others
        claims = evicting(some_claims([1, 1], [two, three]), (0, service.id, 0), (1, batch.id, 0))

        outcome = store.commit(
            a_transaction(
                claims_of_job(its_own, claims), claims_of_job(service), claims_of_job(batch)
            )
        )

        assert [PRECEDENCE, ACCEPTED] == verdicts_of(outcome)
        assert [(batch.id, 0)] == evicted_tasks(outcome)
        assert two == places(store)[service.id, 0]

    def test_what_a_gang_was_granted_for_is_not_taken_from_it_again(self, store: Store) -> None:
        """An earlier claim added to the gang; an eviction of its older tasks would break it."""
        one, two = add_a_cell(store, 2, cpu_milli=2_000)
        gang = a_leased_job(store, a_spec(3, minimum=2))
        grant_both = store.commit(
            a_transaction(claims_of_job(gang, some_claims([0, 1], [one, one])))
        )
        high = a_leased_job(store, a_spec(precedence=10))
        grown = claims_of_job(gang, a_claim(2, machine=two))
        claim = evicting(a_claim(0, machine=one), (0, gang.id, 0))

        outcome = store.commit(a_transaction(grown, claims_of_job(high, claim)))

        assert grant_both.accepted.all()
        assert [ACCEPTED, PRECEDENCE] == verdicts_of(outcome)
        assert 3 == len(places(store))

    def test_who_breaks_its_own_gang_must_place_it_whole_again(self, store: Store) -> None:
        one, two = add_a_cell(store, 2)
        gang = a_leased_job(store, a_spec(4, minimum=3))
        grant(store, gang, [0, 1, 2], [one] * 3)
        too_few = evicting(some_claims([3, 0], [one, two]), (0, gang.id, 0))
        whole = evicting(some_claims([3, 0, 1], [one, two, two]), (0, gang.id, 0))

        broken = store.commit(a_transaction(claims_of_job(gang, too_few)))
        placed = store.commit(a_transaction(claims_of_job(gang, whole)))

        assert [GANG_BROKEN, GANG_BROKEN] == verdicts_of(broken)
        assert [ACCEPTED] * 3 == verdicts_of(placed)
        assert {(gang.id, 0): two, (gang.id, 1): two, (gang.id, 3): one} == places(store)

    def test_what_this_transaction_grants_cannot_be_evicted(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=1_000)
        low = a_leased_job(store, a_spec())
        high = a_leased_job(store, a_spec(precedence=10))
        claim = evicting(a_claim(0, machine=machine), (0, low.id, 0))

        outcome = store.commit(
            a_transaction(
                claims_of_job(low, a_claim(0, machine=machine)), claims_of_job(high, claim)
            )
        )

        assert [ACCEPTED, PRECEDENCE] == verdicts_of(outcome)

    def test_an_end_that_means_an_earlier_allocation_ends_nothing(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        low = a_running_job(store, a_spec(), [machine])
        started_ms = store.allocations().started_ms
        named = integers([low.id]), np.zeros(1, dtype=np.intp)

        assert 0 == store.end_tasks(*named, started_ms - 1)
        assert {(low.id, 0): machine} == places(store)
        assert 1 == store.end_tasks(*named, started_ms)
        assert State.SUCCEEDED is status_of(store, low).state
        assert 0 == store.end_tasks(*named, started_ms)
