"""A figure of the paper as a benchmark: its simulations on all cores, its claims, its plot."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, TypeVar

import typer
from rich.console import Group, RenderableType

from benchmarks.harness import Findings, Stage, conduct
from benchmarks.options import DataDir, JsonTo, PlotTo, Smoke
from benchmarks.paper.claims import Claim, Row, table
from benchmarks.paper.setting import RECORDED, WEEK, WEEK_HOURS, Setting, simulate
from benchmarks.paper.shares import gate
from omega.errors import BadInput, InvariantBroken
from omega.plots.picture import Picture, Stroke, magnitudes, series
from omega.processes.workers import cores, processes
from omega.sim.sweep import Figures, Trial, mean_and_deviation, run_trials
from omega.terminal.options import number_option
from omega.terminal.progress import progress_bar

_Work = TypeVar("_Work")
SMOKE_HOURS: Final = 0.02
BESIDE: Final = ("seed", "trace")
"""Fields of a setting that are not in its row."""
AT_ONCE: Final = 16
"""Runs that are submitted at a time, so that no worker is idle."""
T_JOBS: Final = (0.01, 0.1, 1.0, 3.0, 10.0, 30.0, 100.0)
"""Decision times of the paper's axes, seconds."""
STROKES: Final[Mapping[str, Stroke]] = {"batch": "-", "service": "--"}
LABELS: Final = {
    "busy": "busyness",
    "wait_mean_s": "mean wait, s",
    "conflict_fraction": "conflict fraction",
    "think_started": "share of time thinking",
    "jobs_unfinished": "jobs left over",
    "t_job_service": "t_job of service jobs, s",
    "t_task_service": "t_task of service jobs, s",
    "t_job_batch": "t_job of batch jobs, s",
    "factor": "batch jobs come so much faster",
}


@dataclass(frozen=True, kw_only=True)
class Figure(ABC):
    """The parameters of a figure, and the methods that all figures share."""

    title: ClassVar[str]
    """The subject of the figure, in a few words."""
    x: tuple[float, ...] = T_JOBS
    """Values of the x-axis."""
    hours: float = 2.0
    """Simulated time of a run."""
    week_hours: float = WEEK_HOURS
    """The same of runs with the jobs of a week."""
    seeds: int = 5
    """Runs of each point; claims are judged by the means, and by each seed alone beside them."""
    workers: int = 0
    """Processes; the cores if 0."""
    trace: Path | None = field(default=None, repr=False)
    """The folder of the trace google-2011, for figures of the cell of 2011."""
    gated: bool = field(default=True, repr=False)
    """Whether figures 2 to 4 have to hold on the trace before it is used."""

    @abstractmethod
    def settings(self) -> list[Setting]:
        """Return the settings to simulate."""

    @abstractmethod
    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        """Return the paper's claims, judged by the rows."""

    @abstractmethod
    def paint(self, rows: Sequence[Row], title: str) -> Picture:
        """Draw the rows on the paper's axes."""

    def measure(self, stage: Stage) -> Findings:
        """Simulate all settings with all seeds, and judge the claims."""
        settings = [self._complete(setting) for setting in self.settings()]
        if self.gated and self.trace is not None:
            gate(self.trace)
        runs: dict[int, dict[int, Figures]] = {number: {} for number in range(len(settings))}
        trials = [
            Trial(number, seed, replace(setting, seed=seed))
            for number, setting in enumerate(settings)
            for seed in range(self.seeds)
        ]
        for trial, figures in run_all(stage, simulate, trials, workers=self.workers):
            runs[trial.point][trial.seed] = figures
        rows: list[dict[str, Any]] = []
        by_seed: list[list[Row]] = [[] for _ in range(self.seeds)]
        for setting, found in zip(settings, runs.values(), strict=True):
            means, deviations = mean_and_deviation([found[seed] for seed in sorted(found)])
            values = {name: value for name, value in asdict(setting).items() if name not in BESIDE}
            rows.append(
                {**values, **means, **({"deviation": deviations} if self.seeds > 1 else {})}
            )
            for seed, alone in enumerate(by_seed):
                alone.append({**values, **found[seed]})
        alone_by_claim = zip(*(self.claims(alone) for alone in by_seed), strict=True)
        claims = [
            claim.row(alone) for claim, alone in zip(self.claims(rows), alone_by_claim, strict=True)
        ]
        done = Counter(runs=len(trials), tasks_placed=sum(row["tasks_placed"] for row in rows))
        return Findings(self._finding(claims), rows, {"claims": claims}, dict(done))

    def _complete(self, setting: Setting) -> Setting:
        """Return the setting with its hours, and with the trace's folder if it needs one.

        Raises BadInput if the folder is not known.
        """
        if setting.cell != RECORDED:
            return replace(setting, hours=self.hours)
        setting = replace(setting, hours=self.week_hours if setting.period == WEEK else self.hours)
        if self.trace is None:
            raise BadInput(f"name the folder of the trace {RECORDED}", field="--trace")
        return replace(setting, trace=self.trace)

    def show(self, findings: Findings) -> RenderableType:
        """Return the claims."""
        return Group(table(findings.summary["claims"]), "")

    def draw(self, findings: Findings) -> Picture:
        """Draw the figure."""
        return self.paint(findings.rows, findings.finding)

    def _finding(self, claims: Sequence[Mapping[str, Any]]) -> str:
        held = sum(claim["holds"] for claim in claims)
        return f"{self.title}: {held} of {len(claims)} claims hold"


