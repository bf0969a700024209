"""Preemptions an hour on the cell of 2011, simulated and recorded, by band of priority.

The live schedulers run the trace's window in virtual time, with preemption and the trace's own
priorities. A simulated cell never promises more than its machines have, and the recorded one did.
So the machines are also given more CPU and memory than they have, in steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from math import inf, log
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import typer
from rich.table import Table

from benchmarks.harness import Findings, Stage, conduct
from benchmarks.options import DataDir, JsonTo, PlotTo, Smoke, words
from benchmarks.paper.figure import Seeds, Workers, run_all
from benchmarks.paper.setting import T_JOB_S, T_TASK_S
from benchmarks.trace_evictions import BANDS, S_PER_H, TraceEvictions, count_evictions
from omega.errors import BadInput, InvariantBroken
from omega.events import Event, TransactionJudged
from omega.framework.registry import find_scheduler
from omega.framework.scheduler import DecisionTime
from omega.metrics.evictions import EvictionFold
from omega.model.jobs import PRECEDENCE_GAP
from omega.plots.picture import Picture, bars, series
from omega.sim.experiment import Architecture, Experiment
from omega.sim.live_run import LiveRun, SyncConfig
from omega.sim.sweep import Figures, Trial, mean_and_deviation
from omega.workload.arrivals import BATCH, SERVICE, Workload
from omega.workload.sources import read_trace
from omega.workload.traces.google_2011 import GOOGLE_2011

TRACE: Final = "google-2011"
HOURS: Final = 1.39
"""Length of the trace's window."""
HOURS_MAX: Final = 168.0
SMOKE_HOURS: Final = 0.05
KNOWN: Final = GOOGLE_2011.options["capacity"]
CAPACITIES: Final = KNOWN[:3]
"""Percent of their recorded CPU and memory that machines have."""
SCALED, DROPPED = "scale", "drop"
GAP: Final = PRECEDENCE_GAP
WIDER: Final = 20
"""A gap at which a priority evicts only those that are two lower: 1 does not evict 0."""
PRECEDENCE_OF_OTHER, PRECEDENCE_OF_PRODUCTION = 20, 90
"""The lowest precedences of the upper two bands (decision 0039)."""


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One way to simulate the window."""

    capacity: str = CAPACITIES[0]
    overcommit: str = SCALED
    """What becomes of start tasks for which the machines are too small: dropped, or scaled down."""
    gap: int = GAP
    requeue: bool = True
    """Whether evicted tasks of the start state queue again."""


@dataclass(frozen=True)
class Run:
    """One simulation."""

    arm: Arm
    hours: float
    seed: int
    trace: Path


@dataclass(frozen=True, kw_only=True)
class TracePreemptions:
    """The parameters of the benchmark."""

    hours: float = HOURS
    seeds: int = 3
    capacities: tuple[str, ...] = CAPACITIES
    workers: int = 0
    trace: Path | None = field(default=None, repr=False)
    """The folder of the trace google-2011."""

    def measure(self, stage: Stage) -> Findings:
        """Count what the trace records, and simulate every arm with every seed."""
        if self.trace is None:
            raise BadInput(f"name the folder of the trace {TRACE}", field="--trace")
        recorded = count_evictions(self.trace, self.hours)
        arms = self.arms()
        trials = [
            Trial(number, seed, Run(arm, self.hours, seed, self.trace))
            for number, arm in enumerate(arms)
            for seed in range(self.seeds)
        ]
        found: dict[int, dict[int, Figures]] = {number: {} for number in range(len(arms))}
        for trial, figures in run_all(stage, simulate, trials, workers=self.workers):
            found[trial.point][trial.seed] = figures
        rows = []
        for arm, runs in zip(arms, found.values(), strict=True):
            means, deviations = mean_and_deviation([runs[seed] for seed in sorted(runs)])
            rows.append({**asdict(arm), **means, "deviation": deviations})
        summary = self._summary(rows, recorded)
        done = [figures for runs in found.values() for figures in runs.values()]
        digest = {
            "runs": len(done),
            "tasks evicted": sum(one["evicted"] for one in done),
            "claims granted": sum(one["granted"] for one in done),
        }
        return Findings(_finding(summary), rows, summary, digest)

    def arms(self) -> list[Arm]:
        """Return the arms: each capacity; then the first one with one thing changed at a time."""
        first = Arm(capacity=self.capacities[0])
        return [
            *(Arm(capacity=capacity) for capacity in self.capacities),
            replace(first, overcommit=DROPPED),
            replace(first, gap=WIDER),
            replace(first, requeue=False),
        ]

    def _summary(
        self, rows: Sequence[Mapping[str, Any]], recorded: TraceEvictions
    ) -> dict[str, Any]:
        an_hour = {band: n / self.hours for band, n in recorded.by_band.items()}
        total = recorded.total / self.hours
        nearest = min(rows[: len(self.capacities)], key=lambda row: _apart(row["per_hour"], total))
        return {
            "recorded": {
                "evictions": recorded.total,
                "per_hour": total,
                "by_band": an_hour,
                "by_evictor": _matrix(recorded.by_evictor, self.hours),
                "same_band": recorded.same_band,
                "with_machine": recorded.with_machine,
                "with_higher_priority": sum(recorded.by_evictor.values()),
                "per_hundred_scheduled": 100 * recorded.total / max(1, recorded.scheduled),
            },
            "nearest": {
                "capacity": nearest["capacity"],
                "per_hour": nearest["per_hour"],
                "deviation": nearest["deviation"]["per_hour"],
            },
            "times_recorded": {
                row["capacity"]: row["per_hour"] / total if total else None
                for row in rows[: len(self.capacities)]
            },
        }

    def show(self, findings: Findings) -> Table:
        """Return evictions an hour by band, the trace's in the last line."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        for header in ("%", "start", "gap", "evicted"):
            table.add_column(header, no_wrap=True)
        for header in ("an hour", "sd", *BANDS, "of 100", "CPU"):
            table.add_column(header, justify="right", no_wrap=True)
        for row in findings.rows:
            spread = row["deviation"]["per_hour"]
            total = f"{row['per_hour']:,.0f}", "" if spread is None else f"{spread:,.0f}"
            bands = (f"{row['by_band'][band]:,.0f}" for band in BANDS)
            table.add_row(
                *(row["capacity"], row["overcommit"], str(row["gap"])),
                "queue" if row["requeue"] else "go",
                *(*total, *bands, f"{row['per_hundred_granted']:.1f}"),
                f"{row['utilisation']:.1%}",
            )
        told = findings.summary["recorded"]
        table.add_row(
            *("trace", "", "", "", f"{told['per_hour']:,.0f}", ""),
            *(f"{told['by_band'][band]:,.0f}" for band in BANDS),
            *(f"{told['per_hundred_scheduled']:.1f}", ""),
        )
        return table

    def draw(self, findings: Findings) -> Picture:
        """Return evictions an hour by capacity, and who lost tasks to whom where it is nearest."""
        summary = findings.summary
        picture = Picture(
            findings.finding,
            columns=2,
            note=f"the window of {TRACE}, {self.hours:g} hours; means of {self.seeds} seeds",
        )
        left, right = picture.panels[0]
        rows = findings.rows[: len(self.capacities)]
        points = [(float(row["capacity"]), row["per_hour"]) for row in rows]
        series(left, 0, points, "simulated")
        recorded = summary["recorded"]
        level = [(at, recorded["per_hour"]) for at in (points[0][0], points[-1][0])]
        series(left, 1, level, "the trace", stroke="--")
        left.set_xlabel("CPU and memory of machines, % of recorded")
        left.set_ylabel("evictions an hour")
        left.set_ylim(bottom=0)
        (near,) = (row for row in rows if row["capacity"] == summary["nearest"]["capacity"])
        pairs = [(loser, evictor) for loser in BANDS for evictor in BANDS[BANDS.index(loser) :]]
        lengths = {
            "simulated": [near["by_evictor"][loser][evictor] for loser, evictor in pairs],
            "the trace": [recorded["by_evictor"][loser][evictor] for loser, evictor in pairs],
        }
        bars(right, [f"{loser} by {evictor}" for loser, evictor in pairs], lengths)
        right.set_xlabel(f"evictions an hour at {near['capacity']} %")
        return picture


