"""The time to solve GPU policies, beside the same policies in a modelling layer.

No database is used. Jobs are drawn (gpu_jobs.py); omega's time includes the search for groups of
equal jobs. Both are solved in turns on the same jobs, and must reach the same objective.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Annotated, Any, Final

import numpy as np
import typer
from rich.table import Table

from benchmarks.gpu_jobs import drawn_problem, without_last
from benchmarks.harness import Findings, Stage, conduct
from benchmarks.options import DataDir, JsonTo, PlotTo, Seed, Smoke, numbers
from benchmarks.ratios import paired
from omega.errors import BadInput, InvariantBroken
from omega.plots.picture import Picture, magnitudes, series, steps
from omega.terminal.progress import progress_bar
from schedulers.ml_gpu.policies.named import POLICIES, solver_of
from schedulers.ml_gpu.problem import Problem, measures

JOBS_MAX: Final = 1_000_000
AGREES: Final = 1e-4
"""How far the two objectives may differ: the modelling layer's solver stops at about 1e-5."""
PACKED: Final = "max_min_fairness_packed"
PLAIN: Final = "max_min_fairness_perf"
NAMES: Final = (
    PLAIN,
    PACKED,
    "max_min_fairness_water_filling_perf",
    "finish_time_fairness_perf",
    "min_total_duration_perf",
    "max_sum_throughput_perf",
)


@dataclass(frozen=True, kw_only=True)
class GavelPolicies:
    """The parameters of the benchmark."""

    jobs: tuple[int, ...] = (32, 128, 512, 2_048, 8_192, 32_768, 131_072)
    modelled_max: int = 8_192
    """Most jobs for which the modelling layer is measured, too."""
    modelled_packed_max: int = 512
    """The same where two jobs may share a GPU, which makes a variable of each pair."""
    rounds: int = 5
    seed: int = 0

    def measure(self, stage: Stage) -> Findings:
        """Solve all policies for all sizes, omega's and the modelling layer's in turns."""
        rows: list[dict[str, Any]] = []
        with progress_bar(stage.output.console) as progress:
            bar = progress.add_task("", total=len(self.jobs) * len(NAMES))
            for jobs in self.jobs:
                for name in NAMES:
                    progress.update(bar, description=f"{name}, {jobs:,} jobs")
                    rows.append(self._row(stage, name, jobs))
                    progress.advance(bar)
        summary = {
            "solve_ms": _by(rows, "solve_ms"),
            "again_ms": _by(rows, "again_ms"),
            "times_faster": _by(rows, "times_faster"),
            "worst_difference": max(row["difference"] or 0.0 for row in rows),
        }
        digest = {f"{row['policy']}, {row['jobs']}": row["objective"] for row in rows}
        return Findings(self._finding(rows), rows, summary, digest)

    def show(self, findings: Findings) -> Table:
        """Return milliseconds, and how many times as fast omega is, one line per policy."""
        title = "milliseconds to solve (times as fast as the modelling layer), by jobs"
        table = Table(box=None, pad_edge=False, header_style="bold", title=title)
        table.add_column("policy", no_wrap=True)
        for jobs in self.jobs:
            table.add_column(f"{jobs:,}", justify="right")
        for name in NAMES:
            rows = [row for row in findings.rows if row["policy"] == name]
            table.add_row(name, *map(_told, rows))
        return table

    def draw(self, findings: Findings) -> Picture:
        """Return times to solve by jobs: omega's, and the modelling layer's."""
        picture = Picture(
            findings.finding,
            columns=2,
            note=f"jobs of one GPU, 26 models, three types; medians of {self.rounds}, one core",
        )
        titles = ("omega, groups of jobs", "the same in cvxpy, its default solver")
        for panel, key, title in zip(
            picture.panels[0], ("solve_ms", "modelled_ms"), titles, strict=True
        ):
            for number, name in enumerate(NAMES):
                points = [
                    (row["jobs"], row[key])
                    for row in findings.rows
                    if row["policy"] == name and row[key] is not None
                ]
                if points:
                    series(panel, number, points, name)
            steps(panel, self.jobs)
            magnitudes(panel)
            panel.set_title(title, fontsize=10)
            panel.set_xlabel("jobs")
            panel.set_ylabel("time to solve, ms")
        return picture

    def _row(self, stage: Stage, name: str, jobs: int) -> dict[str, Any]:
        model = self._model(name, jobs)
        ours: list[float] = []
        theirs: list[float] = []
        difference = 0.0
        objective = np.nan
        solves = 0
        again: list[float] = []
        for number in range(self.rounds):
            stage.go_on()
            problem = drawn_problem(jobs, np.random.default_rng([self.seed, jobs, number]))
            began = stage.clock.now()
            found = POLICIES[name].solve(problem, np.random.default_rng(0))
            ours.append(stage.clock.now() - began)
            solves = max(solves, found.solves)
            if POLICIES[name].again is not None:
                again.append(self._again(stage, name, problem))
            objective = measures(problem, found)[POLICIES[name].measure]
            if model is not None:
                problem = _anew(problem)
                began = stage.clock.now()
                reached = model(problem)
                theirs.append(stage.clock.now() - began)
                difference = max(difference, abs(objective / reached - 1))
        if difference > AGREES:
            raise InvariantBroken(f"{name}: the two objectives differ by {difference:.1e}")
        ratio = paired(theirs, ours) if theirs else None
        return {
            "policy": name,
            "jobs": jobs,
            "solve_ms": round(1_000 * median(ours), 3),
            "again_ms": round(1_000 * median(again), 3) if again else None,
            "modelled_ms": round(1_000 * median(theirs), 3) if theirs else None,
            "times_faster": None if ratio is None else ratio.rounded(),
            "difference": difference if theirs else None,
            "objective": objective,
            "solves": solves,
        }

    def _again(self, stage: Stage, name: str, problem: Problem) -> float:
        """Return the seconds to solve again when one job has left since the last solve."""
        solve = solver_of(POLICIES[name])
        solve(problem, np.random.default_rng(0))
        fewer = without_last(problem)
        began = stage.clock.now()
        solve(fewer, np.random.default_rng(0))
        return stage.clock.now() - began

    def _model(self, name: str, jobs: int) -> Any:  # noqa: ANN401 - a Model or None
        if jobs > (self.modelled_packed_max if name == PACKED else self.modelled_max):
            return None
        try:
            # Imported here: no other module needs it, and it takes a second.
            from benchmarks.cvxpy_policies import MODELS  # noqa: PLC0415
        except ImportError as error:
            raise BadInput(f"the modelling layer is not installed (extra bench): {error}") from None
        return MODELS.get(name)

    def _finding(self, rows: Sequence[Mapping[str, Any]]) -> str:
        largest = max(row["jobs"] for row in rows)
        (whole,) = (r for r in rows if (r["jobs"], r["policy"]) == (largest, PLAIN))
        parts = []
        for name, what in ((PLAIN, "max-min fairness"), (PACKED, "with two jobs on a GPU")):
            beside = [row for row in rows if row["policy"] == name and row["times_faster"]]
            if beside:
                row = max(beside, key=lambda one: one["jobs"])
                times = row["times_faster"]["median"]
                parts.append(f"{what} {times:,.0f} times as fast at {row['jobs']:,} jobs")
        against = f", against a modelling layer {', '.join(parts)}" if parts else ""
        return f"{largest:,} jobs are divided fairly in {whole['solve_ms']:,.0f} ms{against}"


