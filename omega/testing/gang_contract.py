"""What every store must do about gangs: jobs whose tasks stand together or not at all.

Goal     Rule 8 of the commit rule as stories.
Promise  A gang is there in full, or above its minimum, or absent; broken, it leaves no trace.
Source   docs/decisions/0003-the-commit-rule.md.
"""

from omega.model.outcomes import Verdict
from omega.store.protocols import Store
from omega.testing.builders import a_claim, a_spec, a_transaction, claims_of_job, some_claims
from omega.testing.contract import Contract
from omega.testing.steps import (
    a_leased_job,
    add_a_cell,
    claim,
    end,
    grant,
    row_of,
    status_of,
    submit_and_lease,
    verdicts_of,
)
from omega.testing.twin import row_differences

ACCEPTED, OVERCOMMIT, GANG_BROKEN = Verdict.ACCEPTED, Verdict.OVERCOMMIT, Verdict.GANG_BROKEN


class GangContract(Contract):
    """All or nothing, or no fewer than so many."""

    def test_one_refusal_breaks_an_all_or_nothing_stretch(self, store: Store) -> None:
        one, two = add_a_cell(store, 2, cpu_milli=2_000)
        before = store.snapshot().rows
        job = a_leased_job(store, a_spec(4))

        outcome = claim(store, job, range(4), [one, one, one, two], minimum=4)

        assert [GANG_BROKEN, GANG_BROKEN, OVERCOMMIT, GANG_BROKEN] == verdicts_of(outcome)
        assert [] == row_differences(before, store.snapshot().rows)
        assert [] == row_differences(before, outcome.fresh)
        assert 0 == len(store.allocations())

    def test_an_incremental_stretch_keeps_what_fits(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=2_000)
        job = a_leased_job(store, a_spec(4))

        outcome = claim(store, job, range(4), [machine] * 4)

        assert [ACCEPTED, ACCEPTED, OVERCOMMIT, OVERCOMMIT] == verdicts_of(outcome)
        assert 2 == status_of(store, job).placed

    def test_a_stretch_may_keep_what_reaches_its_minimum(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=3_000)
        job = a_leased_job(store, a_spec(4, minimum=3))

        outcome = claim(store, job, range(4), [machine] * 4)

        assert [ACCEPTED, ACCEPTED, ACCEPTED, OVERCOMMIT] == verdicts_of(outcome)

    def test_the_jobs_own_minimum_holds_whatever_the_transaction_says(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=2_000)
        job = a_leased_job(store, a_spec(4, minimum=3))

        outcome = claim(store, job, range(4), [machine] * 4, minimum=0)

        assert [GANG_BROKEN, GANG_BROKEN, OVERCOMMIT, OVERCOMMIT] == verdicts_of(outcome)

    def test_fewer_claims_than_the_minimum_are_never_enough(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_leased_job(store, a_spec(3, minimum=3))

        assert [GANG_BROKEN] * 2 == verdicts_of(claim(store, job, [0, 1], [machine] * 2))

    def test_fewer_claims_than_the_transaction_asks_for_are_never_enough(
        self, store: Store
    ) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_leased_job(store, a_spec(3))

        outcome = claim(store, job, [0, 1], [machine] * 2, minimum=3)

        assert [GANG_BROKEN] * 2 == verdicts_of(outcome)

    def test_a_transaction_may_ask_for_more_than_the_jobs_minimum(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=3_000)
        job = a_leased_job(store, a_spec(4, minimum=2))

        outcome = claim(store, job, range(4), [machine] * 4, minimum=4)

        assert [GANG_BROKEN] * 3 + [OVERCOMMIT] == verdicts_of(outcome)

    def test_room_of_a_broken_gang_goes_to_the_jobs_behind_it(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=2_000)
        gang, single = submit_and_lease(store, a_spec(3, minimum=3), a_spec(2))

        outcome = store.commit(
            a_transaction(
                claims_of_job(gang, some_claims(range(3), [machine] * 3)),
                claims_of_job(single, some_claims(range(2), [machine] * 2)),
            )
        )

        assert [GANG_BROKEN, GANG_BROKEN, OVERCOMMIT] == verdicts_of(outcome)[:3]
        assert [ACCEPTED, ACCEPTED] == verdicts_of(outcome)[3:]

    def test_jobs_ahead_of_a_broken_gang_keep_what_they_got(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=2_000)
        before = int(row_of(store, machine).sequence[0])
        single, gang = submit_and_lease(store, a_spec(2), a_spec(2, minimum=2))

        outcome = store.commit(
            a_transaction(
                claims_of_job(single, a_claim(0, machine=machine)),
                claims_of_job(gang, some_claims(range(2), [machine] * 2)),
            )
        )

        assert [ACCEPTED, GANG_BROKEN, OVERCOMMIT] == verdicts_of(outcome)
        assert before + 1 == row_of(store, machine).sequence[0]

    def test_a_claim_with_no_machine_breaks_a_gang_and_leaves_no_trace(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        before = row_of(store, machine)
        job = a_leased_job(store, a_spec(2, minimum=2))

        outcome = claim(store, job, [0, 1], [machine, 1_000_000])

        assert [GANG_BROKEN, Verdict.GONE] == verdicts_of(outcome)
        assert [] == row_differences(before, row_of(store, machine))

    def test_a_gang_that_stands_grows_task_by_task(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=3_000)
        job = a_leased_job(store, a_spec(4, minimum=2))
        grant(store, job, [0, 1], [machine] * 2)

        outcome = claim(store, job, [2, 3], [machine] * 2)

        assert [ACCEPTED, OVERCOMMIT] == verdicts_of(outcome)

    def test_a_gang_that_stood_once_stands_though_its_tasks_end(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_leased_job(store, a_spec(4, minimum=2))
        grant(store, job, [0, 1], [machine] * 2)
        end(store, job, 0, 1)

        assert [ACCEPTED] == verdicts_of(claim(store, job, [2], [machine]))

    def test_a_task_named_twice_counts_once_towards_the_minimum(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_leased_job(store, a_spec(2, minimum=2))

        outcome = claim(store, job, [0, 0], [machine] * 2)

        assert [GANG_BROKEN, Verdict.ALREADY_PLACED] == verdicts_of(outcome)

    def test_a_gang_may_span_groups_and_machines(self, store: Store) -> None:
        one, two = add_a_cell(store, 2, cpu_milli=2_000)
        job = a_leased_job(store, a_spec(3, minimum=3))
        claims = [
            a_claim(0, machine=one, cpu_milli=2_000),
            a_claim(1, machine=two, cpu_milli=500),
            a_claim(2, machine=two, cpu_milli=1_500),
        ]

        outcome = store.commit(a_transaction(claims_of_job(job, *claims, minimum=3)))

        assert [ACCEPTED] * 3 == verdicts_of(outcome)
        assert [0, 0] == store.snapshot().rows.free[:, 0].tolist()
