"""What every store must answer to a transaction.

Goal     The commit rule as stories about one or two jobs.
Promise  Room is guarded in every kind, under both conflict rules; fresh rows tell the truth.
Source   docs/decisions/0003-the-commit-rule.md.
"""

import numpy as np
import pytest

from omega.model.arrays import integers
from omega.model.claims import Claims, ConflictRule
from omega.model.outcomes import Verdict
from omega.model.resources import GPU_SLICES, Kind, machine_capacity
from omega.store.protocols import Store
from omega.testing.builders import (
    a_cell,
    a_claim,
    a_spec,
    a_transaction,
    claims_of_job,
    some_claims,
)
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

ACCEPTED, STALE, OVERCOMMIT = Verdict.ACCEPTED, Verdict.STALE, Verdict.OVERCOMMIT


class CommitContract(Contract):
    """One transaction after another."""

    def test_the_last_core_is_sold_once(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=1_000)
        winner, loser = submit_and_lease(store, a_spec(), a_spec())

        first = claim(store, winner, [0], [machine])
        second = claim(store, loser, [0], [machine])

        assert [ACCEPTED] == verdicts_of(first)
        assert [OVERCOMMIT] == verdicts_of(second)
        assert 0 == second.fresh.free[0, Kind.CPU_MILLI]  # the loser is told

    def test_fresh_rows_show_every_machine_named_won_or_lost(self, store: Store) -> None:
        won, lost, untouched = add_a_cell(store, 3)
        job = a_leased_job(store, a_spec(2))
        claims = [a_claim(0, machine=won), a_claim(1, machine=lost, cpu_milli=9_999)]

        outcome = store.commit(a_transaction(claims_of_job(job, *claims)))

        assert [ACCEPTED, OVERCOMMIT] == verdicts_of(outcome)
        assert [won, lost] == outcome.fresh.id.tolist()
        assert untouched not in outcome.fresh.id
        for machine in (won, lost):
            told = outcome.fresh.take(outcome.fresh.where(integers([machine])))
            assert [] == row_differences(row_of(store, machine), told)

    def test_claims_are_served_in_order(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=4_000)
        job = a_leased_job(store, a_spec(4))
        wants = [3_000, 2_000, 1_000, 1]
        claims = [a_claim(n, machine=machine, cpu_milli=want) for n, want in enumerate(wants)]

        outcome = store.commit(a_transaction(claims_of_job(job, *claims)))

        assert [ACCEPTED, OVERCOMMIT, ACCEPTED, OVERCOMMIT] == verdicts_of(outcome)

    @pytest.mark.parametrize("kind", Kind)
    def test_every_kind_of_resource_is_guarded(self, store: Store, kind: Kind) -> None:
        (machine,) = store.add_machines(a_cell(1, gpus=8)).tolist()
        most = int(row_of(store, machine).capacity[0, kind])
        job = a_leased_job(store, a_spec(3))

        outcomes = [
            store.commit(
                a_transaction(
                    claims_of_job(job, a_claim(task, machine=machine, **{kind.column: amount}))
                )
            )
            for task, amount in enumerate([most + 1, most, 1])
        ]

        assert [[OVERCOMMIT], [ACCEPTED], [OVERCOMMIT]] == [verdicts_of(o) for o in outcomes]

    def test_a_gpu_is_shared_by_halves_and_no_further(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, gpus=2)
        job = a_leased_job(store, a_spec(4))
        half, whole = GPU_SLICES // 2, GPU_SLICES

        outcome = store.commit(
            a_transaction(
                claims_of_job(
                    job,
                    a_claim(0, machine=machine, gpu_0=half),
                    a_claim(1, machine=machine, gpu_0=half),
                    a_claim(2, machine=machine, gpu_0=1),  # the other GPU is free, but not asked
                    a_claim(3, machine=machine, gpu_1=whole),
                )
            )
        )

        assert [ACCEPTED, ACCEPTED, OVERCOMMIT, ACCEPTED] == verdicts_of(outcome)
        expected = machine_capacity(0, 0, gpus=2).tolist()
        assert expected == row_of(store, machine).used[0].tolist()

    def test_a_claim_for_nothing_is_granted_on_a_full_machine(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=1_000)
        job = a_leased_job(store, a_spec(2))
        grant(store, job, [0], [machine])

        assert [ACCEPTED] == verdicts_of(claim(store, job, [1], [machine], cpu_milli=0))

    def test_jobs_of_one_transaction_share_what_is_left(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=2_000)
        jobs = submit_and_lease(store, *[a_spec() for _ in range(3)])

        outcome = store.commit(
            a_transaction(*[claims_of_job(job, a_claim(0, machine=machine)) for job in jobs])
        )

        assert [ACCEPTED, ACCEPTED, OVERCOMMIT] == verdicts_of(outcome)

    def test_jobs_are_judged_in_the_order_given_not_by_their_id(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=1_000)
        older, newer = submit_and_lease(store, a_spec(), a_spec())
        claims_by_job = [claims_of_job(job, a_claim(0, machine=machine)) for job in (newer, older)]

        outcome = store.commit(a_transaction(*claims_by_job))

        assert [ACCEPTED, OVERCOMMIT] == verdicts_of(outcome)
        assert {0: "machine-1"} == dict(store.placements(newer.id))

    def test_machines_are_judged_by_id_whatever_order_they_are_named_in(self, store: Store) -> None:
        machines = add_a_cell(store, 4, cpu_milli=1_000)
        job = a_leased_job(store, a_spec(5))
        last, *others = reversed(machines)

        outcome = claim(store, job, range(5), [last, last, *others])

        assert [ACCEPTED, OVERCOMMIT, ACCEPTED, ACCEPTED, ACCEPTED] == verdicts_of(outcome)
        assert machines == outcome.fresh.id.tolist()

    def test_a_transaction_without_claims_has_an_empty_outcome(self, store: Store) -> None:
        add_a_cell(store, 1)
        job = a_leased_job(store)

        outcome = store.commit(a_transaction(claims_of_job(job, Claims.none())))

        assert 0 == len(outcome.verdicts) == len(outcome.fresh)

    def test_a_thousand_claims_are_judged_at_once(self, store: Store) -> None:
        machines = add_a_cell(store, 50, cpu_milli=10_000)
        job = a_leased_job(store, a_spec(1_000))

        outcome = claim(store, job, range(1_000), machines * 20)

        assert 500 == np.count_nonzero(outcome.accepted)
        assert outcome.accepted[:500].all()  # the first ten rounds over all machines
        assert (store.snapshot().rows.free[:, Kind.CPU_MILLI] == 0).all()


