"""Figures 2 to 4 of the Omega paper: batch and service jobs of a recorded cell."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Final

import numpy as np
from rich.console import Group, RenderableType

from benchmarks.harness import Findings, Stage, conduct
from benchmarks.options import DataDir, JsonTo, PlotTo, Smoke
from benchmarks.paper.claims import Row, table, where
from benchmarks.paper.figure import Trace
from benchmarks.paper.setting import (
    BY_CLASS,
    BY_PRODUCTION,
    RECORDED,
    RECORDED_HOURS,
    S_PER_H,
    WEEK,
    WEEK_HOURS,
    WINDOW,
)
from benchmarks.paper.shares import QUANTILES, claims_of, shares
from omega.errors import BadInput
from omega.plots.picture import Picture
from omega.workload.arrivals import BATCH, SERVICE

HOURS: Final = {WINDOW: RECORDED_HOURS, WEEK: WEEK_HOURS}
SHARES: Final = {
    "jobs_share": "jobs",
    "tasks_share": "tasks",
    "cpu_share": "CPU",
    "memory_share": "memory",
}
DISTRIBUTIONS: Final = {
    "runs_s": "run time, s",
    "gap_s": "gap between two jobs, s",
    "tasks": "tasks of a job",
}


@dataclass(frozen=True, kw_only=True)
class Figures2To4:
    """Shares of batch and service jobs, their run times, gaps and tasks, on the cell of 2011.

    Takes a minute.
    """

    trace: Path | None = field(default=None, repr=False)
    periods: tuple[str, ...] = (WINDOW, WEEK)

    def measure(self, stage: Stage) -> Findings:
        """Read the trace in each way to tell service jobs, and judge the claims."""
        if self.trace is None:
            raise BadInput(f"name the folder of the trace {RECORDED}", field="--trace")
        ways = list(product((BY_PRODUCTION, BY_CLASS), self.periods))
        rows: list[Any] = []
        for service, period in ways:
            stage.go_on()
            rows += shares(
                self.trace, service=service, period=period, horizon_s=HOURS[period] * S_PER_H
            )
        claims = [
            claim.row()
            for service, period in ways
            for claim in claims_of(rows, service=service, period=period)
        ]
        held = sum(claim["holds"] for claim in claims)
        return Findings(
            f"Batch and service jobs of the cell of 2011: {held} of {len(claims)} claims hold",
            rows,
            {"claims": claims},
            {"jobs": sum(row["jobs"] for row in rows)},
        )

    def show(self, findings: Findings) -> RenderableType:
        """Return the claims."""
        return Group(table(findings.summary["claims"]), "")

    def draw(self, findings: Findings) -> Picture:
        """Draw the shares as bars, and the distributions as curves of some quantiles."""
        rows = findings.rows
        picture = Picture(
            findings.finding,
            rows=2,
            columns=2,
            note="solid: batch jobs; dashed: service jobs. By production: class 2 or 3 and a"
            " priority of 9 or more",
        )
        self._bars(picture.panels[0, 0], rows)
        places = (picture.panels[0, 1], picture.panels[1, 0], picture.panels[1, 1])
        for panel, (name, label) in zip(places, DISTRIBUTIONS.items(), strict=True):
            for colour, service in enumerate((BY_PRODUCTION, BY_CLASS)):
                for kind, stroke in ((BATCH, "-"), (SERVICE, "--")):
                    (row,) = where(rows, service=service, period=self.periods[-1], workload=kind)
                    points = [(row[name][f"p{round(100 * q)}"], q) for q in QUANTILES]
                    known = [(value, q) for value, q in points if value]
                    panel.plot(
                        [value for value, _ in known],
                        [q for _, q in known],
                        stroke,
                        color=f"C{colour}",
                        marker="o",
                        markersize=3,
                        label=f"{service}, {kind}",
                    )
            panel.set_xscale("log")
            panel.set_ylim(0, 1)
            panel.set_xlabel(f"{label} ({self.periods[-1]})")
            panel.set_ylabel("share of jobs at most")
        return picture

    def _bars(self, panel: Any, rows: Sequence[Row]) -> None:  # noqa: ANN401 - matplotlib's
        ways = [
            (service, period) for service in (BY_PRODUCTION, BY_CLASS) for period in self.periods
        ]
        for number, (service, period) in enumerate(ways):
            (row,) = where(rows, service=service, period=period, workload=SERVICE)
            at = np.arange(len(SHARES)) + (number - len(ways) / 2 + 0.5) * 0.8 / len(ways)
            panel.bar(
                at,
                [row[name] for name in SHARES],
                0.8 / len(ways),
                label=f"{service}, {period}",
                color=f"C{number}",
            )
        panel.set_xticks(range(len(SHARES)), list(SHARES.values()))
        panel.set_ylim(0, 1)
        panel.set_ylabel("share of service jobs")


def command(
    smoke: Smoke = False,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
    trace: Trace = None,
    data_dir: DataDir = None,
) -> None:
    """Shares and distributions of batch and service jobs of the cell of 2011. A minute."""
    asked = Figures2To4(trace=trace, periods=(WINDOW,) if smoke else (WINDOW, WEEK))
    conduct(asked, json_to=json_to, plot_to=plot_to, data_dir=data_dir)
