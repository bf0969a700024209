"""Whether schedulers of this checkout drain a queue as fast as those of an earlier one.

There are two databases on one server, each with the functions of its checkout, and schedulers of
each that run its code. They drain equal queues in turns, on machines that are never full, so that
the ratio does not depend on the machine. While one side drains, the schedulers of the other look
for jobs now and then, as idle ones do.
"""

import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Annotated, Any, Final

import numpy as np
import typer
from rich.table import Table

from benchmarks.end_to_end import MACHINES_MAX, SCHEDULERS_MAX
from benchmarks.environment import ROOT, revision_of
from benchmarks.harness import Findings, Stage, conduct
from benchmarks.live import Live, live
from benchmarks.options import DataDir, JsonTo, PlotTo, Seconds, Seed, Smoke
from benchmarks.postgres import statements
from benchmarks.ratios import paired
from benchmarks.rules import AFTER, BEFORE, ROUNDS_MAX, in_turns, interpreter_of
from benchmarks.shapes import Shape
from benchmarks.workers import ClientProcess, client_of
from omega.errors import InvariantBroken
from omega.limits import LIMITS
from omega.model.jobs import JobSpec
from omega.plots.picture import Picture, series
from omega.store.postgres.connection import Link

JOBS_MAX: Final = 10_000
TIME, CPU, SERVER_CPU = "seconds", "schedulers_cpu_s", "server_cpu_s"


@dataclass(frozen=True)
class Slice:
    """What one drain took."""

    seconds: float
    """From the first lease to the last commit."""
    schedulers_cpu_s: float
    server_cpu_s: float
    """Processor time of the server for this database, and of its writers."""


Slices = Mapping[str, Sequence[Slice]]
"""The slices of each checkout, one per round."""


@dataclass
class Side:
    """The schedulers of one checkout, on a database of their own."""

    schedulers: Live
    client: ClientProcess
    link: Link
    tasks: int = 0
    """Tasks that were placed in all drains."""

    def drain(self, spec: JobSpec, jobs: int) -> Slice:
        """Empty the cell, let the schedulers drain so many jobs, and check that all tasks run."""
        self.schedulers.empty()
        before_s, server_s = self.schedulers.cpu_s(), statements.cpu_s_of_server(self.link)
        times = self.schedulers.drain(spec, jobs=jobs)
        cpu_s = self.schedulers.cpu_s() - before_s
        server_s = statements.cpu_s_of_server(self.link) - server_s
        found = self.client.ask("check")
        if found["violations"]:
            raise InvariantBroken("the cell is broken", story=found["violations"][:20])
        if found["live"] != jobs * spec.tasks:
            raise InvariantBroken(f"{jobs * spec.tasks} tasks were due, {found['live']} run")
        self.tasks += found["live"]
        return Slice(times.drained_s, cpu_s, server_s)


