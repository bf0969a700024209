"""What happened, what the simulation makes of it, and what would have happened: side by side.

Goal     Show at a glance what a change does, and how far the simulation can be trusted.
Promise  Each simulated figure is a mean over seeds, with its standard deviation. Conflict fractions
         that happened have one over parts of the time. The figures are those of the JSON document.
         What is not known is a dash.
Source   omega.reports.what_happened; Omega (EuroSys 2013), section 4.
"""

from collections.abc import Mapping, Sequence
from math import hypot
from typing import Any, Final

from rich.table import Table

from omega.cli.snapshot.variants import Variant
from omega.cli.snapshot.what_if_plan import AS_IT_WAS
from omega.plots.what_if import Bars
from omega.reports.what_happened import MEASURES, conflict_deviations, what_happened
from omega.reports.wording import UNKNOWN, things
from omega.sim.sweep import Figures, mean_and_deviation
from omega.store.saved.cell import PARTS, SavedCell
from omega.terminal.terminal import PrintableConsole

HAPPENED: Final = "happened"
SHOWN: Final[Mapping[str, tuple[str, int]]] = {
    "schedulers": ("schedulers", 0),
    "jobs": ("jobs", 0),
    "jobs_placed": ("placed", 0),
    "jobs_parked": ("parked", 0),
    "conflict_fraction": ("conflict fraction", 2),
    "claim_conflict_fraction": ("claims refused", 3),
    "busy": ("busy", 2),
    "wait_mean_s": ("wait s", 3),
    "wait_p90_s": ("wait p90 s", 3),
}
"""Measures of the table: their titles, and the digits after the point."""
DRAWN: Final = ("conflict_fraction", "busy", "wait_mean_s")


class Comparison:
    """The variants of a cell, and their figures."""

    def __init__(
        self, cell: SavedCell, variants: Mapping[str, Variant], seeds: Sequence[int]
    ) -> None:
        self.variants = variants
        self.seeds = seeds
        self._cell = cell
        self._happened = what_happened(cell)
        self._varies = conflict_deviations(cell)
        self._runs: dict[str, dict[int, Figures]] = {name: {} for name in variants}

    def note(self, number: int, seed: int, figures: Figures) -> None:
        """Take the figures of a run of a variant, by its position."""
        self._runs[list(self.variants)[number]][seed] = figures

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each kind and each of: what happened, and the variants."""
        rows: list[dict[str, Any]] = [
            {"what": HAPPENED, "kind": kind, **told, "deviation": self._varies.get(kind)}
            for kind, told in self._happened.items()
        ]
        for name in self.variants:
            means, deviations = self._figures(name)
            rows += [
                {"what": name, "kind": kind, **means[kind], "deviation": deviations[kind]}
                for kind in self._kinds
                if kind in means
            ]
        return rows

    def summary(self) -> dict[str, Any]:
        """Return the figures of the whole cell, and how far the simulation is from the truth."""
        return {
            "begin_ms": self._cell.begin_ms,
            "until_ms": self._cell.until_ms,
            "cells": {name: self._of_cell(name) for name in self.variants},
            "paces": {
                name: {
                    kind: {
                        "t_job_s": pace.decision.job_s,
                        "t_task_s": pace.decision.task_s,
                        "refresh_s": pace.refresh_s,
                        "commit_s": pace.commit_s,
                    }
                    for kind, pace in variant.scenario.paces.items()
                }
                for name, variant in self.variants.items()
            },
            "agreement": {kind: self._agreement(kind) for kind in self._happened},
            "seeds": list(self.seeds),
        }

    def show(self, console: PrintableConsole) -> None:
        """Print the comparison for a person."""
        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("kind")
        table.add_column("")
        for name in (HAPPENED, *self.variants):
            table.add_column(name, justify="right")
        figures = {name: self._figures(name) for name in self.variants}
        for kind in self._kinds:
            first = kind
            for measure, (title, digits) in SHOWN.items():
                seen = self._happened.get(kind, {}).get(measure)
                cells = [_written(seen, self._varies.get(kind, {}).get(measure), digits)]
                cells += [
                    _written(
                        means.get(kind, {}).get(measure),
                        (deviations.get(kind) or {}).get(measure),
                        digits,
                    )
                    for means, deviations in figures.values()
                ]
                table.add_row(first, title, *cells)
                first = ""
        console.print(table)
        console.print(
            f"simulated: means of {things(len(self.seeds), 'run')} ± standard deviation;"
            " first as it was, with what deciding and commits took"
            + (f"; what happened: ± from {PARTS} parts of its time" if self._varies else ""),
            style="dim",
            highlight=False,
            soft_wrap=True,
        )
        if silent := self._silent:
            console.print(
                f"nobody reported what commits of {', '.join(silent)} took: here they take no time,"
                " and conflicts are too few",
                style="yellow",
                highlight=False,
                soft_wrap=True,
            )
        for what, number in self._left_out().items():
            console.print(f"left out: {number:,} {what}", style="yellow", highlight=False)

    def drawable(self, changes: Mapping[str, object], where: str) -> Bars:
        """Return the values from which the picture is drawn."""
        rows = self.rows()
        return Bars(
            kinds=self._kinds,
            series=[HAPPENED, *self.variants],
            values={
                measure: {
                    (row["what"], row["kind"]): (
                        row[measure],
                        (row["deviation"] or {}).get(measure),
                    )
                    for row in rows
                }
                for measure in DRAWN
            },
            changes=", ".join(f"{name} {_told(value)}" for name, value in changes.items()),
            note=f"{where}; simulated: means of {things(len(self.seeds), 'run')}, whiskers are ± 1"
            " standard deviation",
        )

    @property
    def _silent(self) -> list[str]:
        """Kinds of schedulers of which no commit's time is known."""
        paces = self.variants[AS_IT_WAS].scenario.paces
        return sorted(kind for kind, pace in paces.items() if not pace.commit_s)

    @property
    def _kinds(self) -> list[str]:
        simulated = {kind for one in self.variants.values() for kind in one.scenario.rules}
        return sorted({*self._happened, *simulated})

    def _figures(self, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
        runs = self._runs[name]
        return mean_and_deviation([runs[seed] for seed in sorted(runs)])

    def _of_cell(self, name: str) -> dict[str, Any]:
        means, deviations = self._figures(name)
        kinds = set(self._kinds)
        told = {key: value for key, value in means.items() if key not in kinds}
        spread = {key: value for key, value in deviations.items() if key not in kinds}
        return {**told, "deviation": spread}

    def _agreement(self, kind: str) -> dict[str, Any]:
        """Return how many standard deviations the simulation is off, by measure.

        Both deviations count where that of what happened is known, else that of the simulation.
        """
        means, deviations = self._figures(AS_IT_WAS)
        off: dict[str, Any] = {}
        for measure in MEASURES:
            seen, mean = self._happened[kind][measure], means.get(kind, {}).get(measure)
            deviation = (deviations.get(kind) or {}).get(measure)
            if seen is None or mean is None or deviation is None:
                continue
            if varies := hypot(deviation, self._varies.get(kind, {}).get(measure, 0.0)):
                off[measure] = round((seen - mean) / varies, 2)
        return off

    def _left_out(self) -> dict[str, int]:
        first = next(iter(self.variants))
        found: dict[str, int] = self._figures(first)[0].get("left_out", {})
        return {what: round(number) for what, number in found.items()}


def _written(mean: float | None, deviation: float | None, digits: int) -> str:
    if mean is None:
        return UNKNOWN
    written = f"{mean:,.{digits}f}"
    return written if not deviation else f"{written} ±{deviation:.{digits}f}"


def _told(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
