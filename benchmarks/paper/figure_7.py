"""Figure 7 of the Omega paper: two-level scheduling, where offers are held while one thinks."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final

from benchmarks.paper.claims import Claim, Row, has, where
from benchmarks.paper.figure import Figure, command_of, curves
from benchmarks.paper.setting import Setting
from omega.cli.pictures import Picture

MESOS: Final = "two-level"
MULTI: Final = "multi-path"
FAR_ABOVE: Final = 2.0
FULL: Final = 0.9
"""How full a cell is on which offers leave only what has just become free."""


@dataclass(frozen=True, kw_only=True)
class Figure7(Figure):
    """Two-level offers by decision time, beside one scheduler with two paths. Two minutes.

    On cell B, 60 % full at the start as in the paper's, and 90 % full.
    """

    title: ClassVar[str] = "Two-level offers"

    def settings(self) -> list[Setting]:
        """Return what is simulated."""
        return [
            Setting(architecture=architecture, t_job_service=t_job, fill=fill)
            for fill in (None, FULL)
            for architecture in (MESOS, MULTI)
            for t_job in self.x
        ]

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        """Hold the paper's claims against the rows."""
        most = max(self.x)
        at = {
            (fill, one): where(rows, fill=fill, architecture=one, t_job_service=most)[0]
            for fill in (None, FULL)
            for one in (MESOS, MULTI)
        }
        least = where(rows, fill=None, architecture=MESOS, t_job_service=min(self.x))[0]
        first, last = (row["batch"]["wait_mean_s"] or 0.0 for row in (least, at[None, MESOS]))
        ratios = {
            fill: at[fill, MESOS]["batch"]["think_started"]
            / max(
                1e-9,
                where(rows, fill=fill, architecture=MULTI, t_job_service=min(self.x))[0]["batch"][
                    "think_started"
                ],
            )
            for fill in (None, FULL)
        }
        abandoned = {fill: at[fill, MESOS]["batch"]["jobs_abandoned"] for fill in (None, FULL)}
        return [
            Claim(
                "batch jobs wait while a service scheduler thinks, which holds what it is offered",
                f"batch waits {first:.3g} s with the shortest, {last:.3g} s with the longest",
                last > 10 * first,
            ),
            Claim(
                "batch schedulers are far busier than with multi path",
                f"time spent thinking, by that of multi path: {ratios[None]:.2f}, {FULL:.0%} full"
                f" {ratios[FULL]:.2f}",
                ratios[None] > FAR_ABOVE,
            ),
            Claim(
                "jobs are given up at the limit of attempts",
                f"{abandoned[None]:g} batch jobs, {FULL:.0%} full {abandoned[FULL]:g}",
                abandoned[None] > 0,
            ),
        ]

    def paint(self, rows: Sequence[Row], title: str) -> Picture:
        """Draw waits, busyness and what is left."""
        return curves(
            rows,
            title,
            x="t_job_service",
            measures=["wait_mean_s", "think_started", "jobs_unfinished"],
            columns={
                "60 % full at the start": partial(has, fill=None),
                f"{FULL:.0%} full at the start": partial(has, fill=FULL),
            },
            lines={one: partial(has, architecture=one) for one in (MESOS, MULTI)},
        )


command = command_of(Figure7)
