"""What alternates gain and cost: schedulers that name other machines for their claims.

Four live scheduler processes compete for a small cell that is nearly full, as batch or as service
schedulers, whose claims name none, one or two alternates; the same is run in virtual time with
`omega sim run --queue live`'s processes. Then one client times commits of which no claim needs an
alternate.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from itertools import product
from statistics import fmean, stdev
from typing import Annotated, Any, Final

import numpy as np
import typer
from rich.console import Group, RenderableType
from rich.table import Table

from benchmarks.alternates_price import Price
from benchmarks.churn import Nodes
from benchmarks.harness import Findings, Stage, conduct
from benchmarks.options import DataDir, JsonTo, PlotTo, Seconds, Seed, Smoke, numbers, words
from benchmarks.postgres import statements
from benchmarks.rival import Role
from benchmarks.steady_state import Point, Scenario, Tally, Testbed, rivals
from omega.events import ignore
from omega.framework.registry import find_scheduler
from omega.framework.retry import Retry
from omega.framework.scheduler import Scheduler
from omega.placement.alternates import ALTERNATES_MAX
from omega.plots.picture import COLOURS, Picture, Stroke, series
from omega.reports.wording import things
from omega.sim.experiment import Architecture, Experiment
from omega.sim.ledger import ratio
from omega.sim.live_run import LiveRun, SyncConfig
from omega.store.opening import store_at
from omega.store.postgres.schema import migrate
from omega.store.protocols import Store
from omega.terminal.progress import progress_bar
from omega.workload.arrivals import BATCH, SERVICE, Workload
from omega.workload.synthetic import JobClass, Shape, arrivals_of, scattered, uniform_machines

CPUS: Final = 4
MEMORY_GIB: Final = 16
JOBS_PER_S: Final = 1.0
"""Jobs a second for each scheduler."""
TASKS_MEAN: Final = 10
DURATION_MEAN_S: Final = 2.5
WARM_UP: Final = 0.25
"""Share of a contest's time that is discarded."""
KINDS: Final = (BATCH, SERVICE)
STROKES: Final[Mapping[str, Stroke]] = {"live": "-", "simulated": "--"}
HOW: Final = tuple(STROKES)
SCHEDULERS_MAX: Final = 16
MACHINES_MAX: Final = 5_000
FIGURES: Final = {
    "conflict_fraction": "conflict fraction",
    "commits_per_job": "commits for a placed job",
    "tasks_per_s": "tasks placed, 1/s",
    "wait_mean_s": "mean wait, s",
}
"""Figures of contests, with their titles."""


@dataclass(frozen=True, kw_only=True)
class AlternatesPoint(Point):
    """The settings of a contest."""

    kind: str
    alternates: int

    def role(self, kind: str, replica: int, *, number: int, of: int, seed: int) -> Role:
        """Return the role of one scheduler, as `omega scheduler run` runs it, job by job."""
        usual = super().role(kind, replica, number=number, of=of, seed=seed)
        return replace(usual, as_paper=False, one_job_a_commit=True, settings=self.settings)

    @property
    def settings(self) -> dict[str, str]:
        """The scheduler's settings."""
        return {"alternates": str(self.alternates)}

    def scheduler(self, kind: str) -> Scheduler:
        """Return such a scheduler, for a simulation."""
        scheduler = find_scheduler(kind).configured(self.settings)
        scheduler.jobs_per_transaction = 1
        return scheduler


