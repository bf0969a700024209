"""Figure 8 of the Omega paper: how many times the batch jobs one Omega scheduler can handle."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final

from benchmarks.paper.claims import Claim, Row, first_not, has, keeps_up, told, where
from benchmarks.paper.figure import Figure, command_of, curves
from benchmarks.paper.setting import CELLS, Setting
from omega.plots.picture import Picture

FACTORS: Final = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0)
PAPERS: Final = {"A": 2.5, "B": 6.0, "C": 9.5}
"""The factors from which on batch schedulers are saturated in the paper, by cell."""
NEAR: Final = 0.25
SATURATED: Final = 0.98
RISES: Final = 1.02


@dataclass(frozen=True, kw_only=True)
class Figure8(Figure):
    """Waits and busyness of Omega's schedulers as batch jobs come faster. Three minutes."""

    title: ClassVar[str] = "Batch jobs that come faster"
    x: tuple[float, ...] = FACTORS
    hours: float = 1.0

    def settings(self) -> list[Setting]:
        """Return the settings to simulate."""
        return [Setting(cell=cell, factor=factor) for cell in CELLS for factor in self.x]

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        """Return the paper's claims, judged by the rows."""
        most = max(self.x)
        ends = {
            cell: first_not(
                where(rows, cell=cell),
                "factor",
                lambda row: keeps_up(row, "batch") and row["batch"]["busy"] < SATURATED,
            )
            for cell in CELLS
        }
        near = all(
            end is not None and abs(end / PAPERS[cell] - 1) <= NEAR for cell, end in ends.items()
        )
        grown = {}
        for cell, end in ends.items():
            mine = where(rows, cell=cell)
            upto = [row for row in mine if row["factor"] <= (end or most)]
            busy = [row["service"]["busy"] for row in (upto[0], upto[-1])]
            grown[cell] = busy[1] / max(busy[0], 1e-9)
        return [
            Claim(
                "one batch scheduler saturates at about 2.5 times the jobs on A, 6 on B, 9.5 on C",
                ", ".join(f"{cell} {told(end, most)}" for cell, end in ends.items())
                + "; so the cells were made, but for what conflicts add",
                near,
            ),
            Claim(
                "the service scheduler gets busier as well, by conflicts",
                "its busyness until then grows by "
                + ", ".join(f"{cell} {one:.2f}" for cell, one in grown.items()),
                all(one > RISES for one in grown.values()),
            ),
        ]

    def paint(self, rows: Sequence[Row], title: str) -> Picture:
        """Draw both measures, one column per cell."""
        return curves(
            rows,
            title,
            x="factor",
            measures=["wait_mean_s", "busy"],
            columns={f"cell {cell}": partial(has, cell=cell) for cell in CELLS},
            lines={"shared-state": has},
            logarithmic=False,
        )


command = command_of(Figure8)
