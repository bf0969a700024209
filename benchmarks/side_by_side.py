"""Simulated beside live: the same schedulers, machines, jobs and decision times, in both.

Live scheduler processes compete on Postgres and sleep while they decide; the same contests are run
in virtual time. The class that places, the loop, the order of jobs and the machines are the same;
sleeps, a network and processors are not. The results should differ only randomly, so each contest
is run several times.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from itertools import chain, product
from typing import Annotated, Any, Final

import numpy as np
import typer
from rich.table import Table
from rich.text import Text

from benchmarks.agreement import SDS, between, compared
from benchmarks.churn import Nodes
from benchmarks.gpu_rounds import GpuRounds
from benchmarks.harness import Findings, Stage, conduct
from benchmarks.live_arms import (
    PARTITIONED,
    ROUNDS,
    SHARES,
    STRANGER,
    LivePoint,
    play_rounds,
    points_of,
    registered,
)
from benchmarks.options import DataDir, JsonTo, PlotTo, Seconds, Seed, Smoke, numbers, words
from benchmarks.postgres import statements
from benchmarks.steady_state import Point, Scenario, Tally, Testbed, rivals
from omega.events import ignore
from omega.framework.registry import find_scheduler
from omega.framework.retry import Retry
from omega.framework.scheduler import Scheduler
from omega.limits import LIMITS
from omega.model.claims import ConflictRule, Granularity
from omega.plots.picture import Picture, Stroke, series
from omega.sim.experiment import Architecture, Assignment, Experiment
from omega.sim.queue import GiveUpPolicy
from omega.store.opening import store_at
from omega.store.postgres.schema import migrate
from omega.store.protocols import Store
from omega.terminal.progress import progress_bar
from omega.workload.arrivals import BATCH, Workload
from omega.workload.synthetic import JobClass, Shape, arrivals_of, scattered, uniform_machines

CPUS: Final = 4
MEMORY_GIB: Final = 16
FILL: Final = 0.75
"""Share of all places that is taken from the start to the end."""
JOBS_PER_S: Final = 1.0
"""Jobs per second that arrive for each scheduler."""
TASKS_MEAN: Final = 10
DURATION_MEAN_S: Final = 2.0
WARM_UP: Final = 0.25
"""Share of a contest's time that is discarded."""
RETRY_S: Final = 0.075
"""Mean delay that `backoff_initial_ms` causes."""
SIMULATED: Final = 10
"""Simulations of each contest."""
STROKES: Final[Mapping[str, Stroke]] = {"live": "-", "simulated": "--"}
MEASURES: Final = {"conflict_fraction": "conflict fraction", "busy": "busyness"}
SHARES_OFF: Final = {"furthest": "furthest off", "mean": "mean off"}
PAPER: Final = "paper"
"""The arm of the paper's scheduler; its simulations have the paper's queues and retries."""
ARMS: Final = (PAPER, PARTITIONED, STRANGER, ROUNDS)
LIVE_SCHEDULERS: Final = (2, 4)
"""Schedulers in the arms in which they run as `omega scheduler run` runs them."""
SCHEDULERS_MAX: Final = 32
MACHINES_MAX: Final = 5_000


