"""ParSync's strategies in virtual time: delay, quality and conflicts, by phase of load.

There are the paper's two experiments at a twentieth of its scale, a comparison of ways to read, the
effect of the fresh rows of refusals, and the formula for conflicts.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated, Any, Final

import numpy as np
import typer
from rich.console import Group, RenderableType
from rich.table import Table

from benchmarks.conflict_formula import drawn, expected
from benchmarks.harness import Findings, Stage, conduct
from benchmarks.options import DataDir, JsonTo, PlotTo, Seed, Smoke
from benchmarks.paper.claims import table, where
from benchmarks.paper.figure import Workers, run_all
from benchmarks.parsync_cell import (
    APART,
    AT_ONCE,
    GROUPS,
    SAME,
    WHOLE,
    Play,
    Scale,
    loads_of_all,
    play,
)
from benchmarks.parsync_claims import Formula, claims_of
from omega.plots.picture import Picture, Stroke, series
from omega.sim.sweep import Trial
from omega.terminal.options import number_option

ARMS: Final = {
    "StateSync": ("quality-first", AT_ONCE),
    "quality-first": ("quality-first", APART),
    "latency-first": ("latency-first", APART),
    "adaptive": ("adaptive", APART),
}
"""(strategy, way to read) of each arm, by name."""
READING: Final = tuple(product(("quality-first", "latency-first"), (WHOLE, AT_ONCE, SAME, APART)))
FORGETTING: Final = (("quality-first", WHOLE), ("quality-first", APART), ("latency-first", APART))
"""Arms that are run once more without the fresh rows of refusals."""
GROUPS_LOADS: Final = ((2 / 3, 2 / 3), (1.0, 2 / 3), (1.0, 1.0))
FIVE_LOADS: Final = (0.5, 0.8, 0.95, 0.8, 0.5)
MIDDLING: Final = 2 / 3
FORMULA: Final = (10, 2_000, 120)
"""Schedulers, free slots, and tasks of each scheduler."""
FORMULA_ROUNDS: Final = 400
STROKES: Final[dict[str, Stroke]] = dict(zip(GROUPS, ("-", "--"), strict=True))
MEASURES: Final = ("conflict_fraction", "delay_s", "quality", "quality_sd")
PHASE_S_MAX: Final = 3_600.0


@dataclass(frozen=True, kw_only=True)
class ParSync:
    """The parameters of the benchmark."""

    schedulers: int = 20
    slots: int = 10_000
    parts: int = 40
    gap_s: float = 1.0
    tasks: int = 5
    phase_s: float = 30.0
    """Length of a phase with two groups; the other experiments' phases are half as long."""
    seeds: int = 3
    seed: int = 0
    workers: int = 1

    def measure(self, stage: Stage) -> Findings:
        """Run everything with every seed."""
        plays = self._plays()
        trials = [
            Trial(number, seed, replace(one, seed=seed))
            for number, (_, _, one) in enumerate(plays)
            for seed in range(self.seed, self.seed + self.seeds)
        ]
        found: dict[int, list[Sequence[Mapping[str, Any]]]] = defaultdict(list)
        for trial, figures in sorted(
            run_all(stage, play, trials, workers=self.workers), key=lambda one: one[0].seed
        ):
            found[trial.point].append(figures["phases"])
        rows = [
            {"experiment": experiment, "arm": arm, "learns": one.learn, "reads": one.reads, **row}
            for number, (experiment, arm, one) in enumerate(plays)
            for row in _over_seeds(found[number])
        ]
        rng = np.random.default_rng(self.seed)
        formula = Formula(expected(*FORMULA), drawn(*FORMULA, rounds=FORMULA_ROUNDS, rng=rng))
        claims = [claim.row() for claim in claims_of(rows, formula)]
        summary = {"claims": claims, "formula": vars(formula)}
        done = {name: sum(row[name] for row in rows) for name in ("placed", "claims")}
        return Findings(_finding(rows, claims), rows, summary, {"runs": len(trials), **done})

    def _plays(self) -> list[tuple[str, str, Play]]:
        """Return (experiment, arm, parameters) of each run."""
        base = Play(
            strategy="",
            reads="",
            scale=Scale(
                schedulers=self.schedulers,
                slots=self.slots,
                parts=self.parts,
                gap_s=self.gap_s,
                tasks=self.tasks,
            ),
            loads=GROUPS_LOADS,
            phase_s=self.phase_s,
            seed=self.seed,
        )
        five = replace(base, loads=loads_of_all(FIVE_LOADS), phase_s=self.phase_s / 2)
        short = replace(base, loads=loads_of_all((MIDDLING, MIDDLING)), phase_s=self.phase_s / 2)
        return [
            *(
                (experiment, arm, replace(one, strategy=strategy, reads=reads))
                for experiment, one in (("groups", base), ("five phases", five))
                for arm, (strategy, reads) in ARMS.items()
            ),
            *(
                ("reading", strategy, replace(short, strategy=strategy, reads=reads))
                for strategy, reads in READING
            ),
            *(
                ("refusals", strategy, replace(short, strategy=strategy, reads=reads, learn=False))
                for strategy, reads in FORGETTING
            ),
        ]

    def show(self, findings: Findings) -> RenderableType:
        """Return delay and quality by phase, then the claims."""
        shown = Table(box=None, pad_edge=False, header_style="bold")
        for name in ("experiment", "arm", "reads", "learns", "phase", "group"):
            shown.add_column(name)
        for name in ("conflicts", "delay, s", "quality"):
            shown.add_column(name, justify="right")
        for row in findings.rows:
            shown.add_row(
                *(str(row[name]) for name in ("experiment", "arm", "reads")),
                "all" if row["learns"] else "grants",
                str(row["phase"]),
                row["group"],
                *(_told(row, name) for name in MEASURES[:3]),
            )
        return Group(shown, "", table(findings.summary["claims"]), "")

    def draw(self, findings: Findings) -> Picture:
        """Draw delays by phase of both experiments, and the quality of the first."""
        picture = Picture(
            findings.finding,
            columns=3,
            note=f"{self.schedulers} schedulers, {self.slots:,} slots, a gap of {self.gap_s:g} s,"
            f" {self.parts} parts; means of {self.seeds} seeds, at the end of each phase",
        )
        groups, five, quality = picture.panels[0]
        for number, arm in enumerate(ARMS):
            for panel, experiment, measure in (
                (groups, "groups", "delay_s"),
                (five, "five phases", "delay_s"),
                (quality, "groups", "quality"),
            ):
                for group, stroke in STROKES.items():
                    rows = where(findings.rows, experiment=experiment, arm=arm, group=group)
                    points = [
                        (row["phase"], row[measure]) for row in rows if row[measure] is not None
                    ]
                    if points:
                        label = f"{arm}, group {group}"
                        series(panel, number, points, label, stroke=stroke)
        for panel in picture.panels[0]:
            panel.set_title("five phases" if panel is five else "two groups", fontsize=10)
            panel.set_xticks(range(1, 1 + len(FIVE_LOADS if panel is five else GROUPS_LOADS)))
            panel.set_xlabel("phase")
            panel.set_ylabel("mean score of slots" if panel is quality else "delay, s")
        return picture


