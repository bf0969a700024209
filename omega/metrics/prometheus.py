"""Facts and measures as metrics for Prometheus.

Goal     Let operators use the monitoring that they have.
Promise  It exports the values of facts and counts nothing itself, so that a scrape and the
         dashboard cannot differ. It works on a process's own fold, or on what many processes
         reported to the store. A replica has a bounded number of series.
Source   prometheus-client's custom collectors; Prometheus' rules for naming.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from omega.metrics.histogram import SHORTEST_S, cumulated
from omega.model.outcomes import Verdict

Reported = tuple[str, str, Mapping[str, Any]]
"""Scheduler kind, replica, facts."""

COUNTERS = {
    "jobs_leased": "Jobs taken from the queue.",
    "jobs_placed": "Attempts that ended with every task of the job placed.",
    "jobs_parked": "Jobs set aside.",
    "jobs_woken": "Parked jobs moved back to the queue.",
    "jobs_recalled": "Jobs of the last round, running or not, leased to be planned anew.",
    "jobs_rescued": "Jobs whose lease ran out, moved back to the queue.",
    "machines_expired": "Machines taken down because their agents were silent.",
    "attempts": "Attempts at a job.",
    "attempts_fruitless": "Attempts that placed nothing.",
    "retries": "Tries in an attempt after the first.",
    "tasks_placed": "Claims granted.",
    "tasks_evicted": "Tasks that lost their places to claims.",
    "jobs_evicted": "Jobs that lost tasks to claims of others, once for each commit.",
    "tasks_lost": "Tasks that lost their places with machines that failed, left or shrank.",
    "transactions": "Transactions judged.",
    "transactions_conflicted": "Transactions with a claim refused for more than a quota.",
    "job_transactions": "Jobs in transactions judged.",
    "job_transactions_conflicted": "Jobs in transactions judged that had such a claim.",
    "refreshes": "Times the view was brought up to date.",
    "refreshes_full": "Times the view was read in full.",
    "store_faults": "Calls that the store did not answer.",
    "tasks_ended": "Tasks that were over.",
    "rates_unknown": "Kinds of work on which no steps are made, for want of a rate.",
}
SECONDS = {
    "thought_s": ("decision_seconds", "Decision time, with that which found no room."),
    "thought_useful_s": ("decision_useful_seconds", "Decision time of conflict-free commits."),
    "thought_wasted_s": ("decision_wasted_seconds", "Decision time of conflicted commits."),
    "commit_useful_s": ("commit_useful_seconds", "Time in conflict-free commits."),
    "commit_wasted_s": ("commit_wasted_seconds", "Time in conflicted commits."),
    "refresh_s": ("refresh_seconds", "Time in bringing the view up to date."),
}
GAUGES = {
    "conflict_fraction": "Conflicted job transactions per conflict-free one.",
    "conflict_fraction_now": "The same, over the last seconds.",
    "busy": "Share of the time spent deciding and committing.",
    "busy_now": "The same, over the last seconds.",
    "view_age_p50_s": "Median age that the view reaches before it is refreshed.",
}
MEMBERS_MAX = 32
"""Reasons, causes or calls of one replica that have a series each: reports may hold any names."""
OTHERS = "others"
"""In place of the names beyond that."""
WAIT_BOUNDS_S = tuple(SHORTEST_S * 10 ** (step / 2) for step in range(2, 19))
"""From 1 ms to 30,000 s, two a decade."""


class OmegaCollector(Collector):
    """Turns facts into metric families, in each scrape."""

    def __init__(self, read: Callable[[], Iterable[Reported]]) -> None:
        self._read = read

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics of all processes as they are now."""
        reported = list(self._read())
        for name, help_text in COUNTERS.items():
            yield _counter(name, help_text, reported, name)
        for source, (name, help_text) in SECONDS.items():
            yield _counter(name, help_text, reported, source)
        yield _claims(reported)
        yield _by("parked", "jobs_parked_by_reason", "reason", "Jobs set aside.", reported)
        yield _by("lost", "tasks_lost_by_cause", "cause", "Tasks lost with machines.", reported)
        yield _by("faltered", "store_faults_by_call", "call", "Unanswered calls.", reported)
        for name, help_text in GAUGES.items():
            yield _gauge(name, help_text, reported)
        yield _waits(reported)


def _counter(
    name: str, help_text: str, reported: Iterable[Reported], source: str
) -> CounterMetricFamily:
    family = CounterMetricFamily(f"omega_{name}", help_text, labels=("scheduler", "replica"))
    for scheduler, replica, facts in reported:
        family.add_metric((scheduler, replica), facts["totals"].get(source, 0))
    return family


def _claims(reported: Iterable[Reported]) -> CounterMetricFamily:
    """Return the claims by verdict; verdicts that have not occurred are exported as 0."""
    labels = ("scheduler", "replica", "verdict")
    family = CounterMetricFamily("omega_claims", "Claims judged, by verdict.", labels=labels)
    for scheduler, replica, facts in reported:
        totals = facts["totals"]
        counts = {**totals.get("refused", {}), "accepted": totals.get("tasks_placed", 0)}
        for verdict in Verdict:
            name = verdict.name.lower()
            family.add_metric((scheduler, replica, name), counts.get(name, 0))
    return family


def _by(
    source: str, name: str, label: str, help_text: str, reported: Iterable[Reported]
) -> CounterMetricFamily:
    labels = ("scheduler", "replica", label)
    family = CounterMetricFamily(f"omega_{name}", help_text, labels=labels)
    for scheduler, replica, facts in reported:
        for member, count in _members(facts["totals"].get(source, {})).items():
            family.add_metric((scheduler, replica, member), count)
    return family


def _members(counts: Mapping[str, float]) -> dict[str, float]:
    """Return the counts by name; those of names beyond MEMBERS_MAX as one."""
    names = sorted(counts)
    members = {name: counts[name] for name in names[:MEMBERS_MAX]}
    if rest := names[MEMBERS_MAX:]:
        members[OTHERS] = members.get(OTHERS, 0) + sum(counts[name] for name in rest)
    return members


def _gauge(name: str, help_text: str, reported: Iterable[Reported]) -> GaugeMetricFamily:
    exported = (
        f"omega_{name.removesuffix('_s')}_seconds" if name.endswith("_s") else f"omega_{name}"
    )
    family = GaugeMetricFamily(exported, help_text, labels=("scheduler", "replica"))
    for scheduler, replica, facts in reported:
        value = facts["measures"][name]
        if value is not None:
            family.add_metric((scheduler, replica), value)
    return family


def _waits(reported: Iterable[Reported]) -> HistogramMetricFamily:
    family = HistogramMetricFamily(
        "omega_wait_seconds",
        "Time from submission to the first attempt.",
        labels=("scheduler", "replica"),
    )
    for scheduler, replica, facts in reported:
        waits = facts["waits"]
        below = [(f"{bound:g}", float(count)) for bound, count in cumulated(waits, WAIT_BOUNDS_S)]
        below.append(("+Inf", float(sum(waits.values()))))
        family.add_metric((scheduler, replica), below, facts["totals"].get("waits_s", 0.0))
    return family