def simulate(run: Run) -> dict[str, Any]:
    """Simulate; return evictions an hour by band, and what may explain them."""
    live: LiveRun
    granted = 0

    def sink(event: Event) -> None:
        nonlocal granted
        by_band(event)
        if isinstance(event, TransactionJudged):
            granted += event.accepted

    def band_of_job(job: int) -> str:
        status = live.cell.store.job(job)
        assert status is not None
        at = np.searchsorted(
            (PRECEDENCE_OF_OTHER, PRECEDENCE_OF_PRODUCTION), status.precedence, side="right"
        )
        return BANDS[int(at)]

    live = LiveRun(_experiment(run), SyncConfig(), sink=sink)
    by_band = EvictionFold(live.cell.clock, band_of_job, live.is_whole)
    result = live.finish()
    pairs = {
        (loser, evictor): by_band.tasks(loser, evictor) for loser in BANDS for evictor in BANDS
    }
    evicted = sum(pairs.values())
    if evicted != result.tasks_evicted + result.start_tasks_evicted:
        raise InvariantBroken("evictions by band and by workload differ")
    workloads = result.workloads.values()
    return {
        "evicted": evicted,
        "granted": granted,
        "per_hour": evicted / run.hours,
        "per_hundred_granted": 100 * evicted / max(1, granted),
        "by_band": {band: by_band.tasks(band) / run.hours for band in BANDS},
        "by_evictor": _matrix(pairs, run.hours),
        "lost_per_hour": (result.tasks_lost + result.start_tasks_lost) / run.hours,
        "utilisation": result.utilisation,
        "start_whole_again_mean_s": result.start["whole_again_mean_s"],
        "start_whole_again_p90_s": result.start["whole_again_p90_s"],
        "not_whole_again": result.start["jobs_not_whole_again"]
        + sum(one["jobs_not_whole_again"] for one in workloads),
        "jobs_unfinished": sum(one["jobs_unfinished"] for one in workloads),
        "conflict_fraction": {
            name: result.workloads[name]["conflict_fraction"]
            for name in (BATCH, SERVICE)
            if name in result.workloads
        },
    }