@dataclass(frozen=True, kw_only=True)
class Alternates:
    """The parameters of the benchmark."""

    alternates: tuple[int, ...] = (0, 1, 2)
    kinds: tuple[str, ...] = KINDS
    schedulers: int = 4
    machines: int = 250
    start_fill: float = 0.8
    """Share of all places that is taken from the start to the end; jobs take half of the rest."""
    t_job_ms: int = 100
    t_task_ms: int = 5
    seeds: int = 3
    """Contests of each setting, live."""
    simulated_seeds: int = 10
    simulated_s: float = 120.0
    """Virtual seconds of a simulated contest."""
    price_machines: int = 10_000
    price_rounds: int = 200
    seconds: float = 540.0
    """Time of all live contests."""
    seed: int = 0

    @property
    def points(self) -> list[AlternatesPoint]:
        """All settings; those of one kind are adjacent."""
        return [
            AlternatesPoint(
                kind=kind,
                alternates=number,
                schedulers=self.schedulers,
                t_job_ms=self.t_job_ms,
                t_task_ms=self.t_task_ms,
            )
            for kind, number in product(self.kinds, self.alternates)
        ]

    def measure(self, stage: Stage) -> Findings:
        """Hold the contests, simulate them, and time commits."""
        found: dict[tuple[str, AlternatesPoint], list[Mapping[str, Any]]] = defaultdict(list)
        done: Counter[str] = Counter()
        total = len(self.points) * (self.seeds + self.simulated_seeds)
        with progress_bar(stage.output.console) as progress:
            bar = progress.add_task("starting schedulers", total=total)
            for point, tally in self._contests(stage):
                found["live", point].append(_live(tally))
                done["tasks placed live"] += tally.placed
                progress.update(bar, description=f"{point.kind}, {point.alternates} alternates")
                progress.advance(bar)
            for point, seed in product(self.points, range(self.simulated_seeds)):
                stage.go_on()
                told = self.simulate(point, seed)
                found["simulated", point].append(told)
                done["tasks placed in virtual time"] += told["tasks"]
                progress.advance(bar)
        with stage.output.console.status("Timing commits"):
            price = Price(self.alternates, self.price_machines, self.price_rounds, self.seed)
            of_price = price.measure(stage)
        rows = [_row(how, point, found[how, point]) for how, point in product(HOW, self.points)]
        digest = {
            "contests": len(self.points) * self.seeds,
            **done,
            "commits timed": sum(row["commits"] for row in of_price),
            "violations": 0,
        }
        return Findings(self._finding(rows, of_price), [*rows, *of_price], {}, digest)

    def show(self, findings: Findings) -> RenderableType:
        """Return the figures of contests, and below them the times of commits."""
        contests = Table(box=None, pad_edge=False, header_style="bold")
        for header in ("", "kind", "alternates", *FIGURES.values()):
            contests.add_column(header, justify="left" if header in {"", "kind"} else "right")
        price = Table(box=None, pad_edge=False, header_style="bold")
        for header in ("claims", "alternates", "p50 ms", "p99 ms", "over none"):
            price.add_column(header, justify="right")
        for row in findings.rows:
            if row["measures"] == "price":
                over = row["over_none"]
                told = f"{over['median']:.2f} ({over['lower']:.2f} to {over['upper']:.2f})"
                times = (f"{row['p50_ms']:.2f}", f"{row['p99_ms']:.2f}")
                price.add_row(str(row["claims"]), str(row["alternates"]), *times, told)
            else:
                told_of = (f"{row[name]:.3f} ± {row[f'{name}_sd']:.3f}" for name in FIGURES)
                contests.add_row(row["measures"], row["kind"], str(row["alternates"]), *told_of)
        return Group(contests, "", price)

    def draw(self, findings: Findings) -> Picture:
        """Return the figures by the number of alternates, with bars over seeds."""
        note = (
            f"{self.schedulers} schedulers on {self.machines} machines of {CPUS} CPUs, about 90 %"
            f" full; jobs of {TASKS_MEAN} tasks; bars: standard deviation over seeds"
        )
        picture = Picture(findings.finding, rows=2, columns=2, note=note)
        contests = [row for row in findings.rows if row["measures"] in HOW]
        for panel, (name, title) in zip(picture.panels.flat, FIGURES.items(), strict=True):
            for number, (kind, how) in enumerate(product(self.kinds, HOW)):
                mine = [row for row in contests if (row["kind"], row["measures"]) == (kind, how)]
                points = [(row["alternates"], row[name]) for row in mine]
                series(panel, number, points, f"{kind}, {how}", stroke=STROKES[how])
                bars = [row[f"{name}_sd"] for row in mine]
                panel.errorbar(
                    *zip(*points, strict=True),
                    yerr=bars,
                    fmt="none",
                    ecolor=COLOURS[number],
                    capsize=3,
                )
            panel.set_xticks(self.alternates)
            panel.set_ylim(bottom=0)
            panel.set_xlabel("alternates of a claim")
            panel.set_ylabel(title)
        return picture

    def simulate(self, point: AlternatesPoint, seed: int) -> dict[str, Any]:
        """Run a contest in virtual time; return its figures."""
        experiment = Experiment(
            workload=self._workload(point, self.simulated_s, seed),
            architecture=Architecture.SHARED_STATE,
            scheduler=point.scheduler,
            decision_times={point.kind: point.decision_time},
            schedulers={point.kind: point.schedulers},
            horizon_s=self.simulated_s,
            seed=self.seed + seed,
        )
        told = LiveRun(experiment, SyncConfig()).finish().workloads[point.kind]
        commits = told["transactions_ok"] + told["transactions_conflicted"]
        return {
            "conflict_fraction": told["conflict_fraction"],
            "commits_per_job": ratio(commits, told["jobs_scheduled"]),
            "tasks_per_s": told["tasks_placed"] / self.simulated_s,
            "wait_mean_s": told["wait_mean_s"],
            "tasks": told["tasks_placed"],
        }

    def _workload(self, point: AlternatesPoint, seconds: float, seed: int) -> Workload:
        """Draw the jobs of a contest, which are the same for every number of alternates."""
        for_start, for_jobs = np.random.default_rng([self.seed, seed]).spawn(2)
        jobs = JobClass(
            scheduler=point.kind,
            gap_mean_s=1 / (JOBS_PER_S * point.schedulers),
            tasks_mean=TASKS_MEAN,
            duration_mean_s=DURATION_MEAN_S * self.machines / Alternates.machines,
        )
        machines = uniform_machines(self.machines, cpus=CPUS, memory_gib=MEMORY_GIB)
        taken = round(self.start_fill * CPUS * self.machines)
        return Workload(
            "alternates",
            machines,
            scattered(machines, taken, Shape(), for_start),
            arrivals_of(jobs, 2 * seconds, for_jobs),
        )

    def _contests(self, stage: Stage) -> Iterator[tuple[AlternatesPoint, Tally]]:
        """Hold the live contests; those of one seed follow one another in random order."""
        slice_s = self.seconds / (len(self.points) * self.seeds)
        warm_up_s = WARM_UP * slice_s
        rng = np.random.default_rng(self.seed)
        with ExitStack() as stack:
            url = stack.enter_context(stage.database())
            migrate(url)
            store = stack.enter_context(closing(store_at(url, stage.settings, "omega benchmark")))
            link = stack.enter_context(closing(statements.connect(url)))
            machines = uniform_machines(self.machines, cpus=CPUS, memory_gib=MEMORY_GIB)
            testbed = Testbed(
                rivals=stack.enter_context(rivals(url, self.schedulers)),
                store=store,
                link=link,
                machines=store.add_machines(machines),
                clock=stage.clock,
                go_on=stage.go_on,
            )
            for seed in range(self.seeds):
                for at in rng.permutation(len(self.points)).tolist():
                    point = self.points[at]
                    statements.empty(link)
                    scenario = Scenario(
                        self._workload(point, slice_s, seed),
                        (point.kind,) * point.schedulers,
                        lambda store: _nodes(store, stage, self.seed),
                    )
                    tally = testbed.hold(
                        point,
                        scenario,
                        warm_up_s=warm_up_s,
                        seconds=slice_s - warm_up_s,
                        seed=self.seed + seed,
                    )
                    yield point, tally

    def _finding(
        self, rows: Sequence[Mapping[str, Any]], price: Sequence[Mapping[str, Any]]
    ) -> str:
        told = [
            f"{kind} {how} "
            + ", ".join(
                f"{row['conflict_fraction']:.2f}"
                for row in rows
                if (row["kind"], row["measures"]) == (kind, how)
            )
            for kind, how in product(self.kinds, HOW)
        ]
        dearest = [row for row in price if row["alternates"] == self.alternates[-1]]
        prices = ", ".join(
            f"{row['over_none']['median']:.2f}x for {things(row['claims'], 'claim')}"
            for row in dearest
        )
        named = ", ".join(map(str, self.alternates))
        return (
            f"Conflict fraction with {named} alternates: {'; '.join(told)}. A commit with"
            f" {self.alternates[-1]} that needs none of them takes {prices}"
        )


