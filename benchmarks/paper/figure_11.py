"""Figure 11 of the Omega paper: busyness over both decision times, on a recorded cell."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from benchmarks.paper.claims import Claim, Row, where
from benchmarks.paper.figure import Figure, command_of
from benchmarks.paper.figure_10 import T_TASKS, leaves_work
from benchmarks.paper.setting import (
    BY_CLASS,
    BY_PRODUCTION,
    RECORDED,
    RECORDED_HOURS,
    WEEK,
    WINDOW,
    Setting,
)
from benchmarks.paper.surface import surfaces
from omega.plots.picture import Picture

LOW: Final = 0.5
NEARLY_ALL: Final = 0.7
PERIODS: Final = {BY_PRODUCTION: WEEK, BY_CLASS: WINDOW}
SAID: Final = {BY_PRODUCTION: "a day", BY_CLASS: "the window"}


@dataclass(frozen=True, kw_only=True)
class Figure11(Figure):
    """Busyness of the service scheduler over both its decision times, on the cell of 2011.

    For its window with service jobs by class, and for the first day of the week with service jobs
    by production, for all of the window's arrive in its last minute. Takes ten minutes. The paper
    replays 29 days.
    """

    title: ClassVar[str] = "Both decision times on the cell of 2011"
    x: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0, 100.0)
    hours: float = RECORDED_HOURS
    week_hours: float = 24.0

    def settings(self) -> list[Setting]:
        """Return the settings to simulate."""
        return [
            Setting(
                cell=RECORDED,
                service_by=service,
                period=period,
                t_job_service=t_job,
                t_task_service=t_task,
            )
            for service, period in PERIODS.items()
            for t_job in self.x
            for t_task in T_TASKS
        ]

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        """Return the paper's claims, judged by the rows."""
        claims = []
        for service in PERIODS:
            mine = where(rows, service_by=service)
            low = sum(row["service"]["busy"] <= LOW for row in mine)
            claims.append(
                Claim(
                    "the service scheduler is little busy over nearly the whole range (service jobs"
                    f" by {service}, {SAID[service]})",
                    f"at most {LOW:.0%} busy at {low} of {len(mine)} points;"
                    f" {mine[0]['service']['jobs']:g} service jobs",
                    low >= NEARLY_ALL * len(mine),
                )
            )
        return claims

    def paint(self, rows: Sequence[Row], title: str) -> Picture:
        """Draw the surface."""
        by_service = {
            f"service jobs by {service}, {SAID[service]}": where(rows, service_by=service)
            for service in PERIODS
        }
        return surfaces(by_service, title, columns=2, leaves_work=leaves_work)


command = command_of(Figure11)
