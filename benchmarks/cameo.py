"""Pipelines with tight targets beside many with lax ones, in six orders of the queue.

Stages are requests to language models, from a published trace; what a token costs is ours. Compared
are loads, the noise of costs, a tenfold spike, and tokens, with live schedulers in virtual time.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import typer
from rich.console import Group, RenderableType
from rich.table import Table

from benchmarks.cameo_cell import LAX, TIGHT, Play, play, play_tokens
from benchmarks.cameo_claims import EDF, FIFO, LLF, SJF, TOKENS, claims_of
from benchmarks.harness import Findings, Stage, conduct
from benchmarks.options import DataDir, JsonTo, PlotTo, Seed, Smoke
from benchmarks.paper.claims import table, where
from benchmarks.paper.figure import Workers, run_all
from omega.errors import BadInput
from omega.plots.picture import Picture, series
from omega.sim.sweep import Trial
from omega.terminal.options import number_option

ORDERS: Final = (FIFO, LLF, EDF, SJF)
LABELS: Final[Mapping[str, str]] = {
    FIFO: "FIFO",
    LLF: "least laxity",
    EDF: "earliest deadline",
    SJF: "shortest stage",
}
LOADS: Final = (0.5, 0.8, 0.95)
SIGMAS: Final = (0.0, 0.5, 1.0)
NOISE_LOAD: Final = 0.85
SPIKE_LOAD: Final = 0.7
MEASURES: Final = ("tight_p50_s", "tight_p99_s", "tight_success", "lax_p99_s", "recover_s")


@dataclass(frozen=True, kw_only=True)
class Cameo:
    """The parameters of the benchmark."""

    trace: Path = field(default=Path(), repr=False)
    slots: int = 16
    horizon_s: float = 90.0
    replicas: int = 2
    loads: tuple[float, ...] = LOADS
    sigmas: tuple[float, ...] = SIGMAS
    seeds: int = 3
    seed: int = 0
    workers: int = 1

    def measure(self, stage: Stage) -> Findings:
        """Run everything with every seed."""
        plays = self._plays()
        seeds = range(self.seed, self.seed + self.seeds)
        trials = [
            Trial(number, seed, replace(one, seed=seed))
            for number, (_, one) in enumerate(plays)
            for seed in seeds
        ]
        found: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
        done = run_all(stage, play, trials, workers=self.workers)
        for trial, figures in sorted(done, key=lambda one: one[0].seed):
            found[trial.point].append(figures)
        rows = [
            _row(experiment, one, found[number]) for number, (experiment, one) in enumerate(plays)
        ]
        by_token = replace(plays[0][1], order=TOKENS, slots=8)
        tokens = [
            figures
            for _, figures in sorted(
                run_all(
                    stage,
                    play_tokens,
                    [Trial(0, seed, replace(by_token, seed=seed)) for seed in seeds],
                    workers=self.workers,
                ),
                key=lambda one: one[0].seed,
            )
        ]
        claims = [claim.row() for claim in claims_of(rows, tokens)]
        summary = {"claims": claims, "tokens": tokens}
        digest = {"runs": len(trials) + len(tokens), "stages": sum(row["stages"] for row in rows)}
        return Findings(_finding(rows, claims), rows, summary, digest)

    def _plays(self) -> list[tuple[str, Play]]:
        """Return the name of its experiment and the parameters of each run."""
        base = Play(
            trace=self.trace,
            order=LLF,
            slots=self.slots,
            horizon_s=self.horizon_s,
            replicas=self.replicas,
        )
        noisy = replace(base, load=NOISE_LOAD)
        return [
            ("alone", replace(base, alone=True)),
            *(
                ("load", replace(base, order=order, load=load))
                for load in self.loads
                for order in ORDERS
            ),
            *(
                ("noise", replace(noisy, order=order, sigma=sigma))
                for sigma in self.sigmas
                for order in (LLF, SJF)
            ),
            *(("noise alone", replace(noisy, alone=True, sigma=sigma)) for sigma in self.sigmas),
            *(("spike", replace(base, order=it, load=SPIKE_LOAD, spike=True)) for it in ORDERS),
        ]

    def show(self, findings: Findings) -> RenderableType:
        """Return a line for each point, then the claims."""
        shown = Table(box=None, pad_edge=False, header_style="bold")
        for name in ("experiment", "order"):
            shown.add_column(name)
        for name in ("load", "sigma", "tight p50", "tight p99, s", "in time", "lax p99, s", "late"):
            shown.add_column(name, justify="right")
        for row in findings.rows:
            shown.add_row(
                row["experiment"],
                row["order"],
                f"{row['load']:.0%}",
                f"{row['sigma']:g}",
                *(_told(row, name) for name in MEASURES),
            )
        return Group(shown, "", table(findings.summary["claims"]), "")

    def draw(self, findings: Findings) -> Picture:
        """Draw the p99 of both groups by load, and success by noise."""
        picture = Picture(
            findings.finding,
            columns=3,
            note=f"{self.slots} slots, {self.replicas} replicas; requests of azure-llm-2023, costs"
            f" are ours; means of {self.seeds} seeds",
        )
        tight, lax, noise = picture.panels[0]
        for number, order in enumerate(ORDERS):
            mine = where(findings.rows, experiment="load", order=order)
            for panel, measure in ((tight, "tight_p99_s"), (lax, "lax_p99_s")):
                points = [(row["load"], row[measure]) for row in mine]
                series(panel, number, points, LABELS[order])
            by_noise = where(findings.rows, experiment="noise", order=order)
            if by_noise:
                points = [(row["sigma"], row["tight_success"]) for row in by_noise]
                series(noise, number, points, LABELS[order])
        alone = where(findings.rows, experiment="noise alone")
        points = [(row["sigma"], row["tight_success"]) for row in alone]
        series(noise, len(ORDERS), points, "tight alone")
        for panel, x, y in (
            (tight, "load", "p99 of tight pipelines, s"),
            (lax, "load", "p99 of lax pipelines, s"),
            (noise, "sigma of the costs", "tight pipelines in time"),
        ):
            panel.set_xlabel(x)
            panel.set_ylabel(y)
            panel.set_ylim(bottom=0)
        return picture


def _row(experiment: str, one: Play, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the means and standard deviations of a point over the seeds."""
    row: dict[str, Any] = {
        "experiment": experiment,
        "order": one.order,
        "load": 0.15 if one.alone else one.load,
        "sigma": one.sigma,
        "stages": sum(run["stages"] for run in runs),
        "pipelines": sum(run[TIGHT]["pipelines"] for run in runs),
    }
    values = {
        "tight_p50_s": [run[TIGHT]["p50_s"] for run in runs],
        "tight_p99_s": [run[TIGHT]["p99_s"] for run in runs],
        "tight_success": [run[TIGHT]["success"] for run in runs],
        "lax_p99_s": [run[LAX]["p99_s"] for run in runs],
        "recover_s": [run["recover_s"] for run in runs],
    }
    for name, its in values.items():
        known = [value for value in its if value is not None]
        row[name] = round(float(np.mean(known)), 4) if known else None
        row[f"{name}_sd"] = round(float(np.std(known, ddof=1)), 4) if len(known) > 1 else None
    return row