def _over_seeds(runs: Sequence[Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    """Return one row per phase and group: means and standard deviations over the seeds."""
    rows = []
    for same in zip(*runs, strict=True):
        row = {name: same[0][name] for name in ("phase", "group", "load")}
        row |= {name: sum(one[name] for one in same) for name in ("placed", "claims")}
        for name in MEASURES:
            values = [one[name] for one in same if one[name] is not None]
            row[name] = round(float(np.mean(values)), 4) if values else None
            row[f"{name}_over_seeds"] = round(float(np.std(values)), 4) if values else None
        rows.append(row)
    return rows


def _finding(rows: Sequence[Mapping[str, Any]], claims: Sequence[Mapping[str, Any]]) -> str:
    last = max(row["phase"] for row in where(rows, experiment="groups"))
    told = []
    for arm in ARMS:
        (row,) = where(rows, experiment="groups", arm=arm, phase=last, group=GROUPS[0])
        told.append(f"{arm} {_number(row['delay_s'])} s")
    held = sum(claim["holds"] for claim in claims)
    return (
        f"With a full cell, tasks wait {', '.join(told)}; {held} of {len(claims)} claims of ParSync"
        " and of ours hold"
    )


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _told(row: Mapping[str, Any], name: str) -> str:
    return f"{_number(row[name])} ± {_number(row[f'{name}_over_seeds'])}"


SMOKE: Final = ParSync(schedulers=2, slots=80, parts=4, tasks=1, phase_s=3.0, seeds=2)


def command(  # noqa: PLR0913, PLR0917 - a parameter is an option
    schedulers: Annotated[int, typer.Option(min=2, max=64, metavar="N")] = 20,
    slots: Annotated[int, typer.Option(min=40, max=200_000, metavar="N")] = 10_000,
    rounds: Annotated[
        int, typer.Option("--parts-a-round", min=1, max=16, metavar="N", help="P / N of ParSync.")
    ] = 2,
    gap: Annotated[
        float, number_option(lowest=0.01, highest=60, metavar="S", help="G of ParSync.")
    ] = 1.0,
    phase: Annotated[
        float,
        number_option(
            lowest=1, highest=PHASE_S_MAX, metavar="S", help="A phase of the first experiment."
        ),
    ] = 30.0,
    seeds: Annotated[int, typer.Option(min=1, max=100, metavar="N", help="Runs of each.")] = 3,
    seed: Seed = 0,
    workers: Workers = 1,
    smoke: Smoke = False,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
    data_dir: DataDir = None,
) -> None:
    """ParSync's strategies: delay, quality and conflicts of schedulers that share out reading.

    Takes an hour and a half of one core; half an hour with --phase 10.
    """
    benchmark = ParSync(
        schedulers=schedulers,
        slots=slots,
        parts=rounds * schedulers,
        gap_s=gap,
        phase_s=phase,
        seeds=seeds,
        seed=seed,
        workers=workers,
    )
    if smoke:
        benchmark = replace(SMOKE, seed=seed)
    conduct(benchmark, json_to=json_to, plot_to=plot_to, data_dir=data_dir)
