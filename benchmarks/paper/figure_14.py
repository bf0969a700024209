"""Figure 14 of the Omega paper: conflict rules, and incremental or all-or-nothing commits."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final

from benchmarks.paper.claims import Claim, Row, has, where
from benchmarks.paper.figure import Figure, command_of, curves
from benchmarks.paper.setting import RECORDED, RECORDED_HOURS, Setting
from omega.plots.picture import Picture

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

    Incremental or all or nothing, on the cell of 2011 and on cell B, fuller. Two minutes.
    """

    title: ClassVar[str] = "What counts as a conflict"
    x: tuple[float, ...] = (0.1, 1.0, 3.0, 10.0, 30.0)
    hours: float = RECORDED_HOURS

    def settings(self) -> list[Setting]:
        """Return the settings to simulate."""
        return [
            Setting(cell=cell, fill=fill, rule=rule, granularity=granularity, t_job_service=t_job)
            for cell, fill in CELLS.values()
            for rule, granularity in MODES.values()
            for t_job in self.x
        ]

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        """Return the paper's claims, judged by the rows."""
        claims = []
        at_s = min(self.x, key=lambda one: abs(one - AT_S))
        for name, (cell, fill) in CELLS.items():
            mine = {
                mode: where(
                    rows,
                    cell=cell,
                    fill=fill,
                    rule=rule,
                    granularity=granularity,
                    t_job_service=at_s,
                )[0]["service"]
                for mode, (rule, granularity) in MODES.items()
            }
            fine, *others = MODES
            conflicts = {
                mode: (mine[mode]["conflict_fraction"] or 0.0)
                / max(mine[fine]["conflict_fraction"] or 0.0, 1e-9)
                for mode in others
            }
            busy = {mode: mine[mode]["busy"] / max(mine[fine]["busy"], 1e-9) for mode in others}
            claims += [
                Claim(
                    f"{name}: all or nothing conflicts twice as often, and costs little",
                    f"conflicts {conflicts[others[0]]:.1f} times, busyness {busy[others[0]]:.2f}",
                    TWICE[0] <= conflicts[others[0]] <= TWICE[1] and busy[others[0]] <= LITTLE,
                ),
                Claim(
                    f"{name}: coarse conflicts come 2 to 3 times as often, and busyness grows",
                    f"conflicts {conflicts[others[1]]:.1f} and {conflicts[others[2]]:.1f} times,"
                    f" busyness {busy[others[1]]:.2f} and {busy[others[2]]:.2f}",
                    COARSE[0] <= conflicts[others[1]] <= COARSE[1] and busy[others[2]] > 1,
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
            columns={
                name: partial(has, cell=cell, fill=fill) for name, (cell, fill) in CELLS.items()
            },
            lines={
                mode: partial(has, rule=rule, granularity=granularity)
                for mode, (rule, granularity) in MODES.items()
            },
            workloads=("service",),
        )


CELLS: Final[dict[str, tuple[str, float | None]]] = {
    "the cell of 2011": (RECORDED, None),
    "cell B, 75 % taken": ("B", 0.75),
    "cell B, 85 % taken": ("B", 0.85),
}

command = command_of(Figure14)
