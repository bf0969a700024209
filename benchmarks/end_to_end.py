"""From submission to commit: live schedulers drain a queue, and keep up with a stream of jobs.

The product's own scheduler processes run on a real server, and jobs are submitted as usual. Two
quantities are measured, one after the other:

drain     The queue is filled while the schedulers are held, then all of them begin. The rate is
          all tasks over the time from the first lease to the last commit.
stream    Jobs are submitted steadily, at a share of the drained rate. The wait of a job is from
          its submission to the commit of its first task, and of its last.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import groupby, product
from math import ceil, floor, log10
from typing import Annotated, Any, Final

import numpy as np
import typer
from rich.console import Group, RenderableType
from rich.progress import Progress, TaskID
from rich.table import Table
from rich.text import Text

from benchmarks.harness import Findings, Stage, conduct
from benchmarks.live import Live, Times, live
from benchmarks.options import DataDir, JsonTo, PlotTo, Seconds, Seed, Smoke, numbers, words
from benchmarks.postgres import statements
from benchmarks.ratios import milliseconds
from benchmarks.shapes import FIGURES, PUBLISHED, Shape
from omega.errors import InvariantBroken
from omega.limits import LIMITS
from omega.plots.picture import Picture, magnitudes, series, steps
from omega.store.postgres.schema import migrate
from omega.terminal.options import number_option
from omega.terminal.progress import progress_bar
from omega.workload.demo_cell import demo_machines

MACHINES_MAX: Final = 200_000
SCHEDULERS_MAX: Final = 16
"""Each scheduler has two connections, and the embedded server takes a hundred."""
HEADLINE: Final = (10_000, 4, 100)
"""Machines, schedulers and tasks per job of the finding, if they were measured."""
NONE: Final = "none"


@dataclass(frozen=True)
class Case:
    """A shape, and the number of schedulers that place it."""

    shape: Shape
    schedulers: int

    def __str__(self) -> str:
        return (
            f"{self.shape.machines:,} machines, {self.schedulers} schedulers,"
            f" jobs of {self.shape.tasks:,}"
        )


@dataclass(frozen=True, kw_only=True)
class EndToEnd:
    """The parameters of the benchmark."""

    machines: tuple[int, ...] = (1_000, 10_000, 100_000)
    schedulers: tuple[int, ...] = (1, 2, 4, 8)
    tasks: tuple[int, ...] = (1, 10, 100)
    published: tuple[str, ...] = tuple(PUBLISHED)
    published_divided_by: int = 1
    published_schedulers: int = 4
    load: float = 0.5
    """Rate of the stream, as a share of the drained rate."""
    seconds: float = 300.0
    seed: int = 0

    @property
    def cases(self) -> list[Case]:
        """The cases, in an order that starts as few processes as possible."""
        grid = [
            Case(Shape(machines=machines, tasks=tasks), schedulers)
            for machines, schedulers, tasks in product(self.machines, self.schedulers, self.tasks)
        ]
        shapes = [PUBLISHED[name].divided_by(self.published_divided_by) for name in self.published]
        return grid + [Case(shape, self.published_schedulers) for shape in shapes]

    @property
    def slice_s(self) -> float:
        """Aim for the length of a drain, and of a stream; published shapes have no aim."""
        grid = len(self.machines) * len(self.schedulers) * len(self.tasks)
        return self.seconds / (2 * grid)

    def measure(self, stage: Stage) -> Findings:
        """Measure all cases, cell by cell; after each, check that every task has a place."""
        rows: list[dict[str, Any]] = []
        done: Counter[str] = Counter()
        cases = self.cases
        with progress_bar(stage.output.console) as progress:
            bar = progress.add_task("", total=len(cases))
            for machines, on_cell in groupby(cases, key=lambda case: case.shape.machines):
                with stage.database() as url:
                    self._make_cell(url, machines)
                    for schedulers, mine in groupby(on_cell, key=lambda case: case.schedulers):
                        progress.update(bar, description=f"starting {schedulers} schedulers")
                        with live(stage, url, schedulers) as running:
                            for case in mine:
                                rows += self._case(running, case, done, progress, bar)
        headline = self._headline(rows)
        summary = {"headline": headline, "published": [vars(figure) for figure in FIGURES]}
        return Findings(self._finding(headline), rows, summary, {**done, "violations": 0})

    def show(self, findings: Findings) -> RenderableType:
        """Return one line per case, and below the figures that others have published."""
        table = Table(box=None, pad_edge=False, collapse_padding=True, header_style="bold")
        for header in ("machines", "sched.", "jobs of"):
            table.add_column(header, justify="right", no_wrap=header != "jobs of")
        for header in ("jobs/s", "tasks/s", "confl.", "offered", "p50 ms", "p99 ms", "others"):
            table.add_column(header, justify="right", no_wrap=True)
        for drain, stream in _pairs(findings.rows):
            table.add_row(
                f"{drain['machines']:,}",
                str(drain["schedulers"]),
                drain["shape"],
                f"{drain['jobs_per_s']:,.0f}",
                f"{drain['tasks_per_s']:,.0f}",
                f"{drain['conflict_fraction']:.3f}",
                *(("", "", "") if stream is None else _waits(stream)),
                drain["others_tasks_per_s"] or "",
            )
        told = (
            "jobs/s, tasks/s and conflict fraction: a queue drained. p50 and p99: waits in a stream"
            " of so many jobs/s as were offered. Others, on machines of theirs:"
        )
        return Group(table, *(Text(str(line), "dim") for line in (told, *FIGURES)))

    def draw(self, findings: Findings) -> Picture:
        """Return rates above and waits below, by schedulers, one column per size of the cell."""
        picture = Picture(
            findings.finding,
            rows=2,
            columns=len(self.machines),
            note="above: a full queue is drained; below: a stream of jobs at"
            f" {self.load:.0%} of that rate, from submission to the last task's commit",
        )
        pairs = [pair for pair in _pairs(findings.rows) if not pair[0]["published"]]
        for column, machines in enumerate(self.machines):
            above, below = picture.panels[0][column], picture.panels[1][column]
            for number, tasks in enumerate(sorted(self.tasks, reverse=True)):
                mine = [
                    (drain["schedulers"], drain["tasks_per_s"], stream)
                    for drain, stream in pairs
                    if (drain["machines"], drain["tasks"]) == (machines, tasks)
                ]
                label = f"jobs of {tasks:,}"
                series(above, number, [(x, rate) for x, rate, _ in mine], label)
                for name, dashed in (("p50_ms", False), ("p99_ms", True)):
                    points = [(x, row[name]) for x, _, row in mine if row is not None]
                    which = ", wait p99" if dashed else ""
                    series(below, number, points, label + which, stroke="--" if dashed else "-")
            above.set_title(f"{machines:,} machines", fontsize=10)
            above.set_ylabel("tasks committed, 1/s")
            below.set_ylabel("wait of a job, ms")
            for panel, names in ((above, ("tasks_per_s",)), (below, ("p50_ms", "p99_ms"))):
                magnitudes(panel)
                panel.set_ylim(
                    *_decades([row[n] for row in findings.rows for n in names if n in row])
                )
                steps(panel, self.schedulers)
                panel.set_xlabel("scheduler processes")
        return picture

    def _make_cell(self, url: str, machines: int) -> None:
        migrate(url)
        with closing(statements.store(url)) as store:
            store.add_machines(demo_machines(machines, np.random.default_rng(self.seed)))

    def _case(
        self, running: Live, case: Case, done: Counter[str], progress: Progress, bar: TaskID
    ) -> Iterator[dict[str, Any]]:
        """Yield the row of a drain, then of a stream on the same cell; check that all tasks run."""
        shape = case.shape
        spec, jobs = shape.spec(), shape.jobs_for(self.slice_s)
        progress.update(bar, description=f"{case}: drain")
        running.empty()
        before_s = running.cpu_s()
        drained = running.drain(spec, jobs=jobs)
        rate = jobs / drained.drained_s
        yield _drain_row(case, drained, running.conflicts(), running.cpu_s() - before_s)
        if not shape.name:
            progress.update(bar, description=f"{case}: stream")
            offered_per_s = self.load * rate
            streamed = min(jobs, max(1, int(offered_per_s * self.slice_s)))
            waits = running.stream(spec, streamed, offered_per_s)
            yield _stream_row(case, waits)
            jobs += streamed
        live_tasks = running.check()
        if live_tasks != jobs * shape.tasks:
            raise InvariantBroken(f"{jobs * shape.tasks} tasks were due, {live_tasks} run")
        done.update(
            {
                "jobs submitted": jobs,
                "tasks submitted": jobs * shape.tasks,
                "tasks live": live_tasks,
            }
        )
        progress.advance(bar)

    def _headline(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        machines, schedulers, tasks = (
            wanted if wanted in measured else max(measured)
            for wanted, measured in zip(
                HEADLINE, (self.machines, self.schedulers, self.tasks), strict=True
            )
        )
        drain, stream = next(
            (drain, stream)
            for drain, stream in _pairs(rows)
            if (drain["machines"], drain["schedulers"], drain["tasks"])
            == (machines, schedulers, tasks)
            and stream is not None
        )
        return {
            "machines": machines,
            "schedulers": schedulers,
            "tasks": tasks,
            "jobs_per_s": drain["jobs_per_s"],
            "tasks_per_s": drain["tasks_per_s"],
            "wait_p50_ms": stream["p50_ms"],
            "wait_p99_ms": stream["p99_ms"],
        }

    def _finding(self, told: Mapping[str, Any]) -> str:
        return (
            f"On {told['machines']:,} machines, {told['schedulers']} schedulers commit"
            f" {told['tasks_per_s']:,.0f} tasks/s in jobs of {told['tasks']:,};"
            f" at {self.load:.0%} of that a job waits {told['wait_p50_ms']:,.0f} ms, and one in a"
            f" hundred {told['wait_p99_ms']:,.0f} ms or longer"
        )


def _drain_row(
    case: Case, times: Times, conflicts: tuple[int, int], cpu_s: float
) -> dict[str, Any]:
    shape, jobs, seconds = case.shape, len(times), times.drained_s
    conflicted, judged = conflicts
    return {
        "measures": "drain",
        **_of(case),
        "jobs": jobs,
        "seconds": round(seconds, 3),
        "jobs_per_s": round(jobs / seconds, 1),
        "tasks_per_s": round(jobs * shape.tasks / seconds, 1),
        "conflict_fraction": round(conflicted / max(1, judged - conflicted), 4),
        "schedulers_cpu_s": round(cpu_s, 2),
        "others_tasks_per_s": None if shape.figure is None else shape.figure.tasks_per_s,
    }


def _stream_row(case: Case, times: Times) -> dict[str, Any]:
    """Return the row of a stream: waits to the last commit of a job, and to the first."""
    jobs = len(times)
    offered_s = float(times.submitted.max() - times.submitted.min())
    to_first = milliseconds(times.first - times.submitted)
    return {
        "measures": "stream",
        **_of(case),
        "jobs": jobs,
        "seconds": round(float(times.last.max() - times.submitted.min()), 3),
        "offered_jobs_per_s": round((jobs - 1) / offered_s, 1) if offered_s else None,
        **milliseconds(times.last - times.submitted),
        **{f"first_{name}": told for name, told in to_first.items()},
        "lease_p50_ms": milliseconds(times.leased - times.submitted)["p50_ms"],
    }


def _of(case: Case) -> dict[str, Any]:
    shape = case.shape
    return {
        "machines": shape.machines,
        "schedulers": case.schedulers,
        "tasks": shape.tasks,
        "shape": str(shape),
        "published": shape.name or None,
    }


def _pairs(
    rows: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any] | None]]:
    """Yield each drain with the stream that followed it, or None."""
    for number, row in enumerate(rows):
        if row["measures"] == "drain":
            after = rows[number + 1] if number + 1 < len(rows) else row
            yield row, after if after["measures"] == "stream" else None


def _decades(values: Sequence[float]) -> tuple[float, float]:
    """Return the powers of ten that enclose the values: limits that all panels can share."""
    return 10.0 ** floor(log10(min(values))), 10.0 ** ceil(log10(max(values)))


def _waits(stream: Mapping[str, Any]) -> tuple[str, str, str]:
    offered = stream["offered_jobs_per_s"]
    return (
        "" if offered is None else f"{offered:,.0f}",
        f"{stream['p50_ms']:,.1f}",
        f"{stream['p99_ms']:,.1f}",
    )


SMOKE: Final = EndToEnd(
    machines=(40,), schedulers=(2,), tasks=(1, 5), published_divided_by=500, seconds=0.1
)


def command(  # noqa: PLR0913, PLR0917 - a parameter is an option
    machines: Annotated[
        str, typer.Option(metavar="N,...", help="Machines of the cell.")
    ] = "1000,10000,100000",
    schedulers: Annotated[
        str, typer.Option(metavar="N,...", help="Scheduler processes.")
    ] = "1,2,4,8",
    tasks: Annotated[str, typer.Option(metavar="N,...", help="Tasks of a job.")] = "1,10,100",
    published: Annotated[
        str, typer.Option(metavar="NAME,...", help="Shapes of others, or none.")
    ] = ",".join(PUBLISHED),
    load: Annotated[
        float,
        number_option(
            lowest=0.01,
            highest=0.95,
            metavar="X",
            help="Share of the drained rate at which the stream submits.",
        ),
    ] = 0.5,
    seconds: Seconds = None,
    seed: Seed = 0,
    smoke: Smoke = False,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
    data_dir: DataDir = None,
) -> None:
    """Tasks a second and waits, from submission to committed, with live scheduler processes.

    Takes a quarter of an hour. One point alone: --machines 10000 --schedulers 4
    --tasks 100 --published none --seconds 40
    """
    names = words(published, option="--published", known=(*PUBLISHED, NONE))
    benchmark = EndToEnd(
        machines=numbers(machines, option="--machines", most=MACHINES_MAX),
        schedulers=numbers(schedulers, option="--schedulers", most=SCHEDULERS_MAX),
        tasks=numbers(tasks, option="--tasks", most=LIMITS.claims_per_transaction_max),
        published=tuple(name for name in names if name != NONE),
        load=load,
        seed=seed,
    )
    benchmark = SMOKE if smoke else benchmark
    benchmark = benchmark if seconds is None else replace(benchmark, seconds=seconds)
    conduct(benchmark, json_to=json_to, plot_to=plot_to, data_dir=data_dir)
