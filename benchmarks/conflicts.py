"""How often schedulers conflict, and what it costs: the paper's conflict fraction, live.

Processes of the product compete for one cell in Postgres, in steady state. One parameter at a time
is varied around one point, under both conflict rules, incrementally and all or nothing.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import typer
from rich.table import Table

from benchmarks.conflict_comparison import COMPARISONS, compared
from benchmarks.conflict_curves import curves
from benchmarks.harness import Findings, Stage, conduct
from benchmarks.options import DataDir, JsonTo, PlotTo, Seconds, Seed, Smoke, numbers, words
from benchmarks.postgres import statements
from benchmarks.scenarios import Drawn, Replayed, WorkloadSource
from benchmarks.steady_state import AS_RECORDED, FULL, Point, Tally, Testbed, rivals
from omega.config import Settings
from omega.errors import BadInput
from omega.model.claims import ConflictRule, Granularity
from omega.plots.picture import Picture
from omega.reports.wording import things
from omega.store.opening import store_at
from omega.store.postgres.schema import migrate
from omega.terminal.progress import progress_bar

RULES: Final = tuple(rule.value for rule in ConflictRule)
GRANULARITIES: Final = tuple(granularity.value for granularity in Granularity)
AXES: Final = ("schedulers", "t_job_ms", "t_task_ms", "fill", "gap_ms")
"""The parameters that are varied, one at a time."""
WARM_UP: Final = 0.25
"""Share of a contest's time that is discarded."""
SCHEDULERS_MAX: Final = 40
"""Each scheduler has two connections, and the embedded server takes a hundred."""
MACHINES_MAX: Final = 20_000
MS_MAX: Final = 600_000
MANY: Final = "1,2,4,8,16,32"
FEW: Final = "1,2,4,8"
"""Schedulers of each kind of a trace, which has up to three kinds."""
TASKS_MAX: Final = 1_000
SHORT: Final = {
    "n": "schedulers",
    "t_job": "t_job_ms",
    "t_task": "t_task_ms",
    "fill": "fill",
    "gap": "gap_ms",
}
"""Columns of settings, by their headers."""
FIGURES: Final = {
    "conflicts": ("conflict_fraction", 2),
    "claims": ("claim_conflict_fraction", 3),
    "busy": ("busy", 2),
    "wasted": ("thought_wasted", 2),
    "wait s": ("wait_mean_s", 2),
    "tasks/s": ("tasks_per_s", 0),
}
"""Columns of figures, with their digits."""


