"""Choosy's shares beside constrained max-min fairness, and how fast a newcomer gets its share.

The tenants are Philly's virtual clusters, the machines and the mix of GPU constraints are openb's.
Live scheduler processes lease in the orders choosy, drf and fifo, in virtual time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log
from pathlib import Path
from statistics import fmean, stdev
from typing import Annotated, Any, Final

import typer
from rich.console import Group, RenderableType
from rich.table import Table

from benchmarks.choosy_cell import (
    BY_JOB,
    BY_TENANT,
    Play,
    RampPlay,
    SharesPlay,
    compare_shares,
    ramp_up,
)
from benchmarks.choosy_claims import RAMP_UP, SHARES, claims_of
from benchmarks.choosy_tenants import site
from benchmarks.harness import Findings, Stage, conduct
from benchmarks.options import DataDir, JsonTo, PlotTo, Seed, Smoke, words
from benchmarks.paper.claims import table, where
from benchmarks.paper.figure import Workers, run_all
from omega.model.lanes import QueueOrder
from omega.plots.picture import Picture, series
from omega.sim.sweep import Figures, Trial, mean_and_deviation
from omega.terminal.options import number_option

EXPERIMENTS: Final = ("by-tenant", "by-job", RAMP_UP)
CONSTRAINTS: Final = {"by-tenant": BY_TENANT, "by-job": BY_JOB}
CHOOSY, DRF, FIFO = (order.value for order in (QueueOrder.CHOOSY, QueueOrder.DRF, QueueOrder.FIFO))
ORDERS: Final = {"by-tenant": (CHOOSY, FIFO), "by-job": (CHOOSY, DRF, FIFO)}
"""With constraints by tenant, each has one lane, and DRF serves as Choosy does: it is left out."""
PICKINESS: Final = {0.1: 6, 0.5: 2, 0.9: 2}
"""Pickiness of newcomers, and how many of them arrive; the less picky take less time."""
MEASURES: Final = ("relative_mean", "rms_p90", "rms_mean", "used_mean", "smallest_over_fair")
RAMP_GAP_MIN: Final = 0.2
"""The gap of reads in runs with newcomers is the other runs', times their pickiness or this."""
RUNS: Final = {"by-tenant": (4.0, 5.0), "by-job": (1.25, 2.25)}
"""When shares begin to count and when a run ends, in mean durations of a task. If each tenant has
jobs for any machine, it has its share from the beginning."""


