"""What every store must do about evictions: a claim takes the place of a lower precedence.

Goal     Evictions of the commit rule as tests that read as stories.
Promise  Only tasks that may be evicted are, and only for claims that are granted. An evicted task
         is unplaced again. A gang that falls below its minimum loses all its tasks.
Source   docs/decisions/0015-evictions-alternates-machines.md.
"""

from dataclasses import replace

from omega.lifecycle.states import State
from omega.model.claims import ConflictRule
from omega.model.jobs import PRECEDENCE_GAP, LeasedJob
from omega.model.outcomes import Outcome, Verdict
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
    end,
    evicted_tasks,
    grant,
    lease_all,
    places,
    row_of,
    status_of,
    submit_and_lease,
    verdicts_of,
)
from omega.testing.twin import differences, row_differences

ACCEPTED, PRECEDENCE, OVERCOMMIT = Verdict.ACCEPTED, Verdict.PRECEDENCE, Verdict.OVERCOMMIT
ALREADY_PLACED, GANG_BROKEN = Verdict.ALREADY_PLACED, Verdict.GANG_BROKEN


def take_the_place(
    store: Store, job: LeasedJob, machine: int, *victims: tuple[int, int], **named: int
) -> Outcome:
    """Commit a claim of the job's task 0 that evicts these tasks, given as (job, task)."""
    claim = evicting(a_claim(0, machine=machine, **named), *((0, *victim) for victim in victims))
    return store.commit(a_transaction(claims_of_job(job, claim)))


