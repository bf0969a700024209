"""Which of several reasons is named, and on what evidence."""

from omega.clock import ManualClock
from omega.limits import LIMITS
from omega.model.jobs import Constraint, JobSpec, Operator, Preference
from omega.model.lanes import QueueOrder
from omega.model.quotas import Budget, Quota, QuotaScope
from omega.reports.why.reasons import Reason
from omega.reports.why.report import WhyReport, why_job
from omega.store.leases import HandBack
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_cell, a_spec
from omega.testing.steps import (
    LONG_MS,
    a_leased_job,
    a_running_job,
    add_a_cell,
    claim,
    end,
    status_of,
)


def a_store() -> MemoryStore:
    """Return a cell of one machine of four cores, with a scheduler at work."""
    store = MemoryStore(ManualClock())
    add_a_cell(store, 1, cpu_milli=4_000)
    store.report("batch", "0", pid=1, facts={})
    return store


def why(store: MemoryStore, job: int) -> WhyReport:
    return why_job(store, status_of(store, job), lambda _: False)


def limited(store: MemoryStore, **limits: int) -> None:
    """Give tenant ann a quota."""
    named = {Budget[name.upper()]: limit for name, limit in limits.items()}
    store.set_quota(Quota(QuotaScope.TENANT, "ann", named))


def of_ann(tasks: int = 1, *, minimum: int = 0, cpu_milli: int = 1_000) -> JobSpec:
    return a_spec(tasks, tenant="ann", minimum=minimum, cpu_milli=cpu_milli)


def test_a_quota_comes_before_a_full_cell_since_freed_room_would_not_help() -> None:
    store = a_store()
    limited(store, cpu_milli=0)
    a_running_job(store, a_spec(cpu_milli=4_000), [1], cpu_milli=4_000)
    (waits,) = store.submit([of_ann()])

    assert Reason.OVER_QUOTA is why(store, waits).finding.reason


def test_a_gang_needs_quota_for_all_that_it_lacks() -> None:
    store = a_store()
    limited(store, cpu_milli=3_000)
    (gang, single) = store.submit([of_ann(4, minimum=4), of_ann(4)])

    told = why(store, gang)

    assert Reason.OVER_QUOTA is told.finding.reason
    assert [(4_000, 3_000)] == [(need.need, need.left) for need in told.needs]
    assert Reason.OVER_QUOTA is not why(store, single).finding.reason


def test_a_gang_that_one_commit_cannot_place_is_too_large_whatever_room_there_is() -> None:
    store = MemoryStore(ManualClock())
    add_a_cell(store, 3, cpu_milli=40_000_000)
    store.report("batch", "0", pid=1, facts={})
    most = LIMITS.claims_per_transaction_max
    jobs = store.submit([a_spec(most + 1, minimum=size) for size in (most + 1, most)])
    large, fits = (why(store, job).finding for job in jobs)

    assert Reason.GANG_TOO_LARGE is large.reason
    assert (
        "The gang needs 10,001 tasks placed at once, and a commit takes 10,000." == large.evidence
    )
    assert f"omega cancel {jobs[0]}" in large.next_step
    assert large.is_proven
    assert fits.reason.has_room


def test_defeats_are_counted_since_the_last_claim_that_was_granted() -> None:
    store = a_store()
    rival = a_running_job(store, a_spec(), [1], cpu_milli=4_000)
    job = a_leased_job(store, a_spec(2))
    claim(store, job, [0], [1])
    end(store, rival, 0)
    claim(store, job, [0], [1])
    again = a_running_job(store, a_spec(), [1], cpu_milli=3_000)
    claim(store, job, [1], [1])
    store.hand_back([HandBack(job.id, job.token, 0, progressed=False)])
    end(store, again, 0)

    finding = why(store, job.id).finding

    assert Reason.CONFLICTS is finding.reason
    assert finding.evidence.startswith("There is room, but its last 1 transaction got nothing")


def test_a_job_that_waits_for_what_it_prefers_says_for_how_long() -> None:
    clock = ManualClock()
    store = MemoryStore(clock)
    store.add_machines(a_cell(2, attributes={"zone": ["a", "b"]}))
    in_a = Preference(Constraint("zone", Operator.IN, ("a",)), 2)
    a_running_job(store, a_spec(cpu_milli=4_000), [1], cpu_milli=4_000)
    (waits,) = store.submit([a_spec(preferences=(in_a,), patience_ms=600_000)])
    clock.advance(60)
    store.report("batch", "0", pid=1, facts={})

    found = why(store, waits).finding

    assert Reason.PATIENT is found.reason
    assert found.reason.has_room
    assert "not where it prefers to run (zone in a); it waits for that for another 9 min" in (
        found.evidence
    )
    (nearest, *_) = why(store, waits).nearest
    assert "machine-1" == nearest.name, "of the machines that it prefers"
    clock.advance(540)
    store.report("batch", "0", pid=1, facts={})
    assert why(store, waits).finding.reason not in (Reason.PATIENT, Reason.NO_SCHEDULER)


def test_after_an_attempt_that_placed_some_the_pause_is_not_for_nothing_placed() -> None:
    store = a_store()
    job = a_leased_job(store, a_spec(2))
    claim(store, job, [0], [1])
    store.hand_back([HandBack(job.id, job.token, 5_000, progressed=True)])

    found = why(store, job.id).finding

    assert Reason.BACKING_OFF is found.reason
    assert "The last attempt left tasks without a place; the next is 5.0 s away." == found.evidence


def test_a_job_that_is_held_waits_for_its_release_whatever_room_there_is() -> None:
    store = a_store()
    (job,) = store.submit([a_spec()])
    store.hold(job)
    for cpu_milli in (0, 4_000):
        if cpu_milli:
            a_running_job(store, a_spec(), [1], cpu_milli=cpu_milli)
        found = why(store, job).finding
        assert (Reason.HELD, f"omega release {job}") == (found.reason, found.next_step)
        assert not found.reason.has_room


def test_by_start_deadlines_older_jobs_need_not_come_first() -> None:
    store = a_store()
    store.agree_on_order("batch", "0", QueueOrder.DEADLINE, lease_ms=LONG_MS)
    _, job = store.submit([a_spec(), a_spec()])

    report = why(store, job)

    assert Reason.QUEUED is report.finding.reason
    assert "by their keys, the smallest first (order deadline)" in report.finding.evidence
    assert not report.line.ahead
    (first,) = store.submit([a_spec(precedence=7)])
    report = why(store, job)
    assert Reason.BEHIND_OTHERS is report.finding.reason
    assert report.finding.evidence.startswith(
        "There is room, but it is behind 1 job of higher precedence."
    )
    assert [first] == [it.id for it in report.line.first]