def _told(row: Mapping[str, Any], name: str) -> str:
    value, deviation = row[name], row[f"{name}_sd"]
    if value is None:
        return "-"
    told = f"{value:.1%}" if name == "tight_success" else f"{value:.1f}"
    if deviation is None:
        return told
    return (
        f"{told} (sd {deviation:.1%})" if name == "tight_success" else f"{told} ({deviation:.1f})"
    )


def _finding(rows: Sequence[Mapping[str, Any]], claims: Sequence[Mapping[str, Any]]) -> str:
    load = max(row["load"] for row in where(rows, experiment="load"))
    p99 = {
        order: where(rows, experiment="load", order=order, load=load)[0]["tight_p99_s"]
        for order in (LLF, FIFO)
    }
    (alone,) = where(rows, experiment="alone")
    held = sum(claim["holds"] for claim in claims)
    return (
        f"At {load:.0%} load tight pipelines have a p99 of {p99[LLF]:.1f} s by least laxity, of"
        f" {p99[FIFO]:.1f} s by FIFO, and of {alone['tight_p99_s']:.1f} s alone; {held} of"
        f" {len(claims)} claims hold"
    )


SMOKE: Final = Cameo(slots=8, horizon_s=15.0, loads=(0.9,), sigmas=(0.0, 1.0), seeds=1)


def command(  # noqa: PLR0913, PLR0917 - a parameter is an option
    trace: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="The folder of azure-llm-2023.", show_default=False),
    ] = None,
    slots: Annotated[int, typer.Option(min=8, max=4_096, metavar="N", help="Cores.")] = 16,
    horizon: Annotated[
        float, number_option(lowest=10, highest=3_000, metavar="S", help="Time of arrivals.")
    ] = 90.0,
    replicas: Annotated[int, typer.Option(min=1, max=16, metavar="N")] = 2,
    seeds: Annotated[int, typer.Option(min=1, max=100, metavar="N", help="Runs of each.")] = 3,
    seed: Seed = 0,
    workers: Workers = 1,
    smoke: Smoke = False,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
    data_dir: DataDir = None,
) -> None:
    """Start deadlines: tight pipelines beside lax ones, by load, noise, a spike, and tokens.

    Takes seven minutes of one core.
    """
    if trace is None:
        raise BadInput("say where the trace azure-llm-2023 is", field="--trace")
    benchmark = Cameo(
        trace=trace,
        slots=slots - slots % 4,
        horizon_s=horizon,
        replicas=replicas,
        seeds=seeds,
        seed=seed,
        workers=workers,
    )
    if smoke:
        benchmark = replace(SMOKE, trace=trace, seed=seed)
    conduct(benchmark, json_to=json_to, plot_to=plot_to, data_dir=data_dir)
