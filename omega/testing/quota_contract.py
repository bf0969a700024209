"""What every store must do about quotas: a tenant at its limit gets no more.

Goal     Quotas as tests that read as stories.
Promise  No claim raises the use of a quota above its limit. Every end of a task gives its charge
         back. Lowering a limit evicts nothing.
Source   docs/decisions/0016-quotas.md.
"""

import numpy as np
import pytest

from omega.model.arrays import integers
from omega.model.machines import MachineState
from omega.model.outcomes import Verdict
from omega.model.quotas import Budget, Quota, QuotaScope, QuotaUse
from omega.model.resources import machine_capacity
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
    claim,
    end,
    evicted_tasks,
    grant,
    row_of,
    submit_and_lease,
    verdicts_of,
)
from omega.testing.twin import differences

ACCEPTED, QUOTA, GANG_BROKEN = Verdict.ACCEPTED, Verdict.QUOTA, Verdict.GANG_BROKEN
ANN = (QuotaScope.TENANT, "ann")


def limit(store: Store, budget: Budget, most: int, subject: tuple[QuotaScope, str] = ANN) -> None:
    """Set a quota with a limit for one budget."""
    store.set_quota(Quota(*subject, {budget: most}))


def left_of(store: Store, subject: tuple[QuotaScope, str] = ANN) -> dict[Budget, int]:
    """Return the balance of a quota, by budget."""
    (use,) = [u for u in store.quotas() if (u.quota.scope, u.quota.name) == subject]
    return dict(use.left)