@dataclass(frozen=True, kw_only=True)
class Choosy:
    """The parameters of the benchmark."""

    experiments: tuple[str, ...] = EXPERIMENTS
    every: int = 4
    task_s: float = 60.0
    gap_s: float = 0.5
    replicas: int = 1
    load: float = 1.5
    look: float = 0.1
    length: float = 1.0
    """Relative length of the runs that compare shares."""
    arrivals: int = 1
    """Relative number of newcomers."""
    pickiness: tuple[float, ...] = field(default=tuple(PICKINESS), repr=False)
    """Which of PICKINESS to run; the rows have it."""
    seeds: int = 3
    seed: int = 0
    workers: int = 1
    openb: Path | None = field(default=None, repr=False)
    philly: Path | None = field(default=None, repr=False)

    def measure(self, stage: Stage) -> Findings:
        """Run every experiment with every seed."""
        name = site(self.openb, self.philly, every=self.every).name
        plays = self._plays()
        trials = [
            Trial(number, seed, replace(play, seed=seed))
            for number, play in enumerate(plays)
            for seed in range(self.seed, self.seed + self.seeds)
        ]
        found: list[list[Figures]] = [[] for _ in plays]
        for trial, figures in sorted(
            run_all(stage, run, trials, workers=self.workers), key=lambda one: one[0].seed
        ):
            found[trial.point].append(figures)
        rows = [_row(play, figures) for play, figures in zip(plays, found, strict=True)]
        claims = [claim.row() for claim in claims_of(rows)]
        digest = {"runs": len(trials), "tasks placed": sum(row["tasks_placed"] for row in rows)}
        held = sum(claim["holds"] for claim in claims)
        finding = f"On {name}, {held} of {len(claims)} claims on Choosy hold"
        return Findings(finding, rows, {"site": name, "claims": claims}, digest)

    def _plays(self) -> list[Play]:
        base: dict[str, Any] = {
            "seed": self.seed,
            "openb": self.openb,
            "philly": self.philly,
            "every": self.every,
            "task_s": self.task_s,
            "replicas": self.replicas,
        }
        of_shares: list[Play] = [
            SharesPlay(
                **base,
                order=order,
                gap_s=self.gap_s,
                constraints=CONSTRAINTS[experiment],
                load=self.load,
                ramp=RUNS[experiment][0] * self.length,
                lasts=RUNS[experiment][1] * self.length,
                look=self.look,
            )
            for experiment in self.experiments
            if experiment in CONSTRAINTS
            for order in ORDERS[experiment]
        ]
        of_ramp: list[Play] = [
            RampPlay(
                **base,
                order=CHOOSY,
                gap_s=self.gap_s * max(pickiness, RAMP_GAP_MIN),
                pickiness=pickiness,
                arrivals=self.arrivals * arrivals,
            )
            for pickiness, arrivals in PICKINESS.items()
            if RAMP_UP in self.experiments and pickiness in self.pickiness
        ]
        return of_shares + of_ramp

    def show(self, findings: Findings) -> RenderableType:
        """Return the distances from fair shares, and the claims."""
        shown = Table(box=None, pad_edge=False, header_style="bold")
        for name in ("constraints", "order"):
            shown.add_column(name)
        for name in ("mean relative difference", "RMS error, p90", "GPUs in use"):
            shown.add_column(name, justify="right")
        for row in where(findings.rows, experiment=SHARES):
            shown.add_row(
                row["constraints"],
                row["order"],
                *(f"{row[name]:.2%}" for name in ("relative_mean", "rms_p90", "used_mean")),
            )
        return Group(shown, "", table(findings.summary["claims"]), "")

    def draw(self, findings: Findings) -> Picture:
        """Draw the RMS error over time by order, and the ramp-up beside the formula."""
        both = [name for name in CONSTRAINTS if name in self.experiments]
        panels = len(both) + (RAMP_UP in self.experiments)
        picture = Picture(
            findings.finding,
            columns=panels,
            note=f"means of {self.seeds} seeds; T is the mean duration of a task,"
            f" {self.task_s:g} s; shares are read every {self.gap_s:g} s, or oftener for ramp-up",
        )
        for panel, experiment in zip(picture.panels[0], both, strict=False):
            constraints = CONSTRAINTS[experiment]
            for number, order in enumerate(ORDERS[experiment]):
                (row,) = where(
                    findings.rows, experiment=SHARES, constraints=constraints, order=order
                )
                points = [(at, max(rms * 100, 1e-3)) for at, rms in row["rms"]]
                series(panel, number, points, order)
            panel.axhline(0.2, color="#111111", linestyle=":", linewidth=1.2, label="0.2 %")
            panel.axvline(RUNS[experiment][0] * self.length, color="#6b7280", linewidth=1.0)
            panel.set_title(f"constraints {constraints}", fontsize=10)
            panel.set_xlabel("time, T; from the line on it counts")
            panel.set_ylabel("RMS error of shares, % of the cell")
            panel.set_yscale("log")
        if RAMP_UP in self.experiments:
            _draw_ramp(picture.panels[0, -1], where(findings.rows, experiment=RAMP_UP))
        return picture


def _draw_ramp(panel: Any, rows: Sequence[Mapping[str, Any]]) -> None:  # noqa: ANN401 - matplotlib's axes
    curve = [number / 100 for number in range(2, 96)]
    panel.plot(
        curve,
        [log(1 / (1 - p)) for p in curve],
        color="#111111",
        linestyle=":",
        label="ln(1/(1-p))",
    )
    for row in rows:
        panel.plot([row["pickiness"]] * len(row["took"]), row["took"], "x", color="#4aa3ff")
    means = [row["took_mean"] for row in rows]
    panel.plot([row["pickiness"] for row in rows], means, "o", color="#0b5cad", label="mean")
    panel.set_title("ramp-up of a newcomer", fontsize=10)
    panel.set_xlabel("pickiness p: machines needed / machines allowed")
    panel.set_ylabel("time to its share, T")