@dataclass(frozen=True, kw_only=True)
class Conflicts:
    """The parameters of the benchmark."""

    schedulers: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    t_job_ms: tuple[int, ...] = (100, 500, 1_000)
    t_task_ms: tuple[int, ...] = (5,)
    fill: tuple[int, ...] = (60, 80, 95, FULL)
    gap_ms: tuple[int, ...] = (0, 2_000)
    rules: tuple[str, ...] = RULES
    granularity: tuple[str, ...] = GRANULARITIES
    machines: int = 1_000
    tasks_mean: int = 10
    """Mean tasks of a drawn job."""
    arrival_ms: int = 1_000
    """Mean time between two jobs for each scheduler."""
    trace: Path | None = field(default=None, repr=False)
    seconds: float = 540.0
    seed: int = 0

    @property
    def base(self) -> Point:
        """The point around which one parameter at a time is varied."""
        usual = asdict(Point())
        values = {axis: getattr(self, axis) for axis in AXES}
        chosen = {axis: usual[axis] if usual[axis] in v else v[-1] for axis, v in values.items()}
        return Point(**chosen, rule=self.rules[0], granularity=self.granularity[0])

    @property
    def settings(self) -> tuple[Point, ...]:
        """All settings, each to be run under every rule and granularity."""
        varied = (
            replace(self.base, **{axis: value}) for axis in AXES for value in getattr(self, axis)
        )
        return tuple(dict.fromkeys(varied))

    @property
    def points(self) -> tuple[Point, ...]:
        """All contests; those of one setting are adjacent, in random order."""
        rng = np.random.default_rng(self.seed)
        modes = list(product(self.rules, self.granularity))
        return tuple(
            replace(setting, rule=modes[number][0], granularity=modes[number][1])
            for setting in self.settings
            for number in rng.permutation(len(modes)).tolist()
        )

    def ground(self, settings: Settings) -> WorkloadSource:
        """Return the cell and its work. Raises BadInput for more schedulers than can connect."""
        if self.trace is None:
            return Drawn(self.machines, self.tasks_mean, self.arrival_ms)
        trace = Replayed.of(self.trace, self.arrival_ms, self.seed)
        most = max(self.schedulers) * len(trace.kinds)
        if most > SCHEDULERS_MAX:
            raise BadInput(
                f"{most} schedulers, of {', '.join(trace.kinds)}, are more than {SCHEDULERS_MAX}",
                field="--schedulers",
            )
        return trace.in_use(settings, self.seed)

    def measure(self, stage: Stage) -> Findings:
        """Hold all contests; after each, check that the cell holds what was granted."""
        with stage.output.console.status("Preparing the cell"):
            ground = self.ground(stage.settings)
        rows: list[dict[str, Any]] = []
        done: Counter[str] = Counter()
        with progress_bar(stage.output.console) as progress:
            bar = progress.add_task("Starting schedulers", total=len(self.points))
            for point, tally in self._contests(ground, stage):
                rows.append({"workload": ground.name, **asdict(point), **tally.row()})
                done["tasks placed"] += tally.placed
                done["transactions"] += tally.transactions
                progress.update(bar, description=_named(point))
                progress.advance(bar)
        comparisons = {name: compared(rows, comparison) for name, comparison in COMPARISONS.items()}
        summary = {"at": asdict(self.base), **comparisons}
        digest = {"contests": len(rows), **done, "violations": 0}
        return Findings(self._finding(rows, comparisons), rows, summary, digest)

    def show(self, findings: Findings) -> Table:
        """Return all rows as a table."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        for header in ("rule", "granularity"):
            table.add_column(header)
        for header in (*SHORT, *FIGURES):
            table.add_column(header, justify="right")
        for row in findings.rows:
            table.add_row(
                row["rule"],
                row["granularity"],
                *(f"{row[name]:,}" for name in SHORT.values()),
                *("-" if row[n] is None else f"{row[n]:.{d}f}" for n, d in FIGURES.values()),
            )
        return table

    def draw(self, findings: Findings) -> Picture:
        """Return the paper's curves, with one row of panels per varied parameter."""
        varied = [axis for axis in AXES if len(getattr(self, axis)) > 1] or [AXES[0]]
        along = {axis: self._along(findings.rows, axis) for axis in varied}
        return curves(findings.finding, along, note=self._note(findings.rows[0]["workload"]))

    def _contests(self, ground: WorkloadSource, stage: Stage) -> Iterator[tuple[Point, Tally]]:
        """Hold one contest after the other on one cell."""
        slice_s = self.seconds / len(self.points)
        warm_up_s = WARM_UP * slice_s
        most = max(self.schedulers) * len(ground.kinds)
        with ExitStack() as stack:
            url = stack.enter_context(stage.database())
            migrate(url)
            store = stack.enter_context(closing(store_at(url, stage.settings, "omega benchmark")))
            link = stack.enter_context(closing(statements.connect(url)))
            testbed = Testbed(
                rivals=stack.enter_context(rivals(url, most)),
                store=store,
                link=link,
                machines=store.add_machines(ground.machines),
                clock=stage.clock,
                go_on=stage.go_on,
            )
            for point in self.points:
                statements.empty(link)
                scenario = ground.scenario(point, slice_s, self.seed, stage)
                yield (
                    point,
                    testbed.hold(
                        point,
                        scenario,
                        warm_up_s=warm_up_s,
                        seconds=slice_s - warm_up_s,
                        seed=self.seed,
                    ),
                )

    def _along(self, rows: Sequence[Mapping[str, Any]], axis: str) -> list[Mapping[str, Any]]:
        """Return the rows in which only this axis and the mode differ from the base."""
        fixed = {one: value for one, value in asdict(self.base).items() if one in AXES}
        del fixed[axis]
        return [row for row in rows if all(row[one] == fixed[one] for one in fixed)]

    def _finding(
        self, rows: Sequence[Mapping[str, Any]], comparisons: Mapping[str, Mapping[str, Any]]
    ) -> str:
        """Return each mode's conflict fraction with most schedulers, and the comparisons."""
        most = max(self.schedulers)
        at = {
            (row["granularity"], row["rule"]): row["conflict_fraction"]
            for row in self._along(rows, "schedulers")
            if row["schedulers"] == most
        }
        told = "; ".join(
            f"{granularity}, "
            + " and ".join(f"{_fraction(at[granularity, rule])} by {rule}" for rule in self.rules)
            for granularity in self.granularity
        )
        verdicts = [
            f"{comparison.finer} conflicts less than {comparison.coarser} in {found['less']} of"
            f" {things(found['pairs'], 'setting')}, {found['significantly_less']} beyond chance"
            + (
                f", the reverse in {found['significantly_more']}"
                * bool(found["significantly_more"])
            )
            + _placing(found["tasks_finer_over_coarser"])
            for comparison, found in zip(COMPARISONS.values(), comparisons.values(), strict=True)
            if found["pairs"]
        ]
        return "; ".join([f"Conflict fraction of {most} schedulers: {told}", *verdicts])

    def _note(self, workload: str) -> str:
        base = self.base
        drawn = workload == Drawn.name
        where = (
            f"{self.machines:,} machines of 4 CPUs, jobs of {self.tasks_mean} tasks"
            if drawn
            else f"the trace {workload}"
        )
        filled = f", {base.fill} % full" if drawn else ""
        return (
            f"{where}; unless varied: {base.schedulers} schedulers, t_job {base.t_job_ms} ms,"
            f" t_task {base.t_task_ms} ms{filled};"
            f" {self.seconds / len(self.points):.2g} s each, the first quarter discarded"
        )