class QuotaContract(Contract):
    """Which claims a quota refuses."""

    def test_claims_are_granted_in_order_up_to_the_limit(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        limit(store, Budget.CPU_MILLI, 2_000)
        job = a_leased_job(store, a_spec(3, tenant="ann"))

        outcome = claim(store, job, [0, 1, 2], [machine] * 3)

        assert [ACCEPTED, ACCEPTED, QUOTA] == verdicts_of(outcome)
        assert {Budget.CPU_MILLI: 0} == left_of(store)

    def test_a_refusal_changes_nothing(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        limit(store, Budget.CPU_MILLI, 999)
        job = a_leased_job(store, a_spec(tenant="ann"))
        before = row_of(store, machine)

        outcome = claim(store, job, [0], [machine])

        assert [QUOTA] == verdicts_of(outcome)
        assert before.revision.tolist() == row_of(store, machine).revision.tolist()
        assert {Budget.CPU_MILLI: 999} == left_of(store)

    def test_others_are_not_concerned(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        limit(store, Budget.CPU_MILLI, 0)
        job = a_leased_job(store, a_spec(tenant="bob"))

        assert [ACCEPTED] == verdicts_of(claim(store, job, [0], [machine]))

    def test_a_kind_of_scheduler_has_a_quota_of_its_own(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        batch = (QuotaScope.SCHEDULER, "batch")
        limit(store, Budget.CPU_MILLI, 3_000)
        limit(store, Budget.CPU_MILLI, 1_000, batch)
        ann, bob = submit_and_lease(store, a_spec(tenant="ann"), a_spec(tenant="bob"))

        assert [ACCEPTED] == verdicts_of(claim(store, ann, [0], [machine]))
        assert [QUOTA] == verdicts_of(claim(store, bob, [0], [machine]))
        assert {Budget.CPU_MILLI: 2_000} == left_of(store)
        assert {Budget.CPU_MILLI: 0} == left_of(store, batch)

    def test_slices_count_over_all_devices(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, gpus=4)
        limit(store, Budget.GPU_SLICES, 2_500)
        job = a_leased_job(store, a_spec(3, tenant="ann", gpus=1))

        grant(store, job, [0], [machine], gpu_0=1_000)
        grant(store, job, [1], [machine], gpu_3=1_000)
        outcome = claim(store, job, [2], [machine], gpu_1=1_000)

        assert [QUOTA] == verdicts_of(outcome)
        assert {Budget.GPU_SLICES: 500} == left_of(store)

    def test_jobs_count_while_they_have_something_running(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        limit(store, Budget.JOBS, 1)
        first, second = submit_and_lease(store, a_spec(2, tenant="ann"), a_spec(tenant="ann"))

        grant(store, first, [0], [machine])
        grant(store, first, [1], [machine])
        assert [QUOTA] == verdicts_of(claim(store, second, [0], [machine]))
        end(store, first, 0)
        assert [QUOTA] == verdicts_of(claim(store, second, [0], [machine]))
        end(store, first, 1)
        assert [ACCEPTED] == verdicts_of(claim(store, second, [0], [machine]))

    def test_a_broken_gang_gives_its_charges_back(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        limit(store, Budget.CPU_MILLI, 2_000)
        gang, single = submit_and_lease(
            store, a_spec(3, minimum=3, tenant="ann"), a_spec(2, tenant="ann")
        )

        outcome = store.commit(
            a_transaction(
                claims_of_job(gang, some_claims([0, 1, 2], [machine] * 3), minimum=3),
                claims_of_job(single, some_claims([0, 1], [machine] * 2)),
            )
        )

        assert [GANG_BROKEN, GANG_BROKEN, QUOTA, ACCEPTED, ACCEPTED] == verdicts_of(outcome)

    def test_an_alternate_that_asks_for_less_is_taken(self, store: Store) -> None:
        wide, narrow = add_a_cell(store, 2)
        limit(store, Budget.CPU_MILLI, 1_000)
        job = a_leased_job(store, a_spec(tenant="ann"))
        claims = or_on(a_claim(0, machine=wide, cpu_milli=2_000), (0, narrow))

        outcome = store.commit(a_transaction(claims_of_job(job, claims)))
        assert [QUOTA] == verdicts_of(outcome)

        small = some_claims([0], [wide], cpu_milli=1_000)
        both = type(claims)(
            claims.task,
            claims.machine,
            claims.seen,
            claims.shape,
            np.concatenate([claims.shapes, small.shapes]),
            type(claims.alternates)(
                claims.alternates.claim,
                claims.alternates.machine,
                claims.alternates.seen,
                np.ones(1, np.intp),
            ),
        )
        outcome = store.commit(a_transaction(claims_of_job(job, both)))
        assert [ACCEPTED] == verdicts_of(outcome)
        assert [narrow] == outcome.machine.tolist()
        assert {Budget.CPU_MILLI: 0} == left_of(store)

    def test_the_same_id_is_charged_once(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        limit(store, Budget.CPU_MILLI, 1_000)
        job = a_leased_job(store, a_spec(2, tenant="ann"))
        transaction = a_transaction(claims_of_job(job, a_claim(0, machine=machine)))

        first = store.commit(transaction)
        again = store.commit(transaction)

        assert [] == differences(first, again)
        assert {Budget.CPU_MILLI: 0} == left_of(store)

    def test_the_last_bit_of_a_quota_is_found_wherever_it_lies(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=100_000)
        limit(store, Budget.CPU_MILLI, 40_000)
        job = a_leased_job(store, a_spec(41, tenant="ann"))

        for task in range(40):
            grant(store, job, [task], [machine])

        assert [QUOTA] == verdicts_of(claim(store, job, [40], [machine]))
        assert {Budget.CPU_MILLI: 0} == left_of(store)


class QuotaReturnContract(Contract):
    """What gives charges back to a quota, and changes of limits."""

    def test_an_end_gives_back_once(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        limit(store, Budget.CPU_MILLI, 2_000)
        job = a_running_job(store, a_spec(2, tenant="ann"), [machine] * 2)

        assert 1 == end(store, job, 0, 0)
        assert 0 == end(store, job, 0)

        assert {Budget.CPU_MILLI: 1_000} == left_of(store)

    def test_an_end_of_another_allocation_gives_nothing_back(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        limit(store, Budget.CPU_MILLI, 1_000)
        job = a_running_job(store, a_spec(tenant="ann"), [machine])
        started = store.allocations().started_ms

        ended = store.end_tasks(integers([job.id]), np.zeros(1, np.intp), started - 1)

        assert 0 == ended
        assert {Budget.CPU_MILLI: 0} == left_of(store)

    def test_a_cancelled_job_gives_back(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        store.set_quota(Quota(*ANN, {Budget.CPU_MILLI: 2_000, Budget.JOBS: 1}))
        job = a_running_job(store, a_spec(2, tenant="ann"), [machine] * 2)
        assert {Budget.CPU_MILLI: 0, Budget.JOBS: 0} == left_of(store)

        store.cancel(job.id)

        assert {Budget.CPU_MILLI: 2_000, Budget.JOBS: 1} == left_of(store)

    def test_a_gang_that_is_lost_gives_back_whole(self, store: Store) -> None:
        one, other = add_a_cell(store, 2)
        limit(store, Budget.CPU_MILLI, 2_000)
        a_running_job(store, a_spec(2, minimum=2, tenant="ann"), [one, other])

        store.set_state(integers([one]), MachineState.DOWN)
        assert 2 == store.lose_tasks(integers([one]))

        assert {Budget.CPU_MILLI: 2_000} == left_of(store)

    def test_what_is_evicted_gives_back_to_the_claim_that_evicts(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        store.set_quota(Quota(*ANN, {Budget.CPU_MILLI: 1_000, Budget.JOBS: 1}))
        low = a_running_job(store, a_spec(tenant="ann", precedence=10), [machine])
        high = a_leased_job(store, a_spec(tenant="ann", precedence=20))
        assert [QUOTA] == verdicts_of(claim(store, high, [0], [machine]))

        claims = evicting(a_claim(0, machine=machine), (0, low.id, 0))
        outcome = store.commit(a_transaction(claims_of_job(high, claims)))

        assert [ACCEPTED] == verdicts_of(outcome)
        assert [(low.id, 0)] == evicted_tasks(outcome)
        assert {Budget.CPU_MILLI: 0, Budget.JOBS: 0} == left_of(store)

    def test_a_job_that_a_broken_gang_would_have_evicted_from_still_counts(
        self, store: Store
    ) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=2_000)
        limit(store, Budget.JOBS, 1)
        victim = a_running_job(store, a_spec(2, tenant="ann"), [machine] * 2)
        gang, job = submit_and_lease(
            store, a_spec(2, precedence=10, minimum=2), a_spec(precedence=10, tenant="ann")
        )
        broken = evicting(some_claims([0, 1], [machine] * 2), (0, victim.id, 0))
        instead = evicting(a_claim(0, machine=machine), (0, victim.id, 1))

        outcome = store.commit(
            a_transaction(claims_of_job(gang, broken), claims_of_job(job, instead))
        )

        assert [GANG_BROKEN, Verdict.OVERCOMMIT, QUOTA] == verdicts_of(outcome)

    def test_another_tenants_task_is_evicted_for_its_room_alone(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        limit(store, Budget.CPU_MILLI, 0)
        limit(store, Budget.CPU_MILLI, 1_000, (QuotaScope.TENANT, "bob"))
        low = a_running_job(store, a_spec(tenant="bob", precedence=10), [machine])
        high = a_leased_job(store, a_spec(tenant="ann", precedence=20))

        claims = evicting(a_claim(0, machine=machine), (0, low.id, 0))
        outcome = store.commit(a_transaction(claims_of_job(high, claims)))

        assert [QUOTA] == verdicts_of(outcome)
        assert {Budget.CPU_MILLI: 0} == left_of(store, (QuotaScope.TENANT, "bob"))

    def test_what_runs_counts_when_a_quota_is_set(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        a_running_job(store, a_spec(2, tenant="ann"), [machine] * 2)
        a_running_job(store, a_spec(tenant="bob"), [machine])

        store.set_quota(Quota(*ANN, {Budget.CPU_MILLI: 5_000, Budget.JOBS: 9}))

        assert {Budget.CPU_MILLI: 3_000, Budget.JOBS: 8} == left_of(store)

    def test_a_limit_that_falls_ends_nothing_and_lets_nothing_in(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, gpus=2)
        job = a_running_job(store, a_spec(2, tenant="ann"), [machine] * 2)
        more = a_leased_job(store, a_spec(tenant="ann"))

        limit(store, Budget.CPU_MILLI, 500)

        assert {Budget.CPU_MILLI: -1_500} == left_of(store)
        assert 2 == len(store.allocations())
        assert [QUOTA] == verdicts_of(claim(store, more, [0], [machine]))
        end(store, job, 0)
        assert [QUOTA] == verdicts_of(claim(store, more, [0], [machine], cpu_milli=1))
        end(store, job, 1)
        assert [ACCEPTED] == verdicts_of(claim(store, more, [0], [machine], cpu_milli=500))

    def test_a_claim_for_none_of_what_is_short_stands(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, gpus=2)
        a_running_job(store, a_spec(tenant="ann", gpus=1), [machine], gpu_0=1_000)
        job = a_leased_job(store, a_spec(tenant="ann"))

        limit(store, Budget.GPU_SLICES, 500)

        assert [ACCEPTED] == verdicts_of(claim(store, job, [0], [machine]))

    def test_a_quota_that_is_lifted_refuses_nothing(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        limit(store, Budget.CPU_MILLI, 0)
        job = a_leased_job(store, a_spec(tenant="ann"))

        assert store.remove_quota(*ANN)
        assert not store.remove_quota(*ANN)

        assert [] == store.quotas()
        assert [ACCEPTED] == verdicts_of(claim(store, job, [0], [machine]))

    def test_quotas_are_listed_with_what_is_left(self, store: Store) -> None:
        ann = Quota(*ANN, {Budget.JOBS: 3})
        batch = Quota(QuotaScope.SCHEDULER, "batch", {Budget.MEMORY_MIB: 2**40})
        store.set_quota(ann)
        store.set_quota(batch)

        assert [
            QuotaUse(batch, {Budget.MEMORY_MIB: 2**40}),
            QuotaUse(ann, {Budget.JOBS: 3}),
        ] == store.quotas()

    def test_a_resize_that_ends_tasks_gives_back(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        limit(store, Budget.CPU_MILLI, 3_000)
        a_running_job(store, a_spec(3, tenant="ann"), [machine] * 3)

        capacity = machine_capacity(1_000, 16_384, 100_000)
        store.resize(machine, capacity, notice_ms=0)
        assert 2 == store.enforce_notices()

        assert {Budget.CPU_MILLI: 2_000} == left_of(store)

    @pytest.mark.parametrize("left", [0, 1_000])
    def test_a_move_within_a_tenant_needs_nothing(self, store: Store, left: int) -> None:
        one, other = add_a_cell(store, 2)
        limit(store, Budget.CPU_MILLI, 1_000 + left)
        job = a_leased_job(store, a_spec(2, tenant="ann"))
        grant(store, job, [0], [one])

        claims = some_claims([1, 0], [one, other])
        outcome = store.commit(a_transaction(claims_of_job(job, evicting(claims, (0, job.id, 0)))))

        assert [ACCEPTED, ACCEPTED if left else QUOTA] == verdicts_of(outcome)
