"""What every store must know for audits: who held what over a time, and which room is idle.

Goal     Holdings as stories.
Promise  No test needs a clock that it can move: what was held is compared with the moments that the
         store itself returns, and of ended tasks the resources with each other.
Source   docs/decisions/0041-audits.md.
"""

from collections.abc import Sequence

from omega.model.arrays import integers
from omega.model.jobs import StepWork
from omega.model.machines import MachineState
from omega.model.quotas import QuotaScope
from omega.store.holdings import Holding, Holdings, IdleCause, IdleJob
from omega.store.protocols import Store
from omega.testing.builders import (
    a_cell,
    a_group,
    a_spec,
    a_transaction,
    claims_of_job,
    evicting,
    some_claims,
)
from omega.testing.contract import Contract
from omega.testing.progress_contract import a_job_in_steps, report
from omega.testing.steps import (
    a_leased_job,
    a_running_job,
    add_a_cell,
    end,
    grant,
    lease_all,
    submit_and_lease,
)

HOUR_MS = 60 * 60 * 1_000
MS_US = 1_000


def per_task_us(held: Holding, amounts: Sequence[int]) -> int:
    """Return for how long amounts were held, which must be the same of each resource."""
    assert [0] * amounts.count(0) == [
        us for us, amount in zip(held.held_us, amounts, strict=True) if not amount
    ]
    times = {us / amount for us, amount in zip(held.held_us, amounts, strict=True) if amount}
    (time,) = times
    assert time == int(time)
    return int(time)


def of_tenants(told: Holdings) -> list[Holding]:
    """Return what tenants held."""
    return [one for one in told.by if one.scope is QuotaScope.TENANT]


class HoldingContract(Contract):
    """What jobs held, by tenant and kind of scheduler."""

    def test_where_nothing_runs_and_nothing_ran_nothing_is_held(self, store: Store) -> None:
        store.add_machines(a_cell(2, cpu_milli=2_000, gpus=1))
        store.submit([a_spec(3)])

        told = store.holdings(HOUR_MS)

        assert ([], 0) == (list(told.by), told.unknown)
        assert HOUR_MS == told.until_ms - told.since_ms
        use = store.use().capacity
        assert (4_000, use["memory_mib"], use["disk_mib"], 2_000) == told.capacity

    def test_an_empty_cell_has_no_capacity(self, store: Store) -> None:
        assert (0, 0, 0, 0) == store.holdings(1).capacity

    def test_capacity_is_that_of_the_machines_that_are_not_gone(self, store: Store) -> None:
        _, down, gone = store.add_machines(a_cell(3, cpu_milli=1_000)).tolist()
        store.set_state(integers([down]), MachineState.DOWN)
        store.set_state(integers([gone]), MachineState.GONE)

        assert 2_000 == store.holdings(1).capacity[0]

    def test_what_runs_counts_with_what_it_holds_since_it_began(self, store: Store) -> None:
        add_a_cell(store, 1, gpus=2)
        a_running_job(store, a_spec(tenant="ann"), [1], cpu_milli=500, memory_mib=64, gpu_0=250)
        before_ms = store.holdings(HOUR_MS).until_ms

        told = store.holdings(HOUR_MS)

        (ann,) = of_tenants(told)
        (began_ms,) = store.allocations().started_ms.tolist()
        lasted_us = per_task_us(ann, (500, 64, 0, 250))
        assert ("ann", 1) == (ann.name, ann.runs)
        assert [("batch", ann.held_us)] == [
            (one.name, one.held_us) for one in told.by if one.scope is QuotaScope.SCHEDULER
        ]
        assert before_ms - began_ms - 1 <= lasted_us // MS_US <= told.until_ms - began_ms + 1

    def test_what_has_ended_counts_with_what_its_group_asked_for(self, store: Store) -> None:
        add_a_cell(store, 1, gpus=2)
        asked = (a_group(2, cpu_milli=100, memory_mib=3), a_group(1, gpus=1, gpu_slices=500))
        job = a_running_job(store, a_spec(groups=asked), [1, 1, 1], cpu_milli=700)

        end(store, job, 0, 1)
        (first,) = of_tenants(store.holdings(HOUR_MS))
        end(store, job, 2)
        (both,) = of_tenants(store.holdings(HOUR_MS))

        assert 3 == first.runs == both.runs
        # All of them held 700. The task of the second group asked for a core and half a GPU, the
        # others asked for 100 and 3.
        live_us = first.held_us[0] - first.held_us[1] // 3 * 100
        others_us, lone_us = both.held_us[1] // 3, both.held_us[3] // 500
        assert 0 == first.held_us[3] <= lone_us
        assert 0 <= live_us // 700 <= lone_us
        assert both.held_us[1] == others_us * 3
        # A read counts up to the last whole millisecond: what ended since is a bit shorter.
        assert 0 <= both.held_us[1] - first.held_us[1] < 2 * 3 * MS_US
        assert both.held_us[0] == others_us * 100 + lone_us * 1_000

    def test_no_more_counts_than_the_time_that_is_asked_for(self, store: Store) -> None:
        add_a_cell(store, 1)
        a_running_job(store, a_spec(2), [1, 1], cpu_milli=1_000)

        (batch,) = of_tenants(store.holdings(1))

        assert 0 <= batch.held_us[0] <= 2 * 1_000 * MS_US

    def test_tenants_and_kinds_are_told_apart_and_in_order(self, store: Store) -> None:
        add_a_cell(store, 1, cpu_milli=9_000)
        specs = [
            a_spec(1, tenant="bob", scheduler="service"),
            a_spec(2, tenant="bob"),
            a_spec(1, tenant="ann"),
            a_spec(1, tenant="bob"),
        ]
        store.submit(specs)
        for kind in ("batch", "service"):
            for job in lease_all(store, scheduler=kind):
                grant(store, job, range(job.spec.tasks), [1] * job.spec.tasks)

        told = store.holdings(HOUR_MS).by

        tenant, scheduler = QuotaScope.TENANT, QuotaScope.SCHEDULER
        assert [
            (tenant, "ann", 1),
            (tenant, "bob", 4),
            (scheduler, "batch", 4),
            (scheduler, "service", 1),
        ] == [(one.scope, one.name, one.runs) for one in told]

    def test_a_task_that_was_evicted_and_placed_again_ran_twice(self, store: Store) -> None:
        failing, other = add_a_cell(store, 2)
        a_running_job(store, a_spec(1), [failing])
        store.set_state(integers([failing]), MachineState.DOWN)
        store.lose_tasks(integers([failing]))
        (job,) = lease_all(store)
        grant(store, job, [0], [other])

        assert [2] == [one.runs for one in of_tenants(store.holdings(HOUR_MS))]

    def test_a_task_that_made_way_for_another_counts_too(self, store: Store) -> None:
        add_a_cell(store, 1, cpu_milli=1_000)
        victim = a_running_job(store, a_spec(1, tenant="ann"), [1])
        evictor = a_leased_job(store, a_spec(1, tenant="bob", precedence=50))
        claims = evicting(some_claims([0], [1]), (0, victim.id, 0))
        assert store.commit(a_transaction(claims_of_job(evictor, claims))).accepted.all()

        told = of_tenants(store.holdings(HOUR_MS))

        assert [("ann", 1), ("bob", 1)] == [(one.name, one.runs) for one in told]

    def test_a_job_that_is_cancelled_has_held_what_it_held(self, store: Store) -> None:
        add_a_cell(store, 1)
        job = a_running_job(store, a_spec(2), [1, 1])

        assert store.cancel(job.id)

        assert [2] == [one.runs for one in of_tenants(store.holdings(HOUR_MS))]


