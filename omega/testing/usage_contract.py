"""What every store must know for accounting: what was used, and by whom.

Goal     Usage as stories.
Promise  No test needs a clock that it can move.
Source   docs/decisions/0056-usage-and-dashboards.md.
"""

from dataclasses import replace

import pytest

from omega.model.arrays import integers
from omega.model.machines import MachineState
from omega.model.quotas import QuotaScope
from omega.store.protocols import Store
from omega.store.usage import Consumer, UsageBy, Used
from omega.testing.builders import (
    a_spec,
    a_transaction,
    claims_of_job,
    evicting,
    some_claims,
)
from omega.testing.contract import Contract
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
MS_OF_A_CORE = 1_000 * 1_000
"""A millisecond of 1,000 thousandths of a core, in microseconds."""


def used(store: Store, by: UsageBy) -> dict[str, Used]:
    """Return what each used, by name."""
    return {consumer.name: its for consumer, its in store.usage(HOUR_MS, by).rows}


class UsageContract(Contract):
    """What tenants, kinds of schedulers and jobs used."""

    @pytest.mark.parametrize("by", list(UsageBy))
    def test_where_nothing_was_submitted_nothing_is_used(self, store: Store, by: UsageBy) -> None:
        add_a_cell(store, 1)

        told = store.usage(HOUR_MS, by)

        assert ((), Used(), 0, 0, None) == (
            told.rows,
            told.total,
            told.left_out,
            told.unknown,
            told.oldest_ms,
        )
        assert (by, HOUR_MS) == (told.by, told.until_ms - told.since_ms)

    def test_what_is_held_is_what_audits_say(self, store: Store) -> None:
        add_a_cell(store, 1, gpus=2)
        a_running_job(store, a_spec(2, tenant="ann"), [1, 1], cpu_milli=500, gpu_0=250)
        over = a_running_job(store, a_spec(tenant="bob"), [1], memory_mib=64)
        end(store, over, 0)

        told = used(store, UsageBy.TENANT)
        audited = {it.name: it for it in store.holdings(HOUR_MS).by if it.scope.value == "tenant"}

        assert {"ann": 2, "bob": 1} == {name: its.runs for name, its in told.items()}
        # Both count up to the last whole millisecond, and the audit was read a moment later: what
        # runs is longer in it, and what has ended may have ended within that millisecond.
        longer = {
            name: [
                after - before
                for before, after in zip(told[name].held_us, audited[name].held_us, strict=True)
            ]
            for name in told
        }
        assert min(longer["ann"]) >= 0
        assert all(0 <= more <= MS_OF_A_CORE for more in longer["bob"])

    def test_the_sum_of_all_is_told_apart(self, store: Store) -> None:
        add_a_cell(store, 1)
        jobs = [a_running_job(store, a_spec(tenant=name), [1]) for name in ("ann", "bob", "ann")]
        for job in jobs:
            end(store, job, 0)

        told = {by: store.usage(HOUR_MS, by) for by in UsageBy}

        # Counted up to the last whole millisecond, within which these may have ended.
        totals = [usage.total for usage in told.values()]
        assert 1 == len({replace(total, held_us=()) for total in totals})
        for held in zip(*(total.held_us for total in totals), strict=True):
            assert max(held) - min(held) <= len(jobs) * MS_OF_A_CORE
        for usage in told.values():
            for at, sum_us in enumerate(usage.total.held_us):
                assert sum_us == sum(its.held_us[at] for _, its in usage.rows)
        assert 3 == told[UsageBy.JOB].total.attempted

    def test_a_job_has_its_name_tenant_and_kind(self, store: Store) -> None:
        add_a_cell(store, 1)
        job = a_running_job(store, a_spec(name="train", tenant="ann"), [1])

        ((consumer, its),) = store.usage(HOUR_MS, UsageBy.JOB).rows

        assert Consumer("train", job.id, "ann", "batch") == consumer
        assert (1, 1, 0) == (its.runs, its.attempted, its.unattempted)

    def test_two_jobs_of_one_name_are_two(self, store: Store) -> None:
        ids = store.submit([a_spec(name="twin"), a_spec(name="twin")])

        told = store.usage(HOUR_MS, UsageBy.JOB).rows

        assert [("twin", job) for job in ids] == [(who.name, who.job) for who, _ in told]

    def test_the_larger_share_comes_first(self, store: Store) -> None:
        add_a_cell(store, 2, cpu_milli=4_000)
        small = a_running_job(store, a_spec(name="a", tenant="a"), [1], cpu_milli=1)
        a_running_job(store, a_spec(name="b", tenant="b"), [2], cpu_milli=4_000)
        end(store, small, 0)
        store.submit([a_spec(name="c", tenant="c")])

        for by in (UsageBy.TENANT, UsageBy.JOB):
            assert "c" == store.usage(HOUR_MS, by).rows[-1][0].name, "it has held nothing"

    def test_jobs_that_wait_for_their_first_attempt_are_counted(self, store: Store) -> None:
        add_a_cell(store, 1)
        submit_and_lease(store, a_spec(tenant="ann"), a_spec(tenant="ann"))
        _, cancelled = store.submit([a_spec(tenant="bob"), a_spec(tenant="bob")])
        store.cancel(cancelled)

        told = used(store, UsageBy.TENANT)

        counts = {name: (its.attempted, its.unattempted) for name, its in told.items()}
        assert {"ann": (2, 0), "bob": (0, 1)} == counts
        ann = told["ann"]
        assert 0 <= ann.waited_longest_us <= ann.waited_us <= 2 * ann.waited_longest_us

    def test_an_eviction_is_counted_for_who_lost_the_task(self, store: Store) -> None:
        add_a_cell(store, 1, cpu_milli=1_000)
        victim = a_running_job(store, a_spec(1, tenant="ann"), [1])
        evictor = a_leased_job(store, a_spec(1, tenant="bob", precedence=50))
        claims = evicting(some_claims([0], [1]), (0, victim.id, 0))
        assert store.commit(a_transaction(claims_of_job(evictor, claims))).accepted.all()

        told = used(store, UsageBy.TENANT)

        assert {"ann": (1, 0), "bob": (0, 0)} == {
            name: (its.evicted, its.lost) for name, its in told.items()
        }

    def test_a_task_that_was_lost_with_its_machine_is_no_eviction(self, store: Store) -> None:
        failing, other = add_a_cell(store, 2)
        a_running_job(store, a_spec(2), [failing, other])
        store.set_state(integers([failing]), MachineState.DOWN)
        store.lose_tasks(integers([failing]))
        (job,) = lease_all(store)
        grant(store, job, [0], [other])

        its = used(store, UsageBy.SCHEDULER)["batch"]

        assert (3, 0, 1) == (its.runs, its.evicted, its.lost)
        assert 1 == its.attempted, "a job has one first attempt"

    def test_a_task_that_ended_by_itself_was_not_evicted(self, store: Store) -> None:
        add_a_cell(store, 1)
        job = a_running_job(store, a_spec(2), [1, 1])
        end(store, job, 0)
        store.cancel(job.id)

        told = store.usage(HOUR_MS, UsageBy.SCHEDULER)

        assert (2, 0, 0) == (told.total.runs, told.total.evicted, told.total.lost)
        assert told.oldest_ms is not None
        assert told.since_ms < told.oldest_ms <= told.until_ms + 1

    def test_kinds_are_those_of_the_specs(self, store: Store) -> None:
        add_a_cell(store, 1)
        store.submit([a_spec(scheduler="service")])
        a_running_job(store, a_spec(), [1])

        assert {"batch", "service"} == set(used(store, UsageBy.SCHEDULER))
        scopes = {it.scope for it in store.holdings(HOUR_MS).by}
        assert {QuotaScope.TENANT, QuotaScope.SCHEDULER} == scopes
