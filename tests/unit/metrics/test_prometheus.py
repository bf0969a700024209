"""What Prometheus is told."""

from prometheus_client import CollectorRegistry, generate_latest

from omega.clock import ManualClock
from omega.events import Event, JobParked, JobsLeased, StoreCallFailed, TasksLost, TransactionJudged
from omega.metrics.fold import SchedulerFold
from omega.metrics.prometheus import MEMBERS_MAX, OTHERS, OmegaCollector
from omega.model.outcomes import Verdict


def exported(*events: Event) -> CollectorRegistry:
    clock = ManualClock()
    fold = SchedulerFold(clock)
    for event in events:
        fold(event)
    clock.advance(10.0)
    registry = CollectorRegistry()
    registry.register(OmegaCollector(lambda: [("batch", "a", fold.facts())]))
    return registry


def value(registry: CollectorRegistry, name: str, **labels: str) -> float | None:
    return registry.get_sample_value(name, {"scheduler": "batch", "replica": "a", **labels})


def test_every_verdict_is_there_from_the_beginning() -> None:
    registry = exported(TransactionJudged("batch", 2, 1, 8, {"stale": 3}, 0.5, 0.25))

    told = {
        verdict: value(registry, "omega_claims_total", verdict=verdict.name.lower())
        for verdict in Verdict
    }
    expected = dict.fromkeys(Verdict, 0.0) | {Verdict.ACCEPTED: 8.0, Verdict.STALE: 3.0}
    assert expected == told


def test_counters_carry_the_names_of_the_facts() -> None:
    registry = exported(TransactionJudged("batch", 2, 1, 8, {"stale": 3}, 0.5, 0.25))

    assert 2 == value(registry, "omega_job_transactions_total")
    assert 1 == value(registry, "omega_job_transactions_conflicted_total")
    assert 8 == value(registry, "omega_tasks_placed_total")
    assert 0.25 == value(registry, "omega_decision_useful_seconds_total")
    assert 1 == value(registry, "omega_conflict_fraction")


def test_reasons_and_calls_are_labels() -> None:
    registry = exported(
        JobParked(1, "no_room"), StoreCallFailed("commit", "away"), TasksLost(3, "shrank")
    )

    assert 3 == value(registry, "omega_tasks_lost_total")
    assert 3 == value(registry, "omega_tasks_lost_by_cause_total", cause="shrank")
    assert 1 == value(registry, "omega_jobs_parked_by_reason_total", reason="no_room")
    assert 1 == value(registry, "omega_store_faults_by_call_total", call="commit")


def test_waits_are_a_histogram() -> None:
    registry = exported(JobsLeased(3, (0.005, 0.5, 500.0)))

    assert [1.0, 2.0, 3.0] == [
        value(registry, "omega_wait_seconds_bucket", le=le) for le in ("0.01", "1", "+Inf")
    ]
    assert 3 == value(registry, "omega_wait_seconds_count")
    assert 500.505 == value(registry, "omega_wait_seconds_sum")


def test_a_process_that_did_nothing_yet_exports_no_fractions_and_no_error() -> None:
    registry = exported()

    assert value(registry, "omega_conflict_fraction") is None
    assert 0 == value(registry, "omega_attempts_total")
    assert b"omega_claims_total" in generate_latest(registry)


def test_names_that_a_report_invents_have_a_bounded_number_of_series() -> None:
    facts = SchedulerFold(ManualClock()).facts()
    facts["totals"] = {"parked": {f"reason-{at:04}": 1 for at in range(MEMBERS_MAX + 9)}}
    registry = CollectorRegistry()
    registry.register(OmegaCollector(lambda: [("batch", "a", facts)]))

    text = generate_latest(registry).decode()

    assert MEMBERS_MAX + 1 == text.count("omega_jobs_parked_by_reason_total{")
    assert 9 == value(registry, "omega_jobs_parked_by_reason_total", reason=OTHERS)
