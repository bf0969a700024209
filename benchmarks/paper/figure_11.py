"""Figure 11 of the Omega paper: busyness over both decision times, on a recorded cell."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from benchmarks.paper.claims import Claim, Row
from benchmarks.paper.figure import Figure, command_of
from benchmarks.paper.figure_10 import T_TASKS, leaves_work
from benchmarks.paper.setting import RECORDED, RECORDED_HOURS, Setting
from benchmarks.paper.surface import surfaces
from omega.plots.picture import Picture

LOW: Final = 0.5
NEARLY_ALL: Final = 0.7


@dataclass(frozen=True, kw_only=True)
class Figure11(Figure):
    """Busyness of the service scheduler over both its decision times, on the cell of 2011.

    Takes five minutes. The paper replays 29 days, of which 83 minutes are published with all tasks.
    """

    title: ClassVar[str] = "Both decision times on the cell of 2011"
    x: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0, 100.0)
    hours: float = RECORDED_HOURS

    def settings(self) -> list[Setting]:
        """Return the settings to simulate."""
        return [
            Setting(cell=RECORDED, t_job_service=t_job, t_task_service=t_task)
            for t_job in self.x
            for t_task in T_TASKS
        ]

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        """Return the paper's claims, judged by the rows."""
        low = sum(row["service"]["busy"] <= LOW for row in rows)
        return [
            Claim(
                "the service scheduler is little busy over nearly the whole range",
                f"at most {LOW:.0%} busy at {low} of {len(rows)} points",
                low >= NEARLY_ALL * len(rows),
            )
        ]

    def paint(self, rows: Sequence[Row], title: str) -> Picture:
        """Draw the surface."""
        return surfaces({"Omega": rows}, title, columns=1, leaves_work=leaves_work)


command = command_of(Figure11)