def run(play: Play) -> Figures:
    """Run one simulation to its end."""
    if isinstance(play, SharesPlay):
        return compare_shares(play)
    assert isinstance(play, RampPlay)
    return ramp_up(play)


def _row(play: Play, runs: Sequence[Figures]) -> dict[str, Any]:
    """Return the row of a setting: means and deviations over the seeds."""
    placed = sum(one["tasks_placed"] for one in runs)
    if isinstance(play, SharesPlay):
        means, deviations = mean_and_deviation(
            [{name: one[name] for name in MEASURES} for one in runs]
        )
        by_time = zip(*(one["looks"] for one in runs), strict=True)
        return {
            "experiment": SHARES,
            "constraints": play.constraints,
            "order": play.order,
            **means,
            "deviation": deviations,
            "tasks_placed": placed,
            "rms": [
                [looks[0]["at"], round(fmean(look["rms"] for look in looks), 6)]
                for looks in by_time
            ],
            "last": [{name: one["looks"][-1][name] for name in ("share", "fair")} for one in runs],
        }
    assert isinstance(play, RampPlay)
    took = [each for one in runs for each in one["took"]]
    return {
        "experiment": RAMP_UP,
        "pickiness": play.pickiness,
        "theory": log(1 / (1 - play.pickiness)),
        "took_mean": fmean(took),
        "took_sd": stdev(took) if len(took) > 1 else None,
        "arrivals": len(took),
        "took": took,
        "tenants": runs[0]["tenants"],
        "allowed": [one["allowed"] for one in runs],
        "wanted": [one["wanted"] for one in runs],
        "tasks_placed": placed,
    }


SMOKE: Final = Choosy(every=1, task_s=2.0, gap_s=0.2, look=0.2, length=0.3, seeds=1)

Folder = Annotated[Path | None, typer.Option(metavar="DIR", help="The folder of this trace.")]
Few = Annotated[int, typer.Option(min=1, max=64, metavar="N")]


def command(  # noqa: PLR0913, PLR0917 - a parameter is an option
    openb: Folder = None,
    philly: Folder = None,
    experiments: Annotated[
        str, typer.Option(metavar="NAME,...", help=", ".join(EXPERIMENTS) + ".")
    ] = ",".join(EXPERIMENTS),
    every: Annotated[
        int, typer.Option(min=1, max=1_000, metavar="N", help="Take one of N machines of openb.")
    ] = 4,
    gap: Annotated[
        float,
        number_option(lowest=0.01, highest=60, metavar="S", help="How often shares are read."),
    ] = 0.5,
    replicas: Few = 1,
    arrivals: Annotated[
        int, typer.Option(min=1, max=1_000, metavar="N", help="N times as many newcomers.")
    ] = 1,
    pickiness: Annotated[
        str, typer.Option(metavar="P,...", help="Of newcomers: some of those by default.")
    ] = ",".join(map(str, PICKINESS)),
    seeds: Annotated[int, typer.Option(min=1, max=100, metavar="N", help="Runs of each.")] = 3,
    seed: Seed = 0,
    workers: Workers = 1,
    smoke: Smoke = False,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
    data_dir: DataDir = None,
) -> None:
    """Shares under Choosy, DRF and FIFO beside fair ones with constraints; ramp-up of a newcomer.

    Without --openb and --philly the machines and tenants are made up.
    """
    benchmark = Choosy(
        experiments=words(experiments, option="--experiments", known=EXPERIMENTS),
        every=every,
        gap_s=gap,
        replicas=replicas,
        arrivals=arrivals,
        pickiness=tuple(
            map(float, words(pickiness, option="--pickiness", known=tuple(map(str, PICKINESS))))
        ),
        seeds=seeds,
        seed=seed,
        workers=workers,
        openb=openb,
        philly=philly,
    )
    if smoke:
        chosen = benchmark.experiments
        benchmark = replace(SMOKE, experiments=chosen, seed=seed, openb=openb, philly=philly)
    conduct(benchmark, json_to=json_to, plot_to=plot_to, data_dir=data_dir)
