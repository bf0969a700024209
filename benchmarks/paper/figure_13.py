"""Figure 13 of the Omega paper: one batch scheduler or three, on a recorded cell."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final

from benchmarks.paper.claims import Claim, Row, first_not, has, keeps_up, told, where
from benchmarks.paper.figure import Figure, command_of, curves
from benchmarks.paper.setting import RECORDED, RECORDED_HOURS, WEEK, WINDOW, Setting
from omega.plots.picture import Picture
from omega.reports.wording import things

SCHEDULERS: Final = (1, 3)
THRICE: Final = (2.0, 4.5)
SATURATED: Final = 0.95
FEW: Final = 0.3
"""Largest conflict fraction that agrees with the paper's, which is about 0.1."""


@dataclass(frozen=True, kw_only=True)
class Figure13(Figure):
    """Busyness and waits by the decision time of batch jobs, with one or three schedulers for them.

    On the cell of 2011, for its window and for a week. Takes twenty minutes.
    """

    title: ClassVar[str] = "One or three batch schedulers on the cell of 2011"
    x: tuple[float, ...] = (0.1, 0.3, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0)
    week_x: tuple[float, ...] = (2.0, 4.0, 8.0, 15.0)
    hours: float = RECORDED_HOURS

    def settings(self) -> list[Setting]:
        """Return the settings to simulate."""
        return [
            Setting(cell=RECORDED, period=period, batch_schedulers=number, t_job_batch=t_job)
            for period, x in ((WINDOW, self.x), (WEEK, self.week_x))
            for number in SCHEDULERS
            for t_job in x
        ]

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        """Return the paper's claims, judged by the rows."""
        one, three = (
            first_not(
                where(rows, period=WINDOW, batch_schedulers=number),
                "t_job_batch",
                lambda row: keeps_up(row, "batch"),
            )
            for number in SCHEDULERS
        )
        most = max(self.x)
        kept = [
            row["batch"]["conflict_fraction"] or 0.0
            for row in where(rows, period=WINDOW, batch_schedulers=SCHEDULERS[-1])
            if keeps_up(row, "batch")
        ]
        ratio = three / one if one and three else None
        return [
            Claim(
                "three schedulers take about three times the decision time that one takes",
                f"one keeps up until {told(one, most)} s, three until {told(three, most)} s"
                + (f": {ratio:.1f} times" if ratio else ""),
                ratio is not None and THRICE[0] <= ratio <= THRICE[1],
            ),
            Claim(
                "at that their conflict fraction stays at about 0.1",
                f"up to {max(kept, default=0.0):.2f} while they keep up",
                max(kept, default=0.0) <= FEW,
            ),
            self._week(rows),
        ]

    def _week(self, rows: Sequence[Row]) -> Claim:
        """Compare busyness and conflicts of a week, as medians of days."""
        medians = {
            number: [
                (row["t_job_batch"], row["batch"]["busy_daily_median"], row["batch"])
                for row in where(rows, period=WEEK, batch_schedulers=number)
            ]
            for number in SCHEDULERS
        }
        one, three = (medians[number] for number in SCHEDULERS)
        less = [
            (few[1] or 0.0) / many[1]
            for many, few in zip(one, three, strict=True)
            if many[1] and many[1] < SATURATED
        ]
        return Claim(
            "a week: three schedulers are each about a third as busy as one, day by day",
            "median daily busyness (mad): "
            + "; ".join(
                f"{things(number, 'scheduler')} "
                + ", ".join(
                    f"{t_job:g} s {middle or 0.0:.2f} ({batch['busy_daily_mad'] or 0.0:.1g})"
                    for t_job, middle, batch in medians[number]
                )
                for number in SCHEDULERS
            ),
            bool(less) and max(less) <= 1 / THRICE[0],
        )

    def paint(self, rows: Sequence[Row], title: str) -> Picture:
        """Draw busyness, conflicts and waits of batch schedulers."""
        return curves(
            rows,
            title,
            x="t_job_batch",
            measures=["busy", "wait_mean_s", "conflict_fraction"],
            columns={
                "cell of 2011, its window": partial(has, period=WINDOW),
                "a week of it": partial(has, period=WEEK),
            },
            lines={
                things(number, "batch scheduler"): partial(has, batch_schedulers=number)
                for number in SCHEDULERS
            },
            workloads=("batch",),
        )


command = command_of(Figure13)
