"""How fast the simulator is: simulated tasks and events per second, alone and on all processors.

Every architecture simulates the same jobs, drawn by the laws of the list W1 for a cell and a time
of any size: with compiled loops, without them and, on request, with the code of an earlier
revision. Runs take turns, each in a separate process; then as many run at once as there are
processors, each with its own seed, as in a sweep. Times are processor times.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Final
from zlib import crc32

import numpy as np
import typer
from rich.table import Table

from benchmarks.environment import ROOT, revision_of
from benchmarks.harness import Findings, Stage, conduct
from benchmarks.options import DataDir, JsonTo, PlotTo, Seed, Smoke
from benchmarks.rules import interpreter_of
from benchmarks.sim_processes import Answer, answers
from omega.errors import InvariantBroken, SettingsError
from omega.framework.registry import find_scheduler
from omega.framework.scheduler import DecisionTime, Scheduler
from omega.plots.picture import Picture, bars
from omega.sim.cell import compiler_is_installed
from omega.sim.experiment import Architecture, Experiment
from omega.sim.results import NO_EVICTIONS, Result
from omega.terminal.options import number_option
from omega.terminal.progress import progress_bar
from omega.workload.arrivals import BATCH, SERVICE, Workload
from omega.workload.synthetic import W1, JobClass, two_class_workload

BEFORE, NUMPY, COMPILED = "before", "numpy", "compiled"
S_AN_HOUR: Final = 3_600
EVENTS_A_TASK: Final = 2
"""A task is placed and it ends."""
SHARE_OF_BATCH: Final = 0.95
"""Share of the tasks that are batch tasks, as in W1."""
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
"""(architecture, number of batch schedulers) of each design, by name."""
HEADLINE: Final = ("shared-state", "two-level")
PUBLISHED_PER_S: Final = 1_000_000
"""Task events per second and core: the order of magnitude of the Omega paper's open simulator."""


@dataclass(frozen=True)
class Size:
    """The size of a simulation, the same for all architectures."""

    machines: int
    hours: float
    tasks: int
    tasks_a_job: int


Key = tuple[str, str, int]
"""(design, code, number of runs at once)."""


@dataclass(frozen=True)
class Run:
    """The time and the result of one simulation."""

    took_s: float
    result: Result

    @property
    def attempts(self) -> int:
        """The number of attempts that were begun."""
        return sum(int(row["attempts_started"]) for row in self.result.schedulers)

    @property
    def checksum(self) -> int:
        """A checksum of the result, to the last digit.

        Nobody is evicted in these designs; earlier revisions have no measures of evictions.
        """
        workloads = {
            name: {measure: its[measure] for measure in its if measure not in NO_EVICTIONS}
            for name, its in self.result.workloads.items()
        }
        return crc32(repr((workloads, self.result.utilisation)).encode())


@dataclass(frozen=True, kw_only=True)
class SimSpeed:
    """The parameters of the benchmark."""

    machines: int = 12_500
    hours: float = 20.0
    tasks: int = 1_200_000
    tasks_a_job: int = 100
    runs: int = 3
    processes: int = 0
    seed: int = 0
    before: str | None = None
    """The revision of the other checkout, if there is one."""
    other: Path | None = field(default=None, repr=False)
    """The folder of the other checkout."""

    @property
    def size(self) -> Size:
        """The size of each simulation."""
        return Size(self.machines, self.hours, self.tasks, self.tasks_a_job)

    def measure(self, stage: Stage) -> Findings:
        """Simulate every design in turns, alone and on all processors at once."""
        together = self.processes or len(os.sched_getaffinity(0))
        sides = [(code, number) for number in dict.fromkeys((1, together)) for code in self._codes]
        found: dict[Key, list[list[Answer]]] = {}
        with progress_bar(stage.output.console) as progress:
            bar = progress.add_task("", total=self.runs * len(sides) * len(DESIGNS))
            for _ in range(self.runs):
                for design in DESIGNS:
                    for code, number in sides:
                        progress.update(bar, description=f"{design}, {code}, {number} at once")
                        runs = self._run(stage, design, code, number)
                        found.setdefault((design, code, number), []).append(runs)
                        progress.advance(bar)
        rows = [_row(self.size, key, rounds) for key, rounds in found.items()]
        checksums = {name: _one_checksum(name, found) for name in DESIGNS}
        alone = {(row["design"], row["code"]): row for row in rows if row["processes"] == 1}
        summary = {
            "task_events_per_s": {
                code: {name: alone[name, code]["task_events_per_s"] for name in DESIGNS}
                for code in self._codes
            },
            "per_core_over_alone": {
                f"{row['design']}, {row['code']}": round(
                    alone[row["design"], row["code"]]["cpu_s"] / row["cpu_s"], 3
                )
                for row in rows
                if row["processes"] == together
            },
            "times_as_fast": {
                f"{code} over {slower}": {
                    name: round(alone[name, slower]["cpu_s"] / alone[name, code]["cpu_s"], 2)
                    for name in DESIGNS
                }
                for slower, code in ((BEFORE, NUMPY), (BEFORE, COMPILED), (NUMPY, COMPILED))
                if slower in self._codes
            },
        }
        digest = {f"{name}, crc32": checksum for name, checksum in checksums.items()}
        digest["tasks placed"] = sum(alone[name, NUMPY]["tasks_placed"] for name in DESIGNS)
        return Findings(_finding(self.size, alone), rows, summary, digest)

    @property
    def _codes(self) -> tuple[str, ...]:
        return (NUMPY, COMPILED) if self.other is None else (BEFORE, NUMPY, COMPILED)

    def _run(self, stage: Stage, design: str, code: str, number: int) -> list[Answer]:
        python, root = Path(sys.executable), ROOT
        if code == BEFORE and self.other is not None:
            python, root = interpreter_of(self.other), self.other.absolute()
        orders = [
            {
                "size": asdict(self.size),
                "design": design,
                "seed": self.seed + nth,
                "compiled": code == COMPILED,
            }
            for nth in range(number)
        ]
        return answers(stage, python, root, orders)

    def show(self, findings: Findings) -> Table:
        """Return one line per design, code and number of runs at once."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        for header in ("design", "code"):
            table.add_column(header, no_wrap=True)
        for header in HEADERS:
            table.add_column(header, justify="right")
        for row in findings.rows:
            figures = (f"{row[key]:,}" for key in HEADERS.values())
            table.add_row(row["design"], row["code"], *figures)
        return table

    def draw(self, findings: Findings) -> Picture:
        """Return task events per second and the time of an attempt, by design, of runs alone."""
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
            bars(panel, list(DESIGNS), _by_code(findings.rows, key))
            panel.set_xlabel(label)
        left.axvline(PUBLISHED_PER_S, color="#6b7280", linestyle="--", label="JVM simulator, about")
        return picture


HEADERS: Final = {
    "at once": "processes",
    "task events/s": "task_events_per_s",
    "events/s": "events_per_s",
    "us/attempt": "us_an_attempt",
    "cpu s": "cpu_s",
    "x real": "times_real_time",
}
"""The columns that are shown, by header."""


def experiment_of(size: Size, design: str, seed: int) -> Experiment:
    """Return the experiment of a design."""
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
    """Return the class of jobs with so many tasks before the horizon, on average."""
    tasks_rounded_up = 1 / -np.expm1(-1 / jobs.tasks_mean)
    return replace(jobs, gap_mean_s=float(horizon_s * tasks_rounded_up / tasks))


def _one_job_at_a_time(_workload: str) -> Scheduler:
    scheduler = find_scheduler(BATCH)()
    scheduler.jobs_per_transaction = 1
    return scheduler


def _one_checksum(design: str, found: Mapping[Key, Sequence[Sequence[Answer]]]) -> int:
    """Return the checksum of a design's results; raise InvariantBroken if code changes them."""
    checksums: dict[int, set[int]] = {}
    for (name, _, _), rounds in found.items():
        for together in rounds if name == design else ():
            for nth, run in enumerate(together):
                checksums.setdefault(nth, set()).add(run["checksum"])
    if any(len(its) > 1 for its in checksums.values()):
        raise InvariantBroken(f"{design} has other results by other code")
    return int(checksums[0].pop())


