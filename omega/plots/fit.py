"""A plot of a fit: what was observed and each law, as the share up to each value.

Goal     Show where a law deviates: in the middle, which is most of the jobs, or in the tail.
Promise  The observed distribution is the boldest line. The title says how far the exponential laws
         are off.
Source   Omega (EuroSys 2013), figures 3 and 4, whose axes these are.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from omega.plots.picture import COLOURS, Picture
from omega.workload.fits import QUANTITIES, Fit, FittedWorkload
from omega.workload.laws import PARAMETRIC, Exponential

POINTS: Final = 400
AXES: Final = {
    "gap_s": "time between jobs, s",
    "tasks": "tasks a job",
    "duration_s": "duration of a task, s",
}
DASHES: Final = ("--", "-.", ":")


def draw(name: str, workloads: Mapping[str, FittedWorkload]) -> Picture:
    """Draw a row of panels for each workload."""
    picture = Picture(
        _title(name, workloads),
        rows=len(workloads),
        columns=len(QUANTITIES),
        note="Share of jobs up to each value; the trace's allows for what was not seen to end.",
    )
    for row, (kind, workload) in enumerate(workloads.items()):
        for column, quantity in enumerate(QUANTITIES):
            panel = picture.panels[row, column]
            panel.set_ylabel(f"{kind}: share of jobs" if column == 0 else "")
            panel.set_xlabel(AXES[quantity])
            if quantity in workload.fits:
                _draw_fit(panel, workload.fits[quantity])
    return picture


def _draw_fit(panel: Any, fit: Fit) -> None:  # noqa: ANN401 - matplotlib's axes
    at, shares = fit.seen.steps()
    panel.step(at, shares, where="post", label="trace", color="#111111", linewidth=2.6)
    values = np.geomspace(at[0], max(at[-1], at[0] * 10), POINTS)
    if fit.is_whole:
        values = np.unique(np.floor(values))
    for number, (law, dash) in enumerate(zip(PARAMETRIC, DASHES, strict=True)):
        # The exponential law, which the paper's simulator uses, comes first.
        panel.plot(
            values,
            fit.laws[law.name].cdf(values),
            label=law.name,
            color=COLOURS[(1, 3, 5)[number]],
            linestyle=dash,
            linewidth=1.8,
        )
    panel.set_xscale("log")
    panel.set_ylim(0, 1.02)
    off, best = fit.distances[Exponential.name], fit.best
    told = f"exponential off by {off:.0%}"
    if best.name != Exponential.name:
        told += f", {best.name} by {fit.distances[best.name]:.0%}"
    panel.set_title(told, fontsize=9)


def _title(name: str, workloads: Mapping[str, FittedWorkload]) -> str:
    off = [
        fit.distances[Exponential.name]
        for workload in workloads.values()
        for fit in workload.fits.values()
    ]
    return f"{name}: exponential laws are off by {min(off):.0%} to {max(off):.0%}"