@dataclass(frozen=True, kw_only=True)
class Drains:
    """The parameters of the benchmark."""

    python: Path = field(default=Path(sys.executable), repr=False)
    """The interpreter of the other checkout."""
    before: str | None
    after: str | None
    machines: int = 10_000
    schedulers: int = 4
    jobs: int = 1_200
    tasks: int = 100
    """Tasks of each job."""
    rounds: int = 60
    seconds: float = 3_600.0
    """Time after which the benchmark ends with the current round."""
    seed: int = 0

    def measure(self, stage: Stage) -> Findings:
        """Run both in turns; after each drain, check the cell."""
        with ExitStack() as stack:
            sides = {
                BEFORE: self._side(stack, stage, BEFORE, self.python),
                AFTER: self._side(stack, stage, AFTER, Path(sys.executable)),
            }
            spec = Shape(machines=self.machines, tasks=self.tasks).spec()
            for side in sides.values():
                side.drain(spec, self.jobs)  # the first one meets cold caches, and is not counted
            ways = {name: partial(side.drain, spec, self.jobs) for name, side in sides.items()}
            rng = np.random.default_rng(self.seed)
            slices = in_turns(stage, ways, rng, rounds=self.rounds, seconds=self.seconds)
        summary = self.summary(slices)
        digest = {f"tasks placed, {name}": side.tasks for name, side in sides.items()}
        return Findings(self._finding(summary), _rows(slices), summary, digest)

    def show(self, findings: Findings) -> Table:
        """Return the figures of each checkout."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("checkout")
        for header in ("tasks/s", "drain s", "schedulers cpu s", "server cpu s"):
            table.add_column(header, justify="right")
        for side, revision in ((BEFORE, self.before), (AFTER, self.after)):
            one = findings.summary[side]
            times = (f"{one[kind]:.3f}" for kind in (TIME, CPU, SERVER_CPU))
            table.add_row(f"{side}: {revision}", f"{one['tasks_per_s']:,.0f}", *times)
        return table

    def draw(self, findings: Findings) -> Picture:
        """Return the ratios of the rates, round by round."""
        picture = Picture(
            findings.finding,
            columns=1,
            note=f"{self.machines:,} machines, {self.schedulers} schedulers, {self.jobs:,} jobs of"
            f" {self.tasks:,} tasks a round; above 1 this checkout is the faster one",
        )
        rows = {(row["checkout"], row["round"]): row[TIME] for row in findings.rows}
        panel = picture.panels[0][0]
        points = [
            (number, rows[BEFORE, number] / seconds)
            for (side, number), seconds in rows.items()
            if side == AFTER
        ]
        series(panel, 0, points, "before / after")
        panel.axhline(findings.summary["ratio"][TIME]["median"], label="median")
        panel.axhline(1.0, color="black", linewidth=0.8, linestyle=":")
        panel.set_xlabel("round")
        panel.set_ylabel("ratio of the times of a drain")
        return picture

    def _side(self, stack: ExitStack, stage: Stage, name: str, python: Path) -> Side:
        url = stack.enter_context(stage.database(f"_{name}"))
        link = stack.enter_context(closing(statements.connect(url)))
        client = stack.enter_context(client_of(python, url, name, self.machines))

        def submit(spec: JobSpec, jobs: int) -> None:
            (group,) = spec.groups
            client.ask(
                "submit",
                kind=spec.scheduler,
                jobs=jobs,
                tasks=group.tasks,
                cpu_milli=group.cpu_milli,
                memory_mib=group.memory_mib,
            )

        running = live(stage, url, self.schedulers, python=python, submit=submit)
        return Side(stack.enter_context(running), client, link)

    def summary(self, slices: Slices) -> dict[str, Any]:
        """Return the ratios of both, above 1 if this checkout takes less, and the medians."""
        ratio = {}
        for kind in (TIME, CPU, SERVER_CPU):
            before, after = (
                [getattr(one, kind) for one in slices[side]] for side in (BEFORE, AFTER)
            )
            found = paired(before, after)
            ratio[kind] = None if found is None else found.rounded()
        tasks = self.jobs * self.tasks
        return {
            "ratio": ratio,
            "rounds": len(slices[AFTER]),
            **{
                side: {
                    "tasks_per_s": round(median(tasks / one.seconds for one in ones), 1),
                    **{
                        kind: round(median(getattr(one, kind) for one in ones), 4)
                        for kind in (TIME, CPU, SERVER_CPU)
                    },
                }
                for side, ones in slices.items()
            },
        }

    def _finding(self, summary: Mapping[str, Any]) -> str:
        ratio = summary["ratio"][TIME]
        return (
            f"{self.schedulers} schedulers of {self.after or 'this checkout'} drain a queue"
            f" {ratio['median']:.3f} x as fast as those of {self.before or 'the other'} (95 %"
            f" interval {ratio['lower']:.3f} to {ratio['upper']:.3f}); {summary['rounds']} rounds"
            f" of {self.jobs:,} jobs of {self.tasks:,} tasks"
        )


def _rows(slices: Slices) -> list[dict[str, Any]]:
    """Return one row per round and checkout."""
    return [
        {
            "round": number,
            "checkout": side,
            **{kind: round(value, 4) for kind, value in vars(one).items()},
        }
        for side, ones in slices.items()
        for number, one in enumerate(ones, start=1)
    ]


def command(  # noqa: PLR0913, PLR0917 - a parameter is an option
    before: Annotated[
        Path, typer.Option(metavar="DIR", help="A checkout of another revision, set up.")
    ],
    machines: Annotated[
        int, typer.Option(min=1, max=MACHINES_MAX, metavar="N", help="Machines of the cell.")
    ] = Drains.machines,
    schedulers: Annotated[
        int, typer.Option(min=1, max=SCHEDULERS_MAX, metavar="N", help="Schedulers of each side.")
    ] = Drains.schedulers,
    jobs: Annotated[
        int, typer.Option(min=1, max=JOBS_MAX, metavar="N", help="Jobs of a drain.")
    ] = Drains.jobs,
    tasks: Annotated[
        int,
        typer.Option(min=1, max=LIMITS.tasks_per_job_max, metavar="N", help="Tasks of a job."),
    ] = Drains.tasks,
    rounds: Annotated[int, typer.Option(min=1, max=ROUNDS_MAX, metavar="N")] = Drains.rounds,
    seconds: Seconds = None,
    seed: Seed = 0,
    smoke: Smoke = False,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
    data_dir: DataDir = None,
) -> None:
    """Queues drained by schedulers of this checkout, and of another revision, in one run.

    Takes ten minutes. With --before of the same revision it tells how much of a difference means
    nothing.
    """
    benchmark = Drains(
        python=interpreter_of(before),
        before=revision_of(before),
        after=revision_of(ROOT),
        machines=machines,
        schedulers=schedulers,
        jobs=jobs,
        tasks=tasks,
        rounds=rounds,
        seed=seed,
    )
    if smoke:
        benchmark = replace(benchmark, machines=40, schedulers=2, jobs=4, tasks=3, rounds=2)
    if seconds is not None:
        benchmark = replace(benchmark, seconds=seconds)
    conduct(benchmark, json_to=json_to, plot_to=plot_to, data_dir=data_dir)
