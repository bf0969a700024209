"""How fast the simulator is: simulated tasks and events a second, alone and one run a processor.

Every architecture simulates the same jobs, drawn by the laws of the list W1 for a cell and a time
of any size. Runs take turns, each in a process of its own that has nothing else to do; then as many
at once as there are processors, each with a seed of its own, as a sweep has them.
"""

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from multiprocessing import get_context
from statistics import median
from threading import Event
from typing import Annotated, Any, Final
from zlib import crc32

import numpy as np
import typer
from rich.table import Table

from benchmarks.harness import Findings, Stage, conduct
from benchmarks.options import DataDir, JsonTo, PlotTo, Seed, Smoke
from omega.cli.options import number_option
from omega.cli.pictures import Picture, bars
from omega.clock import RealClock
from omega.errors import InvariantBroken
from omega.framework.registry import find_scheduler
from omega.framework.scheduler import DecisionTime, Scheduler
from omega.sim.experiment import Architecture, Experiment
from omega.sim.results import Result
from omega.workload.arrivals import BATCH, SERVICE, Workload
from omega.workload.synthetic import W1, JobClass, two_class_workload

S_AN_HOUR: Final = 3_600
EVENTS_A_TASK: Final = 2
"""It is placed and it ends."""
SHARE_OF_BATCH: Final = 0.95
"""Of the tasks, as in W1."""
T_TASK_S: Final = 0.005
T_JOB_BATCH_S: Final = 0.1
T_JOB_SERVICE_S: Final = 1.0
MANY: Final = 8
DESIGNS: Final[Mapping[str, tuple[Architecture, int]]] = {
    "monolithic": (Architecture.MONOLITHIC, 1),
    "multi-path": (Architecture.MULTI_PATH, 1),
    "static-partition": (Architecture.STATIC_PARTITION, 1),
    "two-level": (Architecture.TWO_LEVEL, 1),
    "shared-state": (Architecture.SHARED_STATE, 1),
    f"shared-state-{MANY}": (Architecture.SHARED_STATE, MANY),
}
"""By name, the architecture and how many schedulers take batch jobs."""
SPOKEN_OF: Final = ("shared-state", "two-level")
PUBLISHED_PER_S: Final = 1_000_000
"""Task events a second on one core: the order of magnitude of the Omega paper's open simulator."""


@dataclass(frozen=True)
class Size:
    """What is simulated, whatever the architecture."""

    machines: int
    hours: float
    tasks: int
    tasks_a_job: int


@dataclass(frozen=True)
class Run:
    """What one simulation took, and what it did."""

    took_s: float
    result: Result

    @property
    def attempts(self) -> int:
        """Attempts that were begun."""
        return sum(int(row["attempts_started"]) for row in self.result.schedulers)

    @property
    def checksum(self) -> int:
        """Tells apart what came out, to the last digit."""
        return crc32(repr((self.result.workloads, self.result.utilisation)).encode())