@dataclass(frozen=True, kw_only=True)
class SideBySide:
    """The parameters of the benchmark."""

    schedulers: tuple[int, ...] = (1, 2, 4, 8)
    rules: tuple[str, ...] = tuple(rule.value for rule in ConflictRule)
    t_job_ms: int = 500
    t_task_ms: int = 5
    machines: int = 250
    contests: int = 3
    """Contests of each setting."""
    arms: tuple[str, ...] = ARMS
    live_schedulers: tuple[int, ...] = LIVE_SCHEDULERS
    rounds: int = 30
    """Rounds in the arm ROUNDS."""
    round_ms: int = 1_000
    """Length of each round."""
    seconds: float = 720.0
    seed: int = 0

    @property
    def points(self) -> list[Point]:
        """All settings of contests."""
        usual = Point(t_job_ms=self.t_job_ms, t_task_ms=self.t_task_ms)
        paper = [
            replace(usual, schedulers=n, rule=rule)
            for rule, n in product(self.rules, self.schedulers)
        ]
        live = {arm: points_of(arm, usual, self.live_schedulers) for arm in (PARTITIONED, STRANGER)}
        return [
            *(paper if PAPER in self.arms else ()),
            *chain(*(live.get(a, ()) for a in self.arms)),
        ]

    def measure(self, stage: Stage) -> Findings:
        """Hold the contests, simulate each of them, and compare."""
        live: dict[Point, list[Mapping[str, Any]]] = defaultdict(list)
        simulated: dict[Point, list[Mapping[str, Any]]] = defaultdict(list)
        done: Counter[str] = Counter()
        slice_s = self.seconds / max(1, len(self.points) * self.contests)
        with progress_bar(stage.output.console) as progress, registered():
            bar = progress.add_task("starting schedulers", total=len(self.points) * self.contests)
            for point, contest, tally, span_s in self._contests(stage, slice_s):
                live[point].append(tally.row())
                done["tasks placed live"] += tally.placed
                workload = self.workload(point, slice_s, contest)
                for number in range(SIMULATED):
                    experiment = self.experiment(point, workload, span_s[1], number)
                    run = point.simulate if isinstance(point, LivePoint) else Experiment.run
                    told = between(experiment, *span_s, run=run)
                    simulated[point].append(told)
                    done["tasks placed in virtual time"] += told["tasks_placed"]
                progress.update(bar, description=f"{point.schedulers} schedulers, {point.rule}")
                progress.advance(bar)
        rows = [_row(point, live[point], simulated[point]) for point in self.points]
        if ROUNDS in self.arms:
            rows.append(self._rounds(stage))
        figures = [row[name]["agree"] for row in rows for name in _figures_of(row)]
        finding = (
            f"Simulated and live agree within {SDS:g} standard deviations in"
            f" {sum(figures)} of {len(figures)} figures"
        )
        return Findings(
            finding,
            rows,
            {"agree": sum(figures)},
            {"contests": sum(map(len, live.values())), **done},
        )

    def show(self, findings: Findings) -> Table:
        """Return the figures of both side by side."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        for header in ("arm", "rule", "schedulers", "figure", "live", "simulated", "agree"):
            is_text = header in {"arm", "rule", "figure"}
            table.add_column(header, justify="left" if is_text else "right")
        for row in findings.rows:
            for name, title in _figures_of(row).items():
                told = row[name]
                table.add_row(
                    row["arm"],
                    row["rule"],
                    str(row["schedulers"]),
                    title,
                    f"{told['live']:.3f} ± {told['live_sd']:.3f}",
                    f"{told['simulated']:.3f} ± {told['simulated_sd']:.3f}",
                    Text("yes", "green") if told["agree"] else Text("no", "red"),
                )
        return table

    def draw(self, findings: Findings) -> Picture:
        """Return the figures of both by the number of schedulers."""
        picture = Picture(
            findings.finding,
            columns=len(MEASURES),
            note="bars: standard deviation over runs; live: processes on Postgres that sleep while"
            " they decide",
        )
        for panel, (name, title) in zip(picture.panels[0], MEASURES.items(), strict=True):
            drawn = [row for row in findings.rows if name in row]
            for number, (arm, rule) in enumerate(
                dict.fromkeys((row["arm"], row["rule"]) for row in drawn)
            ):
                mine = [row for row in drawn if (row["arm"], row["rule"]) == (arm, rule)]
                for how, stroke in STROKES.items():
                    points = [(row["schedulers"], row[name][how]) for row in mine]
                    series(panel, number, points, f"{arm}, {rule}, {how}", stroke=stroke)
                    panel.errorbar(
                        *zip(*points, strict=True),
                        yerr=[row[name][f"{how}_sd"] for row in mine],
                        fmt="none",
                        ecolor="#6b7280",
                        capsize=3,
                    )
            panel.set_xticks(sorted({row["schedulers"] for row in drawn}))
            panel.set_ylim(bottom=0)
            panel.set_xlabel("schedulers")
            panel.set_ylabel(title)
        return picture

    def workload(self, point: Point, seconds: float, contest: int) -> Workload:
        """Draw the jobs of a contest, which are the same for all rules, live and simulated."""
        for_prefill, for_jobs = np.random.default_rng([self.seed, contest]).spawn(2)
        jobs = JobClass(
            scheduler=_kind_of(point),
            gap_mean_s=1 / (JOBS_PER_S * point.schedulers),
            tasks_mean=TASKS_MEAN,
            duration_mean_s=DURATION_MEAN_S,
        )
        machines = uniform_machines(self.machines, cpus=CPUS, memory_gib=MEMORY_GIB)
        taken = round(FILL * CPUS * self.machines)
        return Workload(
            "side by side",
            machines,
            scattered(machines, taken, Shape(), for_prefill),
            arrivals_of(jobs, 2 * seconds, for_jobs),
        )

    def _rounds(self, stage: Stage) -> dict[str, Any]:
        """Run rounds of training jobs beside batch and service, live and in virtual time."""
        played = GpuRounds(rounds=self.rounds, round_ms=self.round_ms, kill_after=0, seed=self.seed)
        figures = compared(SHARES, *play_rounds(stage, played, self.contests))
        return {"arm": ROUNDS, "rule": played.rule, "schedulers": 4, **figures}

    def _contests(
        self, stage: Stage, slice_s: float
    ) -> Iterator[tuple[Point, int, Tally, tuple[float, float]]]:
        """Hold the contests; yield (point, contest, tally, (start, end) of the counted time)."""
        warm_up_s = WARM_UP * slice_s
        with ExitStack() as stack:
            url = stack.enter_context(stage.database())
            migrate(url)
            store = stack.enter_context(closing(store_at(url, stage.settings, "omega benchmark")))
            link = stack.enter_context(closing(statements.connect(url)))
            machines = uniform_machines(self.machines, cpus=CPUS, memory_gib=MEMORY_GIB)
            most = max((point.schedulers for point in self.points), default=0)
            testbed = Testbed(
                rivals=stack.enter_context(rivals(url, most)),
                store=store,
                link=link,
                machines=store.add_machines(machines),
                clock=stage.clock,
                go_on=stage.go_on,
            )
            for contest, point in product(range(self.contests), self.points):
                statements.empty(link)
                scenario = Scenario(
                    self.workload(point, slice_s, contest),
                    (_kind_of(point),) * point.schedulers,
                    lambda store: _nodes(store, stage, self.seed),
                )
                tally = testbed.hold(
                    point,
                    scenario,
                    warm_up_s=warm_up_s,
                    seconds=slice_s - warm_up_s,
                    seed=self.seed + contest,
                )
                yield point, contest, tally, (warm_up_s, warm_up_s + tally.seconds)

    def experiment(
        self, point: Point, workload: Workload, horizon_s: float, number: int
    ) -> Experiment:
        """Return the experiment that is a contest in virtual time."""

        def make(kind: str) -> Scheduler:
            scheduler = find_scheduler(kind)()
            scheduler.rule = ConflictRule(point.rule)
            scheduler.granularity = Granularity(point.granularity)
            if not isinstance(point, LivePoint):
                scheduler.jobs_per_transaction = 1
            return scheduler

        kind = _kind_of(point)
        return Experiment(
            workload=workload,
            architecture=Architecture.SHARED_STATE,
            scheduler=make,
            decision_times={kind: point.decision_time},
            schedulers={kind: point.schedulers},
            assignment=Assignment.LEAST_LOADED,
            give_up=GiveUpPolicy(retry_s=RETRY_S),
            limits=LIMITS,
            horizon_s=horizon_s,
            seed=1_000 * self.seed + number,
        )


def _nodes(store: Store, stage: Stage, seed: int) -> Nodes:
    rng = np.random.default_rng(seed)
    retry = Retry(stage.clock, ignore, stage.settings, rng, stage.stop)
    return Nodes(store, stage.clock, retry, speedup=1.0)


def _kind_of(point: Point) -> str:
    return point.kind if isinstance(point, LivePoint) else BATCH


def _figures_of(row: Mapping[str, Any]) -> dict[str, str]:
    """Return the figures of a row that are compared, with their titles."""
    return {name: title for name, title in {**MEASURES, **SHARES_OFF}.items() if name in row}


def _row(
    point: Point, live: Sequence[Mapping[str, Any]], simulated: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    return {
        "arm": point.arm if isinstance(point, LivePoint) else PAPER,
        "rule": point.rule,
        "schedulers": point.schedulers,
        **compared(MEASURES, live, simulated),
    }


Schedulers = Annotated[str, typer.Option(metavar="N,...", help="Schedulers that compete.")]
Contests = Annotated[int, typer.Option(min=1, max=100, metavar="N", help="Of each setting.")]
MachineCount = Annotated[
    int, typer.Option(min=1, max=MACHINES_MAX, metavar="N", help="Of 4 CPUs each, 75 % taken.")
]


def command(  # noqa: PLR0913, PLR0917 - a parameter is an option
    schedulers: Schedulers = "1,2,4,8",
    contests: Contests = 3,
    arms: Annotated[
        str, typer.Option(metavar="NAME,...", help=f"Of {', '.join(ARMS)}.")
    ] = ",".join(ARMS),
    machines: MachineCount = 250,
    seconds: Seconds = None,
    seed: Seed = 0,
    smoke: Smoke = False,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
    data_dir: DataDir = None,
) -> None:
    """Conflicts and busyness of live schedulers beside those of the same ones simulated.

    Takes a quarter of an hour. One arm alone: --arms partitioned --seconds 120
    """
    benchmark = SideBySide(
        schedulers=numbers(schedulers, option="--schedulers", most=SCHEDULERS_MAX),
        contests=contests,
        arms=words(arms, option="--arms", known=ARMS),
        machines=machines,
        seed=seed,
    )
    if smoke:
        benchmark = replace(
            benchmark,
            schedulers=(1, 2),
            live_schedulers=(2,),
            contests=1,
            rounds=3,
            round_ms=150,
            machines=40,
            t_job_ms=20,
            t_task_ms=1,
            seconds=4.0,
        )
    if seconds is not None:
        benchmark = replace(benchmark, seconds=seconds)
    conduct(benchmark, json_to=json_to, plot_to=plot_to, data_dir=data_dir)