def _anew(problem: Problem) -> Problem:
    """Return a copy of the problem without cached results, for the other side."""
    return replace(problem)


def _by(rows: Sequence[Mapping[str, Any]], key: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = defaultdict(dict)
    for row in rows:
        if row[key] is not None:
            found[row["policy"]][str(row["jobs"])] = row[key]
    return dict(found)


def _told(row: Mapping[str, Any]) -> str:
    ms = f"{row['solve_ms']:,.1f}"
    return f"{ms} ({row['times_faster']['median']:,.0f} x)" if row["times_faster"] else ms


def command(  # noqa: PLR0913, PLR0917 - a parameter is an option
    jobs: Annotated[
        str, typer.Option(metavar="N,...", help="Numbers of jobs.")
    ] = "32,128,512,2048,8192,32768,131072",
    modelled_max: Annotated[
        int, typer.Option(min=0, metavar="N", help="Jobs up to which cvxpy is asked, too.")
    ] = 8_192,
    modelled_packed_max: Annotated[
        int, typer.Option(min=0, metavar="N", help="The same where two jobs may share a GPU.")
    ] = 512,
    rounds: Annotated[int, typer.Option(min=1, metavar="N", help="Sets of jobs a size.")] = 5,
    seed: Seed = 0,
    smoke: Smoke = False,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
    data_dir: DataDir = None,
) -> None:
    """Time that GPU policies take to solve, beside the same in a modelling layer.

    Takes some minutes, nearly all of them the modelling layer's.
    """
    benchmark = GavelPolicies(
        jobs=numbers(jobs, option="--jobs", most=JOBS_MAX),
        modelled_max=modelled_max,
        modelled_packed_max=modelled_packed_max,
        rounds=rounds,
        seed=seed,
    )
    if smoke:
        benchmark = GavelPolicies(jobs=(8, 12), rounds=1, seed=seed)
    conduct(benchmark, json_to=json_to, plot_to=plot_to, data_dir=data_dir)
