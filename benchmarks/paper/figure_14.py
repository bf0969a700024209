"""Figure 14 of the Omega paper: conflict rules, and incremental or all-or-nothing commits."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final

from benchmarks.paper.claims import UNSATURATED, Claim, Row, has, spread, where
from benchmarks.paper.figure import Figure, command_of, curves
from benchmarks.paper.setting import RECORDED, RECORDED_HOURS, WEEK, WINDOW, Setting
from omega.plots.picture import Picture
from omega.workload.arrivals import SERVICE

MODES: Final = {
    "fine, incremental": ("fit", "incremental"),
    "fine, all or nothing": ("fit", "all-or-nothing"),
    "coarse, incremental": ("sequence", "incremental"),
    "coarse, all or nothing": ("sequence", "all-or-nothing"),
}
AT_S: Final = 10.0
TWICE: Final = (1.2, 3.0)
COARSE: Final = (1.5, 6.0)
LITTLE: Final = 1.25


@dataclass(frozen=True, kw_only=True)
class Figure14(Figure):
    """Conflicts and busyness by the decision time of service jobs, under each conflict rule.

    Incremental or all or nothing, on the cell of 2011, for its window and for a week, with both
    kinds placed alike, and on cell B, fuller. Twenty minutes.
    """

    title: ClassVar[str] = "What counts as a conflict"
    x: tuple[float, ...] = (0.1, 1.0, 3.0, 10.0, 30.0)
    hours: float = RECORDED_HOURS

    def settings(self) -> list[Setting]:
        """Return the settings to simulate."""
        return [
            Setting(**cell, rule=rule, granularity=granularity, t_job_service=t_job)
            for cell in CELLS.values()
            for rule, granularity in MODES.values()
            for t_job in (self.x if cell["period"] == WINDOW else (self._at_s,))
        ]

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        """Return the paper's claims, judged by the rows."""
        claims = []
        for name, cell in CELLS.items():
            found = {
                mode: where(
                    rows, **cell, rule=rule, granularity=granularity, t_job_service=self._at_s
                )[0]
                for mode, (rule, granularity) in MODES.items()
            }
            mine = {mode: row["service"] for mode, row in found.items()}
            fine, *others = MODES
            conflicts = {
                mode: (mine[mode]["conflict_fraction"] or 0.0)
                / max(mine[fine]["conflict_fraction"] or 0.0, 1e-9)
                for mode in others
            }
            # Busyness is compared only where nobody is saturated: there it measures the work done.
            saturated = [m for m in MODES if mine[m]["think_started"] >= UNSATURATED]
            busy = {
                mode: mine[mode]["think_started"] / max(mine[fine]["think_started"], 1e-9)
                for mode in others
            }
            base = spread(found[fine], "service", "conflict_fraction")
            also = f"; saturated: {', '.join(saturated)}" if saturated else ""
            claims += [
                Claim(
                    f"{name}: all or nothing conflicts twice as often, and costs little",
                    f"conflicts {conflicts[others[0]]:.1f} times {base}, busyness"
                    f" {busy[others[0]]:.2f} times{also}",
                    TWICE[0] <= conflicts[others[0]] <= TWICE[1]
                    and (bool(saturated) or busy[others[0]] <= LITTLE),
                ),
                Claim(
                    f"{name}: coarse conflicts come 2 to 3 times as often, and busyness grows",
                    f"conflicts {conflicts[others[1]]:.1f} and {conflicts[others[2]]:.1f} times"
                    f" {base}, busyness {busy[others[1]]:.2f} and {busy[others[2]]:.2f} times"
                    f"{also}",
                    COARSE[0] <= conflicts[others[1]] <= COARSE[1]
                    and (bool(saturated) or busy[others[2]] > 1),
                ),
            ]
        return claims

    def paint(self, rows: Sequence[Row], title: str) -> Picture:
        """Draw both measures, one column per cell."""
        return curves(
            rows,
            title,
            x="t_job_service",
            measures=["conflict_fraction", "busy"],
            columns={name: partial(has, **cell) for name, cell in CELLS.items()},
            lines={
                mode: partial(has, rule=rule, granularity=granularity)
                for mode, (rule, granularity) in MODES.items()
            },
            workloads=("service",),
        )

    @property
    def _at_s(self) -> float:
        return min(self.x, key=lambda one: abs(one - AT_S))


USUAL: Final[dict[str, Any]] = {"fill": None, "placed_by": None, "period": WINDOW}
CELLS: Final[dict[str, dict[str, Any]]] = {
    "the cell of 2011": {**USUAL, "cell": RECORDED},
    "the cell of 2011, placed alike": {**USUAL, "cell": RECORDED, "placed_by": SERVICE},
    "the cell of 2011, a week": {**USUAL, "cell": RECORDED, "period": WEEK},
    "cell B, 75 % taken": {**USUAL, "cell": "B", "fill": 0.75},
    "cell B, 85 % taken": {**USUAL, "cell": "B", "fill": 0.85},
}

command = command_of(Figure14)