def _experiment(run: Run) -> Experiment:
    """Return the experiment; `batch` preempts as `service` does, as every priority did in 2011."""
    arm = run.arm
    workload = recorded_workload(run.trace, arm.overcommit, arm.capacity)
    kinds = sorted({arrival.spec.scheduler for arrival in workload.arrivals})
    settings = {BATCH: {"preempts": "true"}}
    return Experiment(
        workload=workload,
        architecture=Architecture.SHARED_STATE,
        scheduler=lambda kind: find_scheduler(kind).configured(settings.get(kind, {})),
        decision_times=dict.fromkeys(kinds, DecisionTime(job_s=T_JOB_S, task_s=T_TASK_S)),
        precedence_gap=arm.gap,
        start_queues_again=arm.requeue,
        horizon_s=run.hours * S_PER_H,
        seed=run.seed,
    )


@lru_cache(maxsize=1)
def recorded_workload(folder: Path, overcommit: str, capacity: str) -> Workload:
    """Read the window as its users submitted it, without tasks that were pending or came back."""
    options = {"overcommit": overcommit, "capacity": capacity}
    as_submitted = {"pending": "leave", "returning": "leave"}
    return read_trace(folder, np.random.default_rng(0), {**as_submitted, **options})


def _matrix(pairs: Mapping[tuple[str, str], int], hours: float) -> dict[str, dict[str, float]]:
    """Return the numbers an hour, by who lost tasks and by who won."""
    return {
        loser: {evictor: pairs.get((loser, evictor), 0) / hours for evictor in BANDS}
        for loser in BANDS
    }


def _apart(one: float, other: float) -> float:
    return abs(log(one / other)) if one > 0 and other > 0 else inf


def _finding(summary: Mapping[str, Any]) -> str:
    times = {at: told for at, told in summary["times_recorded"].items() if told is not None}
    recorded, nearest = summary["recorded"]["per_hour"], summary["nearest"]
    first = next(iter(times), None)
    beside = "" if first is None else f", {times[first]:.1f} times as many at {first} %"
    return (
        f"The trace has {recorded:,.0f} evictions an hour; simulated are"
        f" {nearest['per_hour']:,.0f} where machines promise {nearest['capacity']} % of what they"
        f" have{beside}"
    )


def command(
    trace: Annotated[
        Path | None, typer.Option(metavar="DIR", help=f"The folder of the trace {TRACE}.")
    ] = None,
    capacities: Annotated[
        str, typer.Option(metavar="N,...", help="Percent of recorded CPU and memory to give.")
    ] = ",".join(CAPACITIES),
    seeds: Seeds = 3,
    workers: Workers = 0,
    smoke: Smoke = False,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
    data_dir: DataDir = None,
) -> None:
    """Preemptions an hour on the cell of 2011 with its own priorities, beside those recorded.

    Needs the folder of the trace google-2011 (--trace). Takes half an hour.
    """
    benchmark = TracePreemptions(
        seeds=seeds,
        capacities=words(capacities, option="--capacities", known=KNOWN),
        workers=workers,
        trace=trace,
    )
    if smoke:
        benchmark = replace(
            benchmark, hours=SMOKE_HOURS, seeds=2, capacities=("100", "200"), workers=1
        )
    conduct(benchmark, json_to=json_to, plot_to=plot_to, data_dir=data_dir)