def run_all(
    stage: Stage,
    simulate: Callable[[_Work], Figures],
    trials: Sequence[Trial[_Work]],
    *,
    workers: int,
) -> list[tuple[Trial[_Work], Figures]]:
    """Simulate on all cores, or on so many workers; return (trial, figures) as they complete.

    Raises InvariantBroken for a run that failed, and KeyboardInterrupt if a stop is asked for.
    """
    done: list[tuple[Trial[_Work], Figures]] = []
    with progress_bar(stage.output.console) as progress, _workers(workers or cores()) as executor:
        bar = progress.add_task("simulating", total=len(trials))

        def settle(trial: Trial[_Work], found: Figures | Exception) -> None:
            if isinstance(found, Exception):
                raise InvariantBroken(f"{trial.work}: {found}") from found
            done.append((trial, found))
            progress.advance(bar)

        run_trials(
            executor, simulate, trials, at_once=AT_ONCE, settle=settle, stopped=stage.stop.is_set
        )
        stage.go_on()
    return done


@contextmanager
def _workers(number: int) -> Iterator[Executor]:
    """Yield an executor of so many processes; for one, a thread of this process."""
    if number == 1:
        with ThreadPoolExecutor(1) as executor:
            yield executor
    else:
        with processes(number) as workers:
            yield workers.executor


def curves(
    rows: Sequence[Row],
    title: str,
    *,
    x: str,
    measures: Sequence[str],
    columns: Mapping[str, Callable[[Row], bool]],
    lines: Mapping[str, Callable[[Row], bool]],
    workloads: Sequence[str] = ("batch", "service"),
    logarithmic: bool = True,
) -> Picture:
    """Draw measures over x: one row of panels per measure, one column per choice of rows."""
    picture = Picture(
        title,
        rows=len(measures),
        columns=len(columns),
        note="solid: batch jobs; dashed: service jobs" if len(workloads) > 1 else "",
    )
    for down, measure in enumerate(measures):
        for across, (name, belongs) in enumerate(columns.items()):
            panel = picture.panels[down, across]
            for number, (label, is_of) in enumerate(lines.items()):
                for workload in workloads:
                    points = sorted(
                        (row[x], row[workload][measure])
                        for row in rows
                        if belongs(row) and is_of(row) and row[workload][measure] is not None
                    )
                    picture.explain_above_one(measure, [value for _, value in points])
                    if points:
                        said = f"{label}, {workload}" if len(workloads) > 1 else label
                        stroke = STROKES[workload] if len(workloads) > 1 else "-"
                        series(panel, number, points, said, stroke=stroke)
            if logarithmic:
                panel.set_xscale("log")
            if measure == "wait_mean_s":
                magnitudes(panel)
                panel.axhline(30.0, color="#111111", linestyle=":", linewidth=1.2, label="30 s")
            else:
                panel.set_ylim(bottom=0)
            panel.set_title(name if down == 0 else "", fontsize=11)
            panel.set_ylabel(LABELS[measure] if across == 0 else "")
            panel.set_xlabel(LABELS[x] if down == len(measures) - 1 else "")
    return picture


Hours = Annotated[
    float | None,
    number_option(lowest=0.001, highest=1_000, metavar="H", help="Simulated hours."),
]
Seeds = Annotated[int, typer.Option(min=1, max=1_000, metavar="N", help="Runs of each point.")]
Workers = Annotated[
    int, typer.Option(min=0, max=1_024, metavar="N", help="Processes; the cores if 0.")
]

Trace = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="The folder of google-2011, for figures 2 to 4, 7 and 11 to 14."
    ),
]


def command_of(figure: type[Figure]) -> Callable[..., None]:
    """Return the command that runs a figure; its help is the docstring of the figure."""

    def command(
        hours: Hours = None,
        seeds: Seeds = 5,
        workers: Workers = 0,
        smoke: Smoke = False,
        json_to: JsonTo = None,
        plot_to: PlotTo = None,
        trace: Trace = None,
        data_dir: DataDir = None,
    ) -> None:
        asked = figure(seeds=seeds, workers=workers, trace=trace)
        if smoke:
            asked = replace(
                asked,
                x=asked.x[1::3][:2],
                hours=SMOKE_HOURS,
                week_hours=SMOKE_HOURS,
                workers=1,
                seeds=1,
                gated=False,
            )
        if hours is not None:
            asked = replace(asked, hours=hours)
        conduct(asked, json_to=json_to, plot_to=plot_to, data_dir=data_dir)

    command.__doc__ = figure.__doc__
    return command
