"""Figure 13 of the Omega paper: one batch scheduler or three, on a recorded cell."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final

from benchmarks.paper.claims import Claim, Row, first_not, has, keeps_up, told, where
from benchmarks.paper.figure import Figure, command_of, curves
from benchmarks.paper.setting import RECORDED, RECORDED_HOURS, Setting
from omega.plots.picture import Picture
from omega.reports.wording import things

SCHEDULERS: Final = (1, 3)
THRICE: Final = (2.0, 4.5)
FEW: Final = 0.3
"""Largest conflict fraction that agrees with the paper's, which is about 0.1."""


@dataclass(frozen=True, kw_only=True)
class Figure13(Figure):
    """Busyness and waits by the decision time of batch jobs, with one or three schedulers for them.

    On the cell of 2011. Takes two minutes.
    """

    title: ClassVar[str] = "One or three batch schedulers on the cell of 2011"
    x: tuple[float, ...] = (0.1, 0.3, 0.6, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 15.0)
    hours: float = RECORDED_HOURS

    def settings(self) -> list[Setting]:
        """Return the settings to simulate."""
        return [
            Setting(cell=RECORDED, batch_schedulers=number, t_job_batch=t_job)
            for number in SCHEDULERS
            for t_job in self.x
        ]

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        """Return the paper's claims, judged by the rows."""
        one, three = (
            first_not(
                where(rows, batch_schedulers=number),
                "t_job_batch",
                lambda row: keeps_up(row, "batch"),
            )
            for number in SCHEDULERS
        )
        most = max(self.x)
        kept = [
            row["batch"]["conflict_fraction"] or 0.0
            for row in where(rows, batch_schedulers=SCHEDULERS[-1])
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
        ]

    def paint(self, rows: Sequence[Row], title: str) -> Picture:
        """Draw busyness, conflicts and waits of batch schedulers."""
        return curves(
            rows,
            title,
            x="t_job_batch",
            measures=["busy", "wait_mean_s", "conflict_fraction"],
            columns={"cell of 2011": has},
            lines={
                things(number, "batch scheduler"): partial(has, batch_schedulers=number)
                for number in SCHEDULERS
            },
            workloads=("batch",),
        )


command = command_of(Figure13)
