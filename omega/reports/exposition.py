"""The cell as metrics for Prometheus.

Goal     Let operators watch a cell, and be called when something is wrong, by what they have.
Promise  METRICS has the name of every metric. Values are those of the reports that the command line
         prints. Counters never fall while the exporter runs. Series do not pile up: schedulers
         that have not been heard of lately are left out, and of many kinds the last are counted
         together.
Source   prometheus-client's custom collectors; Prometheus' rules for naming;
         docs/decisions/0056-usage-and-dashboards.md.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from omega.metrics.facts import merge
from omega.metrics.prometheus import OTHERS, OmegaCollector
from omega.model.machines import MachineState
from omega.model.resources import Kind
from omega.reports.cell import CellReport
from omega.reports.conflicts import NOTHING_JUDGED, JudgedCounts
from omega.reports.health import view_age_ms
from omega.reports.lasting import NOTHING_COUNTED, Counted
from omega.reports.machines import notices_summary, state_name
from omega.reports.processes import (
    AGENT,
    NODES,
    NOT_SCHEDULERS,
    ProcessState,
    is_alive,
    is_listed,
    state_of,
)
from omega.reports.quotas import used_up
from omega.store.status import ProcessReport
from omega.store.watching import QueueLine

METRICS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "omega_up": ("Whether the database answered the last look.", ()),
    "omega_machines": ("Machines by state.", ("state",)),
    "omega_machines_overdue": (
        "Machines with tasks that a scheduler should have ended: down or gone, or with a notice"
        " that is over.",
        ("cause",),
    ),
    "omega_machines_on_notice": ("Machines used above their capacity for some more time.", ()),
    "omega_capacity": ("What the machines have, in the unit of the kind.", ("kind",)),
    "omega_used": ("What of it is held by tasks.", ("kind",)),
    "omega_room": ("What is free on machines that take claims.", ("kind",)),
    "omega_tasks_running": ("Tasks that have a machine.", ()),
    "omega_jobs": ("Jobs by state.", ("state",)),
    "omega_quotas_used_up": ("Quotas of which nothing is left in some budget.", ()),
    "omega_queue_jobs": ("Jobs that wait, by kind of scheduler and state.", ("scheduler", "state")),
    "omega_queue_oldest_timestamp_seconds": (
        "When the oldest job that waits was submitted.",
        ("scheduler", "state"),
    ),
    "omega_queue_unplaced_tasks": ("Tasks without a place, of jobs that wait.", ("scheduler",)),
    "omega_queue_parked_jobs": (
        "Jobs that are parked, by kind of scheduler and reason.",
        ("scheduler", "reason"),
    ),
    "omega_queue_parked_oldest_timestamp_seconds": (
        "When the oldest job that is parked for this reason was submitted.",
        ("scheduler", "reason"),
    ),
    "omega_processes": ("Processes heard of lately: schedulers, agents, nodes.", ("kind",)),
    "omega_processes_silent": (
        "Processes heard of in the last hour, and not lately: they may have been killed.",
        ("kind",),
    ),
    "omega_schedulers": (
        "Schedulers heard of in the last hour, by state: running, deciding for long, silent.",
        ("scheduler", "state"),
    ),
    "omega_schedulers_left_out": ("Schedulers that are too many for series of their own.", ()),
    "omega_view_age_seconds": (
        "How old the scheduler's view gets before it is brought up to date, at the median.",
        ("scheduler", "replica"),
    ),
    "omega_view_unread_seconds": (
        "How long ago the scheduler brought its view up to date.",
        ("scheduler", "replica"),
    ),
    "omega_busyness": (
        "Share of the last seconds that the scheduler spent deciding and committing.",
        ("scheduler", "replica"),
    ),
    "omega_cell_transactions": ("Transactions that the database judged.", ("scheduler",)),
    "omega_cell_transactions_conflicted": (
        "Those with a claim refused for more than a quota.",
        ("scheduler",),
    ),
    "omega_cell_claims": ("Claims that the database judged.", ("scheduler", "verdict")),
    "omega_cell_reads_incomplete": (
        "Times that there were more transactions than one read returns: some were not counted.",
        (),
    ),
    "omega_page_streams": ("Browsers that are told of changes now.", ()),
}
"""Every metric of the cell, without the suffix of counters: what it says, and its labels."""
COUNTERS: Final = frozenset(name for name in METRICS if name.startswith("omega_cell_"))
KINDS_MAX: Final = 100
"""Kinds of scheduler in the queue that have series of their own: users may name any."""
MS_PER_S: Final = 1_000
SCHEDULER: Final = "scheduler"

Samples = dict[str, dict[tuple[str, ...], float]]


@dataclass(frozen=True)
class Exported:
    """What is exported: one moment of a cell, or the last one known."""

    is_up: bool
    """Whether the database answered the last look."""
    report: CellReport | None = None
    queue: Sequence[QueueLine] = ()
    room: Mapping[str, int] = field(default_factory=dict)
    judged: JudgedCounts = NOTHING_JUDGED
    counted: Counted = NOTHING_COUNTED
    streams: int = 0


class CellCollector(Collector):
    """Turns what was read of a cell into metric families."""

    def __init__(self, exported: Exported) -> None:
        self._exported = exported

    def collect(self) -> Iterator[Metric]:
        """Yield every metric of METRICS, also those of which there is no sample yet."""
        exported = self._exported
        samples: Samples = {name: {} for name in METRICS}
        samples["omega_up"][()] = exported.is_up
        samples["omega_page_streams"][()] = exported.streams
        samples["omega_schedulers_left_out"][()] = exported.counted.left_out
        if exported.report is not None:
            _add_machines(exported.report, samples)
            _add_processes(exported.report.reports, samples)
            _add_views(exported.report.reports, exported.counted, samples)
            samples["omega_room"] |= {(kind,): free for kind, free in exported.room.items()}
        _add_queue(exported.queue, samples)
        _add_judged(exported.judged, samples)
        for name, (about, labels) in METRICS.items():
            made = CounterMetricFamily if name in COUNTERS else GaugeMetricFamily
            family = made(name, about, labels=labels)
            for values, number in samples[name].items():
                family.add_metric(values, number)
            yield family


def scheduler_collector(counted: Counted) -> Collector:
    """Return the collector of what each scheduler counts of itself."""
    return OmegaCollector(counted.reported)


def _add_machines(report: CellReport, samples: Samples) -> None:
    use = report.use
    for state in MachineState:
        samples["omega_machines"][state_name(state),] = use.machines_by_state.get(state, 0)
    notices = notices_summary(report.notices)
    samples["omega_machines_on_notice"][()] = notices["running"] or 0
    samples["omega_machines_overdue"]["down",] = use.stranded
    samples["omega_machines_overdue"]["notice",] = notices["over"] or 0
    for kind in Kind:
        samples["omega_capacity"][kind.column,] = use.capacity[kind.column]
        samples["omega_used"][kind.column,] = use.used[kind.column]
    samples["omega_tasks_running"][()] = use.live_allocations
    for job_state, jobs in use.jobs_by_state.items():
        samples["omega_jobs"][job_state.value,] = jobs
    samples["omega_quotas_used_up"][()] = len(list(used_up(report.quotas)))


def _add_processes(reports: Sequence[ProcessReport], samples: Samples) -> None:
    listed = [it for it in reports if is_listed(it)]
    alive = Counter(_kind_of(it) for it in listed if is_alive(it))
    silent = Counter(_kind_of(it) for it in listed if not is_alive(it))
    for kind in (SCHEDULER, NODES, AGENT):
        samples["omega_processes"][kind,] = alive[kind]
        samples["omega_processes_silent"][kind,] = silent[kind]
    schedulers = [it for it in listed if it.kind not in NOT_SCHEDULERS]
    named = _bounded(Counter(it.kind for it in schedulers))
    states = Counter((named[it.kind], state_of(it)) for it in schedulers)
    for name in set(named.values()):
        for state in (ProcessState.RUNNING, ProcessState.DECIDING, ProcessState.SILENT):
            samples["omega_schedulers"][name, state.value] = states[name, state]


def _add_views(reports: Iterable[ProcessReport], counted: Counted, samples: Samples) -> None:
    exported = {(it.kind, it.replica) for it in counted.replicas}
    for it in reports:
        if (it.kind, it.replica) not in exported or not is_alive(it):
            continue
        measures, unread_ms = merge(it.facts)["measures"], view_age_ms(it)
        for name, measure in (
            ("omega_view_age_seconds", measures["view_age_p50_s"]),
            ("omega_view_unread_seconds", None if unread_ms is None else unread_ms / MS_PER_S),
            ("omega_busyness", measures["busy_now"]),
        ):
            if measure is not None:
                samples[name][it.kind, it.replica] = measure


def _add_queue(queue: Sequence[QueueLine], samples: Samples) -> None:
    jobs: Counter[str] = Counter()
    for line in queue:
        jobs[line.scheduler] += line.jobs
    named = _bounded(jobs)
    for line in queue:
        kind = named[line.scheduler]
        _add(samples["omega_queue_unplaced_tasks"], (kind,), line.unplaced)
        waits_for = [("omega_queue", line.state.value)]
        if line.park_reason is not None:
            waits_for.append(("omega_queue_parked", line.park_reason.value))
        for name, label in waits_for:
            _add(samples[f"{name}_jobs"], (kind, label), line.jobs)
            oldest = samples[f"{name}_oldest_timestamp_seconds"]
            since_s = line.oldest_ms / MS_PER_S
            oldest[kind, label] = min(since_s, oldest.get((kind, label), since_s))


def _add_judged(judged: JudgedCounts, samples: Samples) -> None:
    for name, counted in (
        ("omega_cell_transactions", judged.transactions),
        ("omega_cell_transactions_conflicted", judged.conflicted),
    ):
        samples[name] |= {(kind,): number for kind, number in counted.items()}
    for key, claims in judged.claims.items():
        samples["omega_cell_claims"][key] = claims
    samples["omega_cell_reads_incomplete"][()] = judged.missed


def _bounded(weights: Mapping[str, int]) -> dict[str, str]:
    """Return the name under which each kind is exported: its own, or OTHERS for the smallest."""
    kinds = sorted(weights, key=lambda kind: (-weights[kind], kind))
    return {kind: kind if at < KINDS_MAX else OTHERS for at, kind in enumerate(kinds)}


def _add(samples: dict[tuple[str, ...], float], labels: tuple[str, ...], number: float) -> None:
    samples[labels] = samples.get(labels, 0) + number


def _kind_of(report: ProcessReport) -> str:
    return report.kind if report.kind in (NODES, AGENT) else SCHEDULER