def _row(size: Size, key: Key, rounds: Sequence[Sequence[Answer]]) -> dict[str, Any]:
    """Return the row of a key: rates are of one process, medians over all its runs."""
    design, code, processes = key
    runs = [run for together in rounds for run in together]
    cpu_s = [run["cpu_s"] for run in runs]
    told = ("jobs", "tasks_placed", "attempts", "events", "conflicts")
    return {
        "design": design,
        "code": code,
        "processes": processes,
        **{name: runs[0][name] for name in told},
        "cpu_s": round(median(cpu_s), 3),
        "cpu_least_s": round(min(cpu_s), 3),
        "tasks_per_s": _rate(runs, "tasks_placed"),
        "task_events_per_s": EVENTS_A_TASK * _rate(runs, "tasks_placed"),
        "events_per_s": _rate(runs, "events"),
        "us_an_attempt": round(median(run["cpu_s"] * 1e6 / run["attempts"] for run in runs), 1),
        "times_real_time": round(size.hours * S_AN_HOUR / median(cpu_s)),
        "samples": len(runs),
    }


def _rate(runs: Sequence[Answer], of: str) -> int:
    return round(median([float(run[of] / run["cpu_s"]) for run in runs]))


def _finding(size: Size, alone: Mapping[tuple[str, str], Mapping[str, Any]]) -> str:
    told = "; ".join(
        f"{name} {alone[name, COMPILED]['cpu_s']:,.1f} s compiled,"
        f" {alone[name, NUMPY]['cpu_s']:,.1f} s not"
        for name in HEADLINE
    )
    return (
        f"{size.hours:g} hours of {size.machines:,} machines and {size.tasks:,} tasks,"
        f" simulated on one core: {told}"
    )


def _by_code(rows: Sequence[Mapping[str, Any]], key: str) -> dict[str, list[float]]:
    """Return a figure of the runs alone, by code: one value per design."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if row["processes"] == 1:
            found.setdefault(row["code"], []).append(row[key])
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
    before: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A checkout of an earlier revision, set up."),
    ] = None,
    seed: Seed = 0,
    smoke: Smoke = False,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
    data_dir: DataDir = None,
) -> None:
    """How fast the simulator is, by architecture: alone, and one run a processor.

    Needs omega-scheduler\\[fast]. Takes ten minutes, with --before fifteen.
    """
    benchmark = SimSpeed(
        machines=machines,
        hours=hours,
        tasks=tasks,
        tasks_a_job=tasks_a_job,
        runs=runs,
        processes=processes,
        seed=seed,
        before=None if before is None else revision_of(before),
        other=before,
    )
    if before is not None:
        interpreter_of(before)
    if not compiler_is_installed():
        raise SettingsError(["sim_speed needs omega-scheduler[fast] to be installed"])
    if smoke:
        benchmark = replace(
            benchmark, machines=50, hours=0.1, tasks=200, tasks_a_job=5, runs=1, processes=2
        )
    conduct(benchmark, json_to=json_to, plot_to=plot_to, data_dir=data_dir)