def _named(point: Point) -> str:
    return f"{point.schedulers} schedulers, {point.rule}, {point.granularity}"


def _placing(ratio: float | None) -> str:
    return "" if ratio is None else f", and places {ratio:.2f} x the tasks"


def _fraction(value: float | None) -> str:
    """Write a conflict fraction; it has no value where no transaction was without conflict."""
    return "-" if value is None else f"{value:.2f}"


SMOKE: Final = Conflicts(
    schedulers=(1, 2),
    t_job_ms=(5,),
    t_task_ms=(1,),
    fill=(80, FULL),
    gap_ms=(0, 50),
    machines=20,
    tasks_mean=3,
    arrival_ms=20,
    seconds=1.0,
)
SMOKE_OF_TRACE: Final = replace(
    SMOKE, schedulers=(1,), fill=(AS_RECORDED,), gap_ms=(0,), seconds=0.5
)


Schedulers = Annotated[
    str | None,
    typer.Option(
        metavar="N,...",
        help=f"Schedulers that compete; {MANY} if not given, of a trace {FEW} of each kind.",
    ),
]
TJob = Annotated[
    str, typer.Option("--t-job-ms", metavar="MS,...", help="Time of a decision, for its job.")
]
TTask = Annotated[
    str, typer.Option("--t-task-ms", metavar="MS,...", help="And for each of its tasks.")
]
Fill = Annotated[str, typer.Option(metavar="%,...", help="Of the cell; 99: full, and churning.")]
Gap = Annotated[
    str,
    typer.Option(
        "--gap-ms", metavar="MS,...", help="Between two refreshes; 0: before each attempt."
    ),
]
Rules = Annotated[str, typer.Option(metavar="NAME,...", help="Conflict rules.")]
Granularities = Annotated[
    str, typer.Option(metavar="NAME,...", help="What a refused claim does to its siblings.")
]
MachineCount = Annotated[
    int, typer.Option(min=1, max=MACHINES_MAX, metavar="N", help="Of 4 CPUs each.")
]
Tasks = Annotated[
    int, typer.Option(min=1, max=TASKS_MAX, metavar="N", help="Of a job, on average.")
]
ArrivalMs = Annotated[
    int,
    typer.Option(
        "--arrival-ms",
        min=1,
        max=MS_MAX,
        metavar="MS",
        help="Between two jobs for each scheduler, on average.",
    ),
]
Trace = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="A published trace's folder, instead of drawn work."),
]


def command(  # noqa: PLR0913, PLR0917 - a parameter is an option
    schedulers: Schedulers = None,
    t_job: TJob = "100,500,1000",
    t_task: TTask = "5",
    fill: Fill = "60,80,95,99",
    gap: Gap = "0,2000",
    rules: Rules = "fit,sequence",
    granularity: Granularities = "incremental,all-or-nothing",
    machines: MachineCount = 1_000,
    tasks: Tasks = 10,
    arrival: ArrivalMs = 1_000,
    trace: Trace = None,
    seconds: Seconds = None,
    seed: Seed = 0,
    smoke: Smoke = False,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
    data_dir: DataDir = None,
) -> None:
    """How often live schedulers conflict, and what it costs them, by how many there are.

    Takes a quarter of an hour; --schedulers 4,16 --fill 80 --gap-ms 0 --seconds 120 is shorter.
    """
    number_of_schedulers = schedulers or (MANY if trace is None else FEW)
    asked = Conflicts(
        schedulers=numbers(number_of_schedulers, option="--schedulers", most=SCHEDULERS_MAX),
        t_job_ms=numbers(t_job, option="--t-job-ms", most=MS_MAX),
        t_task_ms=numbers(t_task, option="--t-task-ms", most=MS_MAX, least=0),
        fill=numbers(fill, option="--fill", most=FULL) if trace is None else (AS_RECORDED,),
        gap_ms=numbers(gap, option="--gap-ms", most=MS_MAX, least=0),
        rules=words(rules, option="--rules", known=RULES),
        granularity=words(granularity, option="--granularity", known=GRANULARITIES),
        machines=machines,
        tasks_mean=tasks,
        arrival_ms=arrival,
        trace=trace,
        seed=seed,
    )
    benchmark = asked
    if smoke:
        benchmark = SMOKE if trace is None else replace(SMOKE_OF_TRACE, trace=trace)
    if seconds is not None:
        benchmark = replace(benchmark, seconds=seconds)
    conduct(benchmark, json_to=json_to, plot_to=plot_to, data_dir=data_dir)