class EvictionContract(Contract):
    """Which tasks a claim may evict."""

    def test_a_higher_precedence_takes_the_place_of_a_lower(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=1_000)
        low = a_running_job(store, a_spec(precedence=10), [machine])
        high = a_leased_job(store, a_spec(precedence=20))
        before = row_of(store, machine)

        outcome = take_the_place(store, high, machine, (low.id, 0))

        assert [ACCEPTED] == verdicts_of(outcome)
        assert [(low.id, 0)] == evicted_tasks(outcome)
        assert {(high.id, 0): machine} == places(store)
        assert (before.sequence + 1).tolist() == outcome.fresh.sequence.tolist()
        assert (before.revision + 1).tolist() == outcome.fresh.revision.tolist()
        assert before.used.tolist() == outcome.fresh.used.tolist()

    def test_an_equal_or_higher_precedence_stays(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=1_000)
        equal = a_running_job(store, a_spec(precedence=20), [machine])
        job = a_leased_job(store, a_spec(precedence=20))
        before = store.snapshot().rows

        outcome = take_the_place(store, job, machine, (equal.id, 0))

        assert [PRECEDENCE] == verdicts_of(outcome)
        assert [] == evicted_tasks(outcome)
        assert {(equal.id, 0): machine} == places(store)
        assert [] == row_differences(before, outcome.fresh)

    def test_the_precedence_must_be_higher_by_the_gap_of_the_cell(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=1_000)
        low = a_running_job(store, a_spec(precedence=-5), [machine])
        assert PRECEDENCE_GAP == store.precedence_gap()
        one_too_few = a_leased_job(store, a_spec(precedence=PRECEDENCE_GAP - 6))
        job = a_leased_job(store, a_spec(precedence=PRECEDENCE_GAP - 5))

        assert [PRECEDENCE] == verdicts_of(take_the_place(store, one_too_few, machine, (low.id, 0)))
        store.set_precedence_gap(PRECEDENCE_GAP + 1)
        assert [PRECEDENCE] == verdicts_of(take_the_place(store, job, machine, (low.id, 0)))
        store.set_precedence_gap(PRECEDENCE_GAP)
        assert [ACCEPTED] == verdicts_of(take_the_place(store, job, machine, (low.id, 0)))

    def test_tasks_that_are_not_preemptible_stay_whoever_comes(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=1_000)
        low = a_running_job(store, replace(a_spec(), preemptible=False), [machine])
        job = a_leased_job(store, a_spec(precedence=2**31 - 1))

        assert [PRECEDENCE] == verdicts_of(take_the_place(store, job, machine, (low.id, 0)))
        assert {(low.id, 0): machine} == places(store)
        assert not status_of(store, low.id).preemptible

    def test_the_job_knows_for_which_other_it_was_evicted_and_when(self, store: Store) -> None:
        one, two = add_a_cell(store, 2, cpu_milli=1_000)
        gang = a_running_job(store, a_spec(2, minimum=2), [one, two])
        bystander = a_leased_job(store, a_spec())
        high = a_leased_job(store, a_spec(precedence=10))
        before_ms = store.now_ms()

        refused = take_the_place(store, high, one, (gang.id, 0), cpu_milli=2_000)
        assert [OVERCOMMIT] == verdicts_of(refused)
        assert status_of(store, gang.id).evicted_by is None
        take_the_place(store, high, one, (gang.id, 0))

        status = status_of(store, gang.id)
        assert (State.PENDING, high.id) == (status.state, status.evicted_by)
        assert status.evicted_ms is not None
        assert before_ms <= status.evicted_ms <= store.now_ms()
        assert (None, None) == (
            status_of(store, high.id).evicted_by,
            status_of(store, bystander.id).evicted_by,
        )

    def test_a_move_is_no_eviction_by_another(self, store: Store) -> None:
        one, two = add_a_cell(store, 2)
        (job,) = submit_and_lease(store, a_spec(2))
        store.commit(a_transaction(claims_of_job(job, a_claim(0, machine=one))))

        moved = evicting(a_claim(0, machine=two), (0, job.id, 0))
        assert [ACCEPTED] == verdicts_of(store.commit(a_transaction(claims_of_job(job, moved))))

        assert status_of(store, job.id).evicted_by is None

    def test_what_is_not_there_cannot_be_evicted(self, store: Store) -> None:
        one, two = add_a_cell(store, 2)
        low = a_running_job(store, a_spec(2, precedence=0), [two, two])
        end(store, low, 1)
        for victim in [(low.id, 0), (low.id, 1), (low.id, 7), (low.id + 100, 0)]:
            job = a_leased_job(store, a_spec(precedence=10))

            assert [PRECEDENCE] == verdicts_of(take_the_place(store, job, one, victim))

    def test_nothing_is_evicted_twice(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=4_000)
        low = a_running_job(store, a_spec(precedence=0), [machine])
        job = a_leased_job(store, a_spec(3, precedence=10))
        claims = evicting(
            some_claims([0, 1, 2], [machine] * 3),
            (0, low.id, 0),
            (0, low.id, 0),
            (1, low.id, 0),
            (2, low.id, 0),
        )

        outcome = store.commit(a_transaction(claims_of_job(job, claims)))

        assert [PRECEDENCE, ACCEPTED, PRECEDENCE] == verdicts_of(outcome)
        assert [(low.id, 0)] == evicted_tasks(outcome)

    def test_no_room_after_all_evicts_nobody(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=1_000)
        low = a_running_job(store, a_spec(), [machine])
        job = a_leased_job(store, a_spec(precedence=10))

        outcome = take_the_place(store, job, machine, (low.id, 0), cpu_milli=2_000)

        assert [OVERCOMMIT] == verdicts_of(outcome)
        assert [] == evicted_tasks(outcome)
        assert {(low.id, 0): machine} == places(store)

    def test_what_a_gang_would_give_elsewhere_is_no_room_here(self, store: Store) -> None:
        one, two = add_a_cell(store, 2, cpu_milli=1_000)
        gang = a_running_job(store, a_spec(2, minimum=2), [one, two])
        job = a_leased_job(store, a_spec(precedence=10))

        outcome = take_the_place(store, job, one, (gang.id, 0), cpu_milli=2_000)

        assert [OVERCOMMIT] == verdicts_of(outcome)
        assert {(gang.id, 0): one, (gang.id, 1): two} == places(store)

    def test_a_claim_that_lands_on_an_alternate_evicts_nobody(self, store: Store) -> None:
        one, two = add_a_cell(store, 2, cpu_milli=2_000)
        low = a_running_job(store, a_spec(2), [one, one])
        job = a_leased_job(store, a_spec(precedence=10))
        claim = or_on(evicting(a_claim(0, machine=one, cpu_milli=2_000), (0, low.id, 0)), (0, two))

        outcome = store.commit(a_transaction(claims_of_job(job, claim)))

        assert [ACCEPTED] == verdicts_of(outcome)
        assert [two] == outcome.machine.tolist()
        assert [] == evicted_tasks(outcome)
        assert {(low.id, 0): one, (low.id, 1): one, (job.id, 0): two} == places(store)

    def test_a_broken_gang_gives_back_what_it_evicted(self, store: Store) -> None:
        one, two = add_a_cell(store, 2, cpu_milli=1_000)
        low = a_running_job(store, a_spec(), [one])
        gang = a_leased_job(store, a_spec(3, precedence=10, minimum=3))
        before = store.snapshot().rows
        claims = evicting(some_claims([0, 1, 2], [one, two, two]), (0, low.id, 0))

        outcome = store.commit(a_transaction(claims_of_job(gang, claims)))

        assert [GANG_BROKEN, GANG_BROKEN, OVERCOMMIT] == verdicts_of(outcome)
        assert [] == evicted_tasks(outcome)
        assert {(low.id, 0): one} == places(store)
        assert [] == row_differences(before, store.snapshot().rows)

    def test_whom_a_broken_gang_would_have_evicted_is_not_counted_as_lost(
        self, store: Store
    ) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=3_000)
        victim = a_running_job(store, a_spec(3, minimum=2), [machine] * 3)
        gang, job = submit_and_lease(
            store, a_spec(2, precedence=10, minimum=2), a_spec(precedence=10)
        )
        broken = evicting(some_claims([0, 1], [machine] * 2), (0, victim.id, 0))
        stands = evicting(a_claim(0, machine=machine), (0, victim.id, 1))

        outcome = store.commit(
            a_transaction(claims_of_job(gang, broken), claims_of_job(job, stands))
        )

        assert [GANG_BROKEN, OVERCOMMIT, ACCEPTED] == verdicts_of(outcome)
        assert [(victim.id, 1)] == evicted_tasks(outcome)
        assert job.id == status_of(store, victim).evicted_by

    def test_by_sequence_an_eviction_needs_a_fresh_view_as_well(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=1_000)
        low = a_running_job(store, a_spec(), [machine])
        job = a_leased_job(store, a_spec(precedence=10))
        claim = evicting(a_claim(0, machine=machine, seen=0), (0, low.id, 0))

        outcome = store.commit(a_transaction(claims_of_job(job, claim), rule=ConflictRule.SEQUENCE))

        assert [Verdict.STALE] == verdicts_of(outcome)
        assert [] == evicted_tasks(outcome)

    def test_the_same_id_gives_the_same_evictions_and_evicts_once(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=1_000)
        low = a_running_job(store, a_spec(), [machine])
        high = a_leased_job(store, a_spec(precedence=10))
        claim = evicting(a_claim(0, machine=machine), (0, low.id, 0))
        transaction = a_transaction(claims_of_job(high, claim))

        first = store.commit(transaction)
        again = store.commit(transaction)

        assert [] == differences(first, again)
        assert [(low.id, 0)] == evicted_tasks(again)
        assert {(high.id, 0): machine} == places(store)


