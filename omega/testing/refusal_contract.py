"""What every store must refuse, and what it must answer to the same transaction again.

Goal     The commit rule's first half, and idempotence, as stories.
Promise  Every verdict that is given before room is looked at, in the order of precedence.
Source   docs/decisions/0003-the-commit-rule.md.
"""

from uuid import UUID

import pytest

from omega.model.claims import ConflictRule
from omega.model.outcomes import Verdict
from omega.model.resources import Kind
from omega.store.protocols import Store
from omega.testing.builders import a_claim, a_job, a_spec, a_transaction, claims_of_job, some_claims
from omega.testing.contract import Contract
from omega.testing.steps import (
    a_leased_job,
    add_a_cell,
    claim,
    end,
    grant,
    row_of,
    submit_and_lease,
    verdicts_of,
)
from omega.testing.twin import row_differences

ACCEPTED, OVERCOMMIT = Verdict.ACCEPTED, Verdict.OVERCOMMIT


class IdentityContract(Contract):
    """The same transaction again: the reply may have been lost."""

    def test_the_same_id_again_applies_nothing_twice(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_leased_job(store, a_spec(3))
        claims = some_claims([0, 1], [machine] * 2)
        transaction = a_transaction(claims_of_job(job, claims))
        first = store.commit(transaction)
        before = row_of(store, machine)

        again = store.commit(transaction)

        assert [ACCEPTED] * 2 == verdicts_of(again) == verdicts_of(first)
        assert [] == row_differences(before, again.fresh)
        assert [] == row_differences(before, row_of(store, machine))
        assert 2 == len(store.allocations())

    def test_the_same_id_is_known_after_the_job_is_complete(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_leased_job(store)
        transaction = a_transaction(claims_of_job(job, a_claim(0, machine=machine)))
        store.commit(transaction)
        end(store, job, 0)

        again = store.commit(transaction)

        assert [ACCEPTED] == verdicts_of(again)
        assert 0 == again.fresh.used[0, Kind.CPU_MILLI]  # verdicts of then, rows of now
        assert 0 == len(store.allocations())

    def test_a_refusal_is_remembered_too(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=1_000)
        winner, loser = submit_and_lease(store, a_spec(), a_spec())
        grant(store, winner, [0], [machine])
        transaction = a_transaction(claims_of_job(loser, a_claim(0, machine=machine)))
        store.commit(transaction)
        end(store, winner, 0)

        again = store.commit(transaction)
        anew = claim(store, loser, [0], [machine])

        assert [OVERCOMMIT] == verdicts_of(again)
        assert [ACCEPTED] == verdicts_of(anew)

    def test_each_verdict_of_a_mixed_outcome_is_remembered_in_its_place(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=1_000)
        jobs = submit_and_lease(store, a_spec(2, minimum=2), a_spec(2))
        transaction = a_transaction(
            *[claims_of_job(job, some_claims([0, 1], [machine] * 2)) for job in jobs]
        )
        expected = [Verdict.GANG_BROKEN, OVERCOMMIT, ACCEPTED, OVERCOMMIT]

        outcomes = [store.commit(transaction) for _ in range(3)]

        assert [expected] * 3 == [verdicts_of(outcome) for outcome in outcomes]

    def test_two_transactions_alike_but_for_their_id_are_two(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_leased_job(store, a_spec(2))

        outcomes = [claim(store, job, [0], [machine]) for _ in range(2)]

        expected = [[ACCEPTED], [Verdict.ALREADY_PLACED]]
        assert expected == [verdicts_of(outcome) for outcome in outcomes]


class RefusalContract(Contract):
    """Claims that are refused before room is looked at."""

    def test_a_task_is_placed_once(self, store: Store) -> None:
        machines = add_a_cell(store, 2)
        job = a_leased_job(store, a_spec(3))
        grant(store, job, [0], machines[:1])

        outcome = claim(store, job, [0, 1], [machines[1]] * 2)

        assert [Verdict.ALREADY_PLACED, ACCEPTED] == verdicts_of(outcome)

    def test_a_task_claimed_twice_in_one_stretch_is_granted_once(self, store: Store) -> None:
        machines = add_a_cell(store, 2)
        job = a_leased_job(store, a_spec(3))

        outcome = claim(store, job, [0, 1, 0], [*machines, machines[1]])

        assert [ACCEPTED, ACCEPTED, Verdict.ALREADY_PLACED] == verdicts_of(outcome)
        assert 2 == len(store.allocations())

    def test_a_second_claim_counts_where_the_first_was_refused(self, store: Store) -> None:
        full, roomy = add_a_cell(store, 2)
        other, mine = submit_and_lease(store, a_spec(), a_spec())
        grant(store, other, [0], [full], cpu_milli=4_000)

        outcome = claim(store, mine, [0, 0], [full, roomy])

        assert [OVERCOMMIT, ACCEPTED] == verdicts_of(outcome)
        assert {0: "machine-2"} == dict(store.placements(mine.id))

    def test_a_task_that_is_over_is_not_placed_again(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_leased_job(store, a_spec(2))
        grant(store, job, [0], [machine])
        end(store, job, 0)

        assert [Verdict.ALREADY_PLACED] == verdicts_of(claim(store, job, [0], [machine]))

    @pytest.mark.parametrize("task", [2, 1_000_000])
    def test_a_task_that_the_job_does_not_have_is_refused(self, store: Store, task: int) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_leased_job(store, a_spec(2))

        assert [Verdict.ALREADY_PLACED] == verdicts_of(claim(store, job, [task], [machine]))

    @pytest.mark.parametrize("machine", [0, -1, 1_000_000])
    def test_a_machine_that_never_was_is_gone(self, store: Store, machine: int) -> None:
        (known,) = add_a_cell(store, 1)
        job = a_leased_job(store, a_spec(2))

        outcome = claim(store, job, [0, 1], [machine, known])

        assert [Verdict.GONE, ACCEPTED] == verdicts_of(outcome)
        assert [known] == outcome.fresh.id.tolist()

    def test_a_job_that_never_was_has_no_lease(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)

        outcome = claim(store, a_job(job=1_000_000), [0], [machine])

        assert [Verdict.LEASE_LOST] == verdicts_of(outcome)

    def test_a_wrong_token_costs_the_whole_stretch_but_not_its_neighbours(
        self, store: Store
    ) -> None:
        (machine,) = add_a_cell(store, 1)
        first, second = submit_and_lease(store, a_spec(2), a_spec())
        claims = some_claims([0, 1], [machine] * 2)
        forged = (first.id, UUID(int=1), 2, claims)

        outcome = store.commit(
            a_transaction(forged, claims_of_job(second, a_claim(0, machine=machine)))
        )

        assert [Verdict.LEASE_LOST] * 2 + [ACCEPTED] == verdicts_of(outcome)

    def test_a_job_that_is_complete_has_no_lease_any_more(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_leased_job(store)
        grant(store, job, [0], [machine])

        assert [Verdict.LEASE_LOST] == verdicts_of(claim(store, job, [0], [machine]))

    def test_of_several_reasons_the_first_of_the_rule_is_given(self, store: Store) -> None:
        """Lease, then place, then machine, then sequence, then room; a broken gang last."""
        unknown, too_much = 1_000_000, {"cpu_milli": 9_999}
        (machine,) = add_a_cell(store, 1)
        seen = int(row_of(store, machine).sequence[0])
        lost, job = submit_and_lease(store, a_spec(2), a_spec(6))
        grant(store, job, [0], [machine])
        current = seen + 1
        claims = [
            a_claim(0, machine=unknown, **too_much),  # placed, gone, no room
            a_claim(1, machine=unknown, **too_much),  # gone, no room
            a_claim(2, machine=machine, seen=seen, **too_much),  # stale, no room
            a_claim(3, machine=machine, seen=current, **too_much),
            a_claim(4, machine=machine, seen=current),
            a_claim(4, machine=unknown, seen=seen, **too_much),  # placed a moment ago, gone
        ]
        forged = (lost.id, UUID(int=1), 2, some_claims([0, 7], [unknown] * 2, **too_much))

        outcome = store.commit(
            a_transaction(
                forged, claims_of_job(job, *claims, minimum=2), rule=ConflictRule.SEQUENCE
            )
        )

        assert [
            Verdict.LEASE_LOST,
            Verdict.LEASE_LOST,
            Verdict.ALREADY_PLACED,
            Verdict.GONE,
            Verdict.STALE,
            OVERCOMMIT,
            Verdict.GANG_BROKEN,
            Verdict.ALREADY_PLACED,
        ] == verdicts_of(outcome)