class ConflictRuleContract(Contract):
    """When a claim conflicts with what others have done."""

    def test_a_stale_claim_is_refused_under_the_sequence_rule_alone(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        seen = int(row_of(store, machine).sequence[0])
        other, mine = submit_and_lease(store, a_spec(), a_spec(2))
        grant(store, other, [0], [machine])

        strict = claim(store, mine, [0], [machine], rule=ConflictRule.SEQUENCE, seen=seen)
        by_fit = claim(store, mine, [0], [machine], rule=ConflictRule.FIT, seen=seen)

        assert [STALE] == verdicts_of(strict)
        assert [ACCEPTED] == verdicts_of(by_fit)

    def test_a_current_claim_is_granted_under_the_sequence_rule(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_leased_job(store, a_spec(2))
        fresh = claim(store, job, [0], [machine]).fresh
        seen = int(fresh.sequence[0])

        outcome = claim(store, job, [1], [machine], rule=ConflictRule.SEQUENCE, seen=seen)

        assert [ACCEPTED] == verdicts_of(outcome)

    @pytest.mark.parametrize("off_by", [-1, 1])
    def test_a_sequence_never_seen_is_stale_too(self, store: Store, off_by: int) -> None:
        (machine,) = add_a_cell(store, 1)
        seen = int(row_of(store, machine).sequence[0]) + off_by

        outcome = claim(
            store, a_leased_job(store), [0], [machine], rule=ConflictRule.SEQUENCE, seen=seen
        )

        assert [STALE] == verdicts_of(outcome)

    def test_the_sequence_rule_checks_room_as_well(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        seen = int(row_of(store, machine).sequence[0])
        claims = some_claims([0, 1], [machine, machine], seen=seen, cpu_milli=3_000)

        outcome = store.commit(
            a_transaction(
                claims_of_job(a_leased_job(store, a_spec(2)), claims), rule=ConflictRule.SEQUENCE
            )
        )

        assert [ACCEPTED, OVERCOMMIT] == verdicts_of(outcome)

    def test_claims_of_one_transaction_do_not_make_each_other_stale(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        seen = int(row_of(store, machine).sequence[0])
        jobs = submit_and_lease(store, a_spec(2), a_spec())
        claims_by_job = [
            claims_of_job(jobs[0], some_claims([0, 1], [machine] * 2, seen=seen)),
            claims_of_job(jobs[1], a_claim(0, machine=machine, seen=seen)),
        ]

        outcome = store.commit(a_transaction(*claims_by_job, rule=ConflictRule.SEQUENCE))

        assert [ACCEPTED] * 3 == verdicts_of(outcome)

    @pytest.mark.parametrize("order", [[STALE, ACCEPTED], [ACCEPTED, STALE]])
    def test_a_claim_is_as_fresh_as_what_it_has_seen_itself(
        self, store: Store, order: list[Verdict]
    ) -> None:
        (machine,) = add_a_cell(store, 1)
        other, mine = submit_and_lease(store, a_spec(), a_spec(2))
        now = int(grant(store, other, [0], [machine]).fresh.sequence[0])
        seen = [now - (verdict is STALE) for verdict in order]
        claims = some_claims([0, 1], [machine] * 2, seen=seen)

        outcome = store.commit(
            a_transaction(claims_of_job(mine, claims), rule=ConflictRule.SEQUENCE)
        )

        assert order == verdicts_of(outcome)

    def test_the_end_of_a_task_makes_nobody_stale(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        other, mine = submit_and_lease(store, a_spec(), a_spec())
        seen = int(grant(store, other, [0], [machine]).fresh.sequence[0])
        end(store, other, 0)

        outcome = claim(store, mine, [0], [machine], rule=ConflictRule.SEQUENCE, seen=seen)

        assert [ACCEPTED] == verdicts_of(outcome)

    def test_a_grant_raises_sequence_and_revision_once_a_machine(self, store: Store) -> None:
        one, two, other = add_a_cell(store, 3)
        before = store.snapshot().rows
        job = a_leased_job(store, a_spec(5))

        outcome = grant(store, job, range(5), [one, one, one, two, two])

        after = store.snapshot().rows
        assert [1, 1, 0] == (after.sequence - before.sequence).tolist()
        assert [1, 1, 0] == (after.revision - before.revision).tolist()
        assert [] == row_differences(after.take(after.where(integers([one, two]))), outcome.fresh)
        assert other == after.id[2]

    def test_a_refused_transaction_changes_no_machine(self, store: Store) -> None:
        machines = add_a_cell(store, 2)
        before = store.snapshot()
        job = a_leased_job(store, a_spec(2))

        outcome = claim(store, job, [0, 1], machines, cpu_milli=4_001)

        assert [OVERCOMMIT] * 2 == verdicts_of(outcome)
        assert [] == row_differences(before.rows, store.snapshot().rows)
        assert [] == row_differences(before.rows, outcome.fresh)
        assert 0 == len(store.allocations())
