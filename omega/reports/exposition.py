"""The cell as metrics for Prometheus.

Goal     Let operators watch a cell, and be called when something is wrong, by what they have.
Promise  METRICS has the name of every metric. Values are those of the reports that the command line
         prints. Counters of claims and transactions never fall while the exporter runs. Schedulers
         that have not been heard of lately are left out, so that series do not pile up.
Source   prometheus-client's custom collectors; Prometheus' rules for naming.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from omega.metrics.facts import merge
from omega.metrics.prometheus import OmegaCollector, Reported
from omega.model.resources import Kind
from omega.reports.cell import CellReport
from omega.reports.conflicts import ConflictTally
from omega.reports.machines import state_name
from omega.reports.processes import AGENT, NODES, NOT_SCHEDULERS, is_alive
from omega.store.status import ProcessReport
from omega.store.watching import QueueLine

METRICS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "omega_up": ("Whether the database answered the last look.", ()),
    "omega_machines": ("Machines by state.", ("state",)),
    "omega_capacity": ("What the machines have, in the unit of the kind.", ("kind",)),
    "omega_used": ("What of it is held by tasks.", ("kind",)),
    "omega_tasks_running": ("Tasks that have a machine.", ()),
    "omega_jobs": ("Jobs by state.", ("state",)),
    "omega_queue_jobs": ("Jobs that wait, by kind of scheduler and state.", ("scheduler", "state")),
    "omega_queue_parked_jobs": (
        "Jobs that are parked, by kind of scheduler and reason.",
        ("scheduler", "reason"),
    ),
    "omega_processes": ("Processes heard of lately: schedulers, agents, nodes.", ("kind",)),
    "omega_view_age_seconds": (
        "How long ago the scheduler brought its view up to date, at the median.",
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
    "omega_page_streams": ("Browsers that are told of changes now.", ()),
}
"""Every metric of the cell, without the suffix of counters: what it says, and its labels."""
COUNTERS: Final = frozenset(name for name in METRICS if name.startswith("omega_cell_"))


class CellCollector(Collector):
    """Turns what was read of a cell into metric families."""

    def __init__(
        self,
        report: CellReport | None,
        queue: Sequence[QueueLine],
        tally: ConflictTally,
        *,
        is_up: bool,
        streams: int,
    ) -> None:
        self._report = report
        self._queue = queue
        self._tally = tally
        self._is_up = is_up
        self._streams = streams

    def collect(self) -> Iterator[Metric]:
        """Yield every metric of METRICS, also those of which there is no sample yet."""
        samples = {name: dict[tuple[str, ...], float]() for name in METRICS}
        samples["omega_up"][()] = self._is_up
        samples["omega_page_streams"][()] = self._streams
        if self._report is not None:
            self._add_cell(self._report, samples)
        self._add_queue(samples)
        self._add_judged(samples)
        for name, (about, labels) in METRICS.items():
            made = CounterMetricFamily if name in COUNTERS else GaugeMetricFamily
            family = made(name, about, labels=labels)
            for values, number in samples[name].items():
                family.add_metric(values, number)
            yield family

    def _add_cell(
        self, report: CellReport, samples: dict[str, dict[tuple[str, ...], float]]
    ) -> None:
        use = report.use
        for state, machines in use.machines_by_state.items():
            samples["omega_machines"][state_name(state),] = machines
        for kind in Kind:
            samples["omega_capacity"][kind.column,] = use.capacity[kind.column]
            samples["omega_used"][kind.column,] = use.used[kind.column]
        samples["omega_tasks_running"][()] = use.live_allocations
        for job_state, jobs in use.jobs_by_state.items():
            samples["omega_jobs"][job_state.value,] = jobs
        for it in filter(is_alive, report.reports):
            counted = samples["omega_processes"]
            kind_of = it.kind if it.kind in (NODES, AGENT) else "scheduler"
            counted[kind_of,] = counted.get((kind_of,), 0) + 1
        for kind_name, replica, facts in reported(report.reports):
            measures = facts["measures"]
            for name, measure in (
                ("omega_view_age_seconds", measures["view_age_p50_s"]),
                ("omega_busyness", measures["busy_now"]),
            ):
                if measure is not None:
                    samples[name][kind_name, replica] = measure

    def _add_queue(self, samples: dict[str, dict[tuple[str, ...], float]]) -> None:
        for line in self._queue:
            named = [("omega_queue_jobs", line.state.value)]
            if line.park_reason is not None:
                named.append(("omega_queue_parked_jobs", line.park_reason.value))
            for name, label in named:
                key = line.scheduler, label
                samples[name][key] = samples[name].get(key, 0) + line.jobs

    def _add_judged(self, samples: dict[str, dict[tuple[str, ...], float]]) -> None:
        for name, counted in (
            ("omega_cell_transactions", self._tally.transactions),
            ("omega_cell_transactions_conflicted", self._tally.conflicted),
        ):
            for scheduler in self._tally.transactions:
                samples[name][scheduler,] = counted[scheduler]
        for key, claims in self._tally.claims().items():
            samples["omega_cell_claims"][key] = claims


def reported(reports: Sequence[ProcessReport]) -> list[Reported]:
    """Return what schedulers have reported lately, in the form that OmegaCollector takes."""
    return [
        (it.kind, it.replica, merge(it.facts))
        for it in reports
        if it.kind not in NOT_SCHEDULERS and is_alive(it)
    ]


def scheduler_collector(reports: Sequence[ProcessReport]) -> Collector:
    """Return the collector of what each scheduler counts of itself."""
    return OmegaCollector(lambda: reported(reports))