class EvictedContract(Contract):
    """What happens to tasks that lose their places."""

    def test_an_evicted_task_goes_back_to_the_queue_and_is_placed_again(self, store: Store) -> None:
        one, two = add_a_cell(store, 2, cpu_milli=1_000)
        low = a_running_job(store, a_spec(), [one])
        take_the_place(store, a_leased_job(store, a_spec(precedence=10)), one, (low.id, 0))
        mark = store.allocations_since(0)[1]

        assert (State.PENDING, 0) == (status_of(store, low).state, status_of(store, low).placed)
        (again,) = lease_all(store)
        assert (low.id, [0], 0) == (again.id, again.unplaced.tolist(), again.placed)
        grant(store, again, [0], [two])
        assert State.RUNNING is status_of(store, low).state
        heard, _ = store.allocations_since(mark)
        assert (low.id, 0, two) in zip(
            heard.job.tolist(), heard.task.tolist(), heard.machine.tolist(), strict=True
        )

    def test_a_job_being_planned_keeps_its_lease(self, store: Store) -> None:
        one, two = add_a_cell(store, 2, cpu_milli=1_000)
        low = a_leased_job(store, a_spec(2))
        grant(store, low, [0], [one])
        take_the_place(store, a_leased_job(store, a_spec(precedence=10)), one, (low.id, 0))

        assert (State.PLANNING, 0) == (status_of(store, low).state, status_of(store, low).placed)
        grant(store, low, [0], [two])

    def test_a_gang_falls_whole_and_its_room_is_free_at_once(self, store: Store) -> None:
        one, two = add_a_cell(store, 2, cpu_milli=1_000)
        gang = a_running_job(store, a_spec(2, minimum=2), [one, two])
        high = a_leased_job(store, a_spec(2, precedence=10))
        before = row_of(store, two)
        claims = evicting(some_claims([0, 1], [one, two]), (0, gang.id, 0))

        outcome = store.commit(a_transaction(claims_of_job(high, claims)))

        assert [ACCEPTED, ACCEPTED] == verdicts_of(outcome)
        assert [(gang.id, 0), (gang.id, 1)] == evicted_tasks(outcome)
        assert {(high.id, 0): one, (high.id, 1): two} == places(store)
        assert (before.sequence + 1).tolist() == row_of(store, two).sequence.tolist()
        assert 2 == len(lease_all(store)[0].unplaced)

    def test_a_machine_that_only_lost_to_a_fallen_gang_keeps_its_sequence(
        self, store: Store
    ) -> None:
        one, two = add_a_cell(store, 2, cpu_milli=1_000)
        gang = a_running_job(store, a_spec(2, minimum=2), [one, two])
        high = a_leased_job(store, a_spec(precedence=10))
        before = row_of(store, two)

        outcome = take_the_place(store, high, one, (gang.id, 0))

        assert [one, two] == outcome.fresh.id.tolist()
        assert [] == row_differences(outcome.fresh, store.snapshot().rows)
        assert before.sequence.tolist() == row_of(store, two).sequence.tolist()
        assert (before.revision + 1).tolist() == row_of(store, two).revision.tolist()

    def test_a_gang_above_its_minimum_loses_only_what_is_named(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=3_000)
        gang = a_running_job(store, a_spec(3, minimum=2), [machine] * 3)
        high = a_leased_job(store, a_spec(precedence=10))

        outcome = take_the_place(store, high, machine, (gang.id, 1))

        assert [(gang.id, 1)] == evicted_tasks(outcome)
        assert 2 == status_of(store, gang).placed

    def test_tasks_that_are_over_count_for_the_gang(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=3_000)
        gang = a_running_job(store, a_spec(3, minimum=2), [machine] * 3)
        end(store, gang, 0)
        first = a_leased_job(store, a_spec(precedence=10))

        assert [(gang.id, 1)] == evicted_tasks(take_the_place(store, first, machine, (gang.id, 1)))

    def test_a_fallen_gang_must_reach_its_minimum_again(self, store: Store) -> None:
        one, two = add_a_cell(store, 2, cpu_milli=2_000)
        gang = a_running_job(store, a_spec(2, minimum=2), [one, one])
        take_the_place(store, a_leased_job(store, a_spec(precedence=10)), one, (gang.id, 0))
        (again,) = lease_all(store)

        alone = store.commit(a_transaction(claims_of_job(again, a_claim(0, machine=two))))
        both = store.commit(a_transaction(claims_of_job(again, some_claims([0, 1], [two, two]))))

        assert [GANG_BROKEN] == verdicts_of(alone)
        assert [ACCEPTED, ACCEPTED] == verdicts_of(both)