class IdleContract(Contract):
    """Jobs that hold room and do not get on."""

    def test_a_job_some_of_whose_tasks_have_no_place_holds_the_others_idly(
        self, store: Store
    ) -> None:
        add_a_cell(store, 1, gpus=1)
        (job,) = submit_and_lease(store, a_spec(5, name="half", tenant="ann", minimum=2))
        grant(store, job, [0, 3], [1, 1], cpu_milli=500, gpu_0=250)

        (idle,) = store.idle_jobs(0)

        assert idle == IdleJob(
            job=job.id,
            name="half",
            tenant="ann",
            scheduler="batch",
            cause=IdleCause.UNPLACED_SIBLINGS,
            running=2,
            unplaced=3,
            since_ms=max(store.allocations().started_ms.tolist()),
            held=(1_000, 0, 0, 500),
        )

    def test_a_job_that_waits_without_a_place_holds_nothing(self, store: Store) -> None:
        add_a_cell(store, 1)
        submit_and_lease(store, a_spec(2))

        assert [] == store.idle_jobs(0)

    def test_a_job_whose_tasks_all_run_or_are_over_is_not_idle(self, store: Store) -> None:
        add_a_cell(store, 1)
        job = a_running_job(store, a_spec(2), [1, 1])
        whole = store.idle_jobs(0)
        end(store, job, 0)

        assert [[], []] == [whole, store.idle_jobs(0)]

    def test_a_job_in_steps_is_idle_until_its_first_step(self, store: Store) -> None:
        add_a_cell(store, 1)
        job = a_running_job(store, a_job_in_steps(2, steps=10), [1, 1])
        before = store.idle_jobs(0)
        report(store, job.id, 0, 5_000)
        ran = store.idle_jobs(0)
        report(store, job.id, 1, 6_000)

        assert [(job.id, IdleCause.NO_STEP, 2, 0)] * 2 == [
            (one.job, one.cause, one.running, one.unplaced) for one in (*before, *ran)
        ]
        assert [] == store.idle_jobs(0)

    def test_a_job_in_steps_of_which_a_task_is_missing_is_idle_whatever_it_has_made(
        self, store: Store
    ) -> None:
        first, failing = add_a_cell(store, 2)
        spec = a_spec(2, minimum=1, work=StepWork("model", 10))
        job = a_running_job(store, spec, [first, failing])
        report(store, job.id, 5, 5_000)
        store.set_state(integers([failing]), MachineState.DOWN)
        store.lose_tasks(integers([failing]))

        (idle,) = store.idle_jobs(0)

        assert (IdleCause.UNPLACED_SIBLINGS, 1, 1) == (idle.cause, idle.running, idle.unplaced)
        assert idle.since_ms >= max(store.allocations().started_ms.tolist())

    def test_who_has_held_for_less_long_is_not_returned(self, store: Store) -> None:
        add_a_cell(store, 1)
        (job,) = submit_and_lease(store, a_spec(2))
        grant(store, job, [0], [1])

        assert [] == store.idle_jobs(HOUR_MS)

    def test_jobs_that_are_over_hold_nothing(self, store: Store) -> None:
        add_a_cell(store, 1)
        (job,) = submit_and_lease(store, a_spec(2))
        grant(store, job, [0], [1])
        store.cancel(job.id)

        assert [] == store.idle_jobs(0)
