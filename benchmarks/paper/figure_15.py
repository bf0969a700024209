"""Figure 15 of the Omega paper: by how much helpers speed up elastic jobs, by policy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from benchmarks.paper.claims import Claim, Row, spread
from benchmarks.paper.elastic_cell import LIGHT, LOADED, NONE, QUANTILES
from benchmarks.paper.elastic_figure import ElasticFigure, row_of
from benchmarks.paper.figure import command_of
from omega.plots.picture import Picture, series

GAINING: Final = (0.5, 0.7)
FASTER: Final = (3.0, 4.0)
NEARLY: Final = 0.8
"""The part of another policy's speed-up from which a policy is about as good."""
SHOWN: Final = ("max", "relative", "cap")


@dataclass(frozen=True, kw_only=True)
class Figure15(ElasticFigure):
    """Speed-ups of elastic jobs by policy, on a light and on a loaded cell.

    The share of jobs that can gain is an input. Takes half an hour with --hours 2.
    """

    title: ClassVar[str] = "Speed-ups of elastic jobs by policy"

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        """Return the paper's claims, judged by the rows."""
        p80 = {
            (cell, policy): row_of(rows, cell, policy)["speedup"]["p80"] or 0.0
            for cell in (LIGHT, LOADED)
            for policy in SHOWN
        }
        said = {
            (cell, policy): spread(row_of(rows, cell, policy), "speedup", "p80")
            for cell in (LIGHT, LOADED)
            for policy in SHOWN
        }
        light = row_of(rows, LIGHT, "max")
        gained = light["speedup"]["gains"] or 0.0
        return [
            Claim(
                "50 to 70% of the jobs gain from more workers (how many can is an input here)",
                f"{spread(light, 'speedup', 'gains')} of the jobs gain with max on the light cell",
                GAINING[0] <= gained <= GAINING[1],
            ),
            Claim(
                "max: jobs are 3 to 4 times as fast at the 80th percentile on the light cell",
                f"{said[LIGHT, 'max']} times",
                FASTER[0] <= p80[LIGHT, "max"] <= FASTER[1],
            ),
            Claim(
                "relative, with 4 times the workers, is nearly as good there",
                f"{said[LIGHT, 'relative']} times",
                p80[LIGHT, "relative"] >= NEARLY * p80[LIGHT, "max"],
            ),
            Claim(
                "cap, at 60% of the cell, is good on the light cell",
                f"{said[LIGHT, 'cap']} times",
                p80[LIGHT, "cap"] >= NEARLY * p80[LIGHT, "max"],
            ),
            Claim(
                "and on the light cell only",
                f"loaded: cap {said[LOADED, 'cap']}, max {said[LOADED, 'max']} times",
                p80[LOADED, "cap"] < NEARLY * p80[LOADED, "max"],
            ),
        ]

    def paint(self, rows: Sequence[Row], title: str) -> Picture:
        """Draw the distribution of speed-ups, a panel for each cell."""
        picture = Picture(title, rows=1, columns=2, note="means of the seeds' percentiles")
        for across, cell in enumerate((LIGHT, LOADED)):
            panel = picture.panels[0, across]
            for number, policy in enumerate(SHOWN):
                told = row_of(rows, cell, policy)["speedup"]
                points = [
                    (told[f"p{share}"], share / 100)
                    for share in QUANTILES
                    if told[f"p{share}"] is not None
                ]
                series(panel, number, points, policy)
            panel.set_title(f"{cell} cell", fontsize=11)
            panel.set_xlabel(f"times as fast as with {NONE}")
            panel.set_ylabel("share of elastic jobs" if across == 0 else "")
            panel.set_ylim(0, 1)
        return picture


command = command_of(Figure15)
