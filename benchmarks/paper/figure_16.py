"""Figure 16 of the Omega paper: the use of the cell over time, with helpers and without."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from benchmarks.paper.claims import Claim, Row, spread
from benchmarks.paper.elastic_cell import LIGHT, LOADED, NONE, SAMPLE_S
from benchmarks.paper.elastic_figure import ElasticFigure, row_of
from benchmarks.paper.figure import command_of
from omega.plots.picture import Picture, series
from omega.workload.arrivals import BATCH, SERVICE

MAX: Final = "max"
ALIKE: Final = 0.05
"""By how much waits may differ with helpers and without."""
STRIDE: Final = 3
"""One sample in so many is drawn."""
WAITS: Final = {"wait_mean_s": "first attempt", "whole_mean_s": "all tasks placed"}


@dataclass(frozen=True, kw_only=True)
class Figure16(ElasticFigure):
    """Use of a light and a loaded cell over time with helpers and without, and others' waits.

    Takes ten minutes.
    """

    title: ClassVar[str] = "Use of the cell with helpers and without"
    policies: ClassVar[tuple[str, ...]] = (NONE, MAX)

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        """Return the paper's claims, judged by the rows."""
        claims = []
        for cell in (LIGHT, LOADED):
            without, helped = (row_of(rows, cell, policy) for policy in (NONE, MAX))
            claims += [
                Claim(
                    f"{cell} cell: helpers raise its use",
                    f"mean {spread(without, 'utilisation', 'mean')} without, "
                    f"{spread(helped, 'utilisation', 'mean')} with",
                    helped["utilisation"]["mean"] > without["utilisation"]["mean"],
                ),
                Claim(
                    f"{cell} cell: and its variability",
                    f"variance {spread(without, 'utilisation', 'variance')} without, "
                    f"{spread(helped, 'utilisation', 'variance')} with",
                    helped["utilisation"]["variance"] > without["utilisation"]["variance"],
                ),
                *(
                    Claim(
                        f"{cell} cell: {kind} jobs wait as long as without, within 5% ({until})",
                        f"{spread(without, kind, wait)} s without, "
                        f"{spread(helped, kind, wait)} s with",
                        _within(without[kind][wait], helped[kind][wait]),
                    )
                    for kind in (BATCH, SERVICE)
                    for wait, until in WAITS.items()
                ),
            ]
        return claims

    def paint(self, rows: Sequence[Row], title: str) -> Picture:
        """Draw the use of each cell over time, of the first seed."""
        note = f"the first seed; a sample each {STRIDE * SAMPLE_S:g} s"
        picture = Picture(title, rows=1, columns=2, note=note)
        for across, cell in enumerate((LIGHT, LOADED)):
            panel = picture.panels[0, across]
            for number, (policy, label) in enumerate(((MAX, "with helpers"), (NONE, "without"))):
                samples = row_of(rows, cell, policy)["samples"]
                points = [(at_s / 60, share) for at_s, share in samples[::STRIDE]]
                series(panel, number, points, label)
            panel.set_title(f"{cell} cell", fontsize=11)
            panel.set_xlabel("minutes")
            panel.set_ylabel("CPU in use" if across == 0 else "")
            panel.set_ylim(0, 1.02)
        return picture


def _within(without: float | None, helped: float | None) -> bool:
    """Return whether two waits differ by no more than `ALIKE`; a shorter one is no harm."""
    if without is None or helped is None:
        return without is helped
    return helped <= without * (1 + ALIKE)


command = command_of(Figure16)