def _live(tally: Tally) -> dict[str, Any]:
    totals, row = tally.facts["totals"], tally.row()
    commits, jobs = (totals.get(name, 0) for name in ("job_transactions", "jobs_placed"))
    named = {name: row[name] for name in ("conflict_fraction", "tasks_per_s", "wait_mean_s")}
    return {**named, "commits_per_job": ratio(commits, jobs)}


def _nodes(store: Store, stage: Stage, seed: int) -> Nodes:
    rng = np.random.default_rng(seed)
    retry = Retry(stage.clock, ignore, stage.settings, rng, stage.stop)
    return Nodes(store, stage.clock, retry, speedup=1.0)


def _row(how: str, point: AlternatesPoint, found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the means over seeds, and their standard deviations."""
    row: dict[str, Any] = {"measures": how, "kind": point.kind, "alternates": point.alternates}
    for name in FIGURES:
        values = [one[name] or 0.0 for one in found]
        row[name] = round(fmean(values), 4)
        row[f"{name}_sd"] = round(stdev(values) if len(values) > 1 else 0.0, 4)
    return {**row, "seeds": len(found)}


SMOKE: Final = Alternates(
    alternates=(0, 1),
    schedulers=2,
    machines=40,
    t_job_ms=20,
    t_task_ms=1,
    seeds=1,
    simulated_seeds=2,
    simulated_s=10.0,
    price_machines=150,
    price_rounds=2,
    seconds=4.0,
)


def command(  # noqa: PLR0913, PLR0917 - a parameter is an option
    alternates: Annotated[
        str,
        typer.Option(metavar="N,...", help="Alternates of a claim; the first is compared with."),
    ] = "0,1,2",
    kinds: Annotated[str, typer.Option(metavar="NAME,...", help="Kinds of scheduler.")] = ",".join(
        KINDS
    ),
    schedulers: Annotated[
        int, typer.Option(min=1, max=SCHEDULERS_MAX, metavar="N", help="Schedulers that compete.")
    ] = Alternates.schedulers,
    machines: Annotated[
        int, typer.Option(min=1, max=MACHINES_MAX, metavar="N", help="Of 4 CPUs each, 90 % taken.")
    ] = Alternates.machines,
    seeds: Annotated[
        int, typer.Option(min=1, max=100, metavar="N", help="Live contests of each setting.")
    ] = Alternates.seeds,
    seconds: Seconds = None,
    seed: Seed = 0,
    smoke: Smoke = False,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
    data_dir: DataDir = None,
) -> None:
    """Conflicts and waits with claims that name other machines, live and simulated; their price.

    Takes a quarter of an hour. Live contests of batch alone: --kinds batch --seconds 120
    """
    benchmark = Alternates(
        alternates=numbers(alternates, option="--alternates", most=ALTERNATES_MAX, least=0),
        kinds=words(kinds, option="--kinds", known=KINDS),
        schedulers=schedulers,
        machines=machines,
        seeds=seeds,
        seed=seed,
    )
    benchmark = SMOKE if smoke else benchmark
    benchmark = benchmark if seconds is None else replace(benchmark, seconds=seconds)
    conduct(benchmark, json_to=json_to, plot_to=plot_to, data_dir=data_dir)
