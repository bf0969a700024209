"""Figure 7 of the Omega paper: two-level scheduling, where offers are held while one thinks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Final

from benchmarks.paper.claims import Claim, Row, has, where
from benchmarks.paper.figure import Figure, command_of, curves
from benchmarks.paper.setting import DURATION_S, TASKS_MEAN, Setting
from omega.cli.pictures import Picture

MESOS: Final = "two-level"
MULTI: Final = "multi-path"
FAR_ABOVE: Final = 2.0
WORK: Final[dict[str, dict[str, Any]]] = {
    "60 % full": {"fill": None, "tasks_mean": TASKS_MEAN, "duration_s": DURATION_S},
    "90 % full": {"fill": 0.9, "tasks_mean": TASKS_MEAN, "duration_s": DURATION_S},
    "90 % full, large jobs": {"fill": 0.9, "tasks_mean": 400, "duration_s": 60},
}
"""Cell B: on a full one, and with jobs that ask for much at once, offers leave only crumbs."""


@dataclass(frozen=True, kw_only=True)
class Figure7(Figure):
    """Two-level offers by decision time, beside one scheduler with two paths. Two minutes.

    On cell B as it is, fuller, and fuller with few large batch jobs instead of many small ones.
    """

    title: ClassVar[str] = "Two-level offers"

    def settings(self) -> list[Setting]:
        """Return what is simulated."""
        return [
            replace(Setting(architecture=architecture, t_job_service=t_job), **work)
            for work in WORK.values()
            for architecture in (MESOS, MULTI)
            for t_job in self.x
        ]

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        """Hold the paper's claims against the rows."""
        offered = {name: where(rows, architecture=MESOS, **work) for name, work in WORK.items()}
        alone = {name: where(rows, architecture=MULTI, **work) for name, work in WORK.items()}
        first, last = (
            [mine[at]["batch"]["wait_mean_s"] or 0.0 for mine in offered.values()] for at in (0, -1)
        )
        busier = [
            max(row["batch"]["think_started"] for row in offered[name])
            / max(1e-9, alone[name][0]["batch"]["think_started"])
            for name in WORK
        ]
        given_up, left = (
            [sum(row["batch"][what] for row in mine) for mine in offered.values()]
            for what in ("jobs_abandoned", "jobs_unfinished")
        )
        return [
            Claim(
                "batch jobs wait while a service scheduler thinks, which holds what it is offered",
                "batch waits with the shortest and the longest service decisions: "
                + _each(f"{a:.2g} and {b:.3g} s" for a, b in zip(first, last, strict=True)),
                last[0] > 10 * first[0],
            ),
            Claim(
                "batch schedulers are far busier than with multi path and short decisions",
                "thinking for so many times as long, at most: "
                + _each(f"{one:.2f}" for one in busier),
                busier[0] > FAR_ABOVE,
            ),
            Claim(
                "jobs are given up at the limit of attempts",
                "batch jobs given up: "
                + _each(f"{one:g}" for one in given_up)
                + "; left over, in all runs: "
                + _each(f"{one:g}" for one in left),
                given_up[0] > 0,
            ),
        ]

    def paint(self, rows: Sequence[Row], title: str) -> Picture:
        """Draw waits, busyness and what is left."""
        return curves(
            rows,
            title,
            x="t_job_service",
            measures=["wait_mean_s", "think_started", "jobs_unfinished"],
            columns={name: partial(has, **work) for name, work in WORK.items()},
            lines={one: partial(has, architecture=one) for one in (MESOS, MULTI)},
        )


def _each(said: Iterable[str]) -> str:
    """Name each kind of work with what is said of it."""
    return ", ".join(f"{name}: {one}" for name, one in zip(WORK, said, strict=True))


command = command_of(Figure7)