@dataclass(frozen=True, kw_only=True)
class SimSpeed:
    """The parameters."""

    machines: int = 12_500
    hours: float = 20.0
    tasks: int = 1_200_000
    tasks_a_job: int = 100
    runs: int = 3
    processes: int = 0
    seed: int = 0

    def measure(self, stage: Stage) -> Findings:
        """Simulate every design in turns, alone and on all processors at once."""
        size = Size(self.machines, self.hours, self.tasks, self.tasks_a_job)
        together = self.processes or len(os.sched_getaffinity(0))
        found: dict[tuple[str, int], list[list[Run]]] = {}
        with stage.output.progress() as progress, _workers(together) as pool:
            bar = progress.add_task("", total=2 * self.runs * len(DESIGNS))
            for _ in range(self.runs):
                for number in dict.fromkeys((1, together)):
                    for design in DESIGNS:
                        progress.update(bar, description=f"{design}, {number} at once")
                        runs = [
                            pool.submit(simulate, size, design, self.seed + nth)
                            for nth in range(number)
                        ]
                        found.setdefault((design, number), []).append(_done(runs, stage))
                        progress.advance(bar)
        rows = [_row(size, design, number, rounds) for (design, number), rounds in found.items()]
        alone = {row["design"]: row for row in rows if row["processes"] == 1}
        summary = {
            "task_events_per_s": {name: row["task_events_per_s"] for name, row in alone.items()},
            "per_core_over_alone": {
                row["design"]: round(
                    row["task_events_per_s"] / alone[row["design"]]["task_events_per_s"], 3
                )
                for row in rows
                if row["processes"] == together
            },
        }
        digest = {f"{name}, crc32": found[name, 1][0][0].checksum for name in DESIGNS}
        digest["tasks placed"] = sum(row["tasks_placed"] for row in alone.values())
        return Findings(_finding(size, alone), rows, summary, digest)

    def show(self, findings: Findings) -> Table:
        """Return a line a design and number of runs at once."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("design", no_wrap=True)
        for header in HEADERS:
            table.add_column(header, justify="right")
        for row in findings.rows:
            table.add_row(row["design"], *(f"{row[key]:,}" for key in HEADERS.values()))
        return table

    def draw(self, findings: Findings) -> Picture:
        """Return task events a second of each design, alone and per core."""
        picture = Picture(
            findings.finding,
            columns=2,
            note=f"{self.machines:,} machines, {self.tasks:,} tasks in {self.hours:g} simulated"
            f" hours; a task is two events; medians of {self.runs}",
        )
        left, right = picture.panels[0]
        for panel, key, label in (
            (left, "task_events_per_s", "task events per second and core"),
            (right, "us_an_attempt", "microseconds an attempt"),
        ):
            bars(panel, list(DESIGNS), _by_processes(findings.rows, key))
            panel.set_xlabel(label)
        left.axvline(PUBLISHED_PER_S, color="#6b7280", linestyle="--", label="JVM simulator, about")
        return picture


HEADERS: Final = {
    "at once": "processes",
    "task events/s": "task_events_per_s",
    "events/s": "events_per_s",
    "us/attempt": "us_an_attempt",
    "wall s": "wall_s",
    "x real": "times_real_time",
}
"""What is shown of a row."""


@contextmanager
def _workers(processes: int) -> Iterator[ProcessPoolExecutor]:
    """Have processes that simulate; whoever interrupts us waits for those runs to end."""
    pool = ProcessPoolExecutor(processes, get_context("spawn"), _ignore_interrupts)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _done(runs: Sequence[Future[Run]], stage: Stage) -> list[Run]:
    done = [run.result() for run in runs]
    stage.go_on()
    for run in done:
        if not run.result.tasks_placed:
            raise InvariantBroken("a simulation placed nothing")
    return done


def simulate(size: Size, design: str, seed: int) -> Run:
    """Run one simulation; the time is that of the run alone, not of drawing the jobs."""
    experiment = experiment_of(size, design, seed)
    clock = RealClock(Event())
    began = clock.now()
    result = experiment.run()
    return Run(clock.now() - began, result)


def experiment_of(size: Size, design: str, seed: int) -> Experiment:
    """Return what is simulated."""
    architecture, batch_schedulers = DESIGNS[design]
    service = DecisionTime(job_s=T_JOB_SERVICE_S, task_s=T_TASK_S)
    batch = DecisionTime(job_s=T_JOB_BATCH_S, task_s=T_TASK_S)
    return Experiment(
        workload=_workload(size, seed),
        architecture=architecture,
        scheduler=_one_job_at_a_time,
        decision_times={
            SERVICE: service,
            BATCH: service if architecture is Architecture.MONOLITHIC else batch,
        },
        schedulers={BATCH: batch_schedulers},
        horizon_s=size.hours * S_AN_HOUR,
        seed=seed,
    )


@lru_cache(maxsize=1)
def _workload(size: Size, seed: int) -> Workload:
    horizon_s = size.hours * S_AN_HOUR
    batch = replace(W1.batch, tasks_mean=size.tasks_a_job)
    laws = replace(
        W1,
        machines=size.machines,
        batch=_arriving(batch, size.tasks * SHARE_OF_BATCH, horizon_s),
        service=_arriving(W1.service, size.tasks * (1 - SHARE_OF_BATCH), horizon_s),
        horizon_s=horizon_s,
    )
    return two_class_workload(laws, np.random.default_rng(seed))


def _arriving(jobs: JobClass, tasks: float, horizon_s: float) -> JobClass:
    """Have so many tasks arrive before the horizon, on average."""
    tasks_rounded_up = 1 / -np.expm1(-1 / jobs.tasks_mean)
    return replace(jobs, gap_mean_s=float(horizon_s * tasks_rounded_up / tasks))


def _one_job_at_a_time(_workload: str) -> Scheduler:
    scheduler = find_scheduler(BATCH)()
    scheduler.jobs_per_transaction = 1
    return scheduler


def _row(
    size: Size, design: str, processes: int, rounds: Sequence[Sequence[Run]]
) -> dict[str, Any]:
    """Sum up: rates are those of one process, the median over all its runs."""
    runs = [run for together in rounds for run in together]
    first = rounds[0][0]
    tasks = first.result.tasks_placed
    return {
        "design": design,
        "processes": processes,
        "jobs": sum(int(told["jobs"]) for told in first.result.workloads.values()),
        "tasks_placed": tasks,
        "attempts": first.attempts,
        "events": first.result.events,
        "conflicts": sum(int(row["transactions_conflicted"]) for row in first.result.schedulers),
        "wall_s": round(median(run.took_s for run in runs), 3),
        "wall_least_s": round(min(run.took_s for run in runs), 3),
        "tasks_per_s": _rate(runs, [run.result.tasks_placed for run in runs]),
        "task_events_per_s": _rate(runs, [EVENTS_A_TASK * run.result.tasks_placed for run in runs]),
        "events_per_s": _rate(runs, [run.result.events for run in runs]),
        "us_an_attempt": round(median(run.took_s * 1e6 / run.attempts for run in runs), 1),
        "times_real_time": round(size.hours * S_AN_HOUR / median(run.took_s for run in runs)),
        "samples": len(runs),
    }


def _rate(runs: Sequence[Run], counts: Sequence[int]) -> int:
    return round(median(count / run.took_s for count, run in zip(counts, runs, strict=True)))


def _finding(size: Size, alone: Mapping[str, Mapping[str, Any]]) -> str:
    told = " and ".join(
        f"{name} in {alone[name]['wall_s']:,.1f} s ({alone[name]['task_events_per_s']:,} task"
        " events a second)"
        for name in SPOKEN_OF
    )
    return (
        f"{size.hours:g} hours of {size.machines:,} machines and {size.tasks:,} tasks are"
        f" simulated on one core: {told}"
    )


def _by_processes(rows: Sequence[Mapping[str, Any]], key: str) -> dict[str, list[float]]:
    """Return the bars by what they are called: one a design."""
    found: dict[str, list[float]] = {}
    for row in rows:
        label = "alone" if row["processes"] == 1 else f"{row['processes']} at once"
        found.setdefault(label, []).append(row[key])
    return found


def command(  # noqa: PLR0913, PLR0917 - a parameter is an option
    machines: Annotated[int, typer.Option(min=4, max=1_000_000, metavar="N")] = 12_500,
    hours: Annotated[
        float,
        number_option(lowest=0.01, highest=1_000, metavar="H", help="Simulated."),
    ] = 20.0,
    tasks: Annotated[
        int, typer.Option(min=1, max=100_000_000, metavar="N", help="That arrive, about.")
    ] = 1_200_000,
    tasks_a_job: Annotated[
        int, typer.Option(min=1, max=10_000, metavar="N", help="Of a batch job, on average.")
    ] = 100,
    runs: Annotated[int, typer.Option(min=1, max=1_000, metavar="N", help="Of each design.")] = 3,
    processes: Annotated[
        int,
        typer.Option(min=0, max=1_024, metavar="N", help="At once; 0: one a processor."),
    ] = 0,
    seed: Seed = 0,
    smoke: Smoke = False,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
    data_dir: DataDir = None,
) -> None:
    """How fast the simulator is, by architecture: alone, and one run a processor.

    Takes five minutes.
    """
    benchmark = SimSpeed(
        machines=machines,
        hours=hours,
        tasks=tasks,
        tasks_a_job=tasks_a_job,
        runs=runs,
        processes=processes,
        seed=seed,
    )
    if smoke:
        benchmark = SimSpeed(
            machines=50, hours=0.1, tasks=200, tasks_a_job=5, runs=1, processes=2, seed=seed
        )
    conduct(benchmark, json_to=json_to, plot_to=plot_to, data_dir=data_dir)
