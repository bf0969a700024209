"""Figure 10 of the Omega paper: busyness over both decision times of service jobs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from benchmarks.paper.claims import Claim, Row, where
from benchmarks.paper.figure import Figure, command_of
from benchmarks.paper.setting import Setting
from benchmarks.paper.surface import surfaces
from omega.plots.picture import Picture

T_JOBS: Final = (0.01, 0.1, 1.0, 10.0, 100.0)
T_TASKS: Final = (0.001, 0.01, 0.1, 1.0)
LEFT: Final = 0.02
"""Share of unfinished jobs above which work counts as left unscheduled."""
DESIGNS: Final[dict[str, dict[str, Any]]] = {
    "single path": {"architecture": "monolithic"},
    "multi path": {"architecture": "multi-path"},
    "two-level": {"architecture": "two-level"},
    "Omega": {"architecture": "shared-state"},
    "Omega, coarse": {"architecture": "shared-state", "rule": "sequence"},
    "Omega, coarse, all or nothing": {
        "architecture": "shared-state",
        "rule": "sequence",
        "granularity": "all-or-nothing",
    },
}
USUAL: Final = {"rule": "fit", "granularity": "incremental"}


def leaves_work(row: Row) -> bool:
    """Return whether work stays unscheduled."""
    left, jobs = (
        sum(row[one][name] for one in ("batch", "service")) for name in ("jobs_unfinished", "jobs")
    )
    return bool(left > LEFT * jobs)


@dataclass(frozen=True, kw_only=True)
class Figure10(Figure):
    """Busyness of the service scheduler over both its decision times, by design. Five minutes."""

    title: ClassVar[str] = "Both decision times of service jobs"
    x: tuple[float, ...] = T_JOBS

    def settings(self) -> list[Setting]:
        """Return the settings to simulate."""
        return [
            replace(Setting(t_job_service=t_job, t_task_service=t_task), **design)
            for design in DESIGNS.values()
            for t_job in self.x
            for t_task in T_TASKS
        ]

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        """Return the paper's claims, judged by the rows."""
        by_design = {name: where(rows, **(USUAL | design)) for name, design in DESIGNS.items()}
        left = {name: sum(map(leaves_work, mine)) for name, mine in by_design.items()}
        counted = ", ".join(f"{name} {number}" for name, number in left.items())
        held = {
            name: sum(row["batch"]["jobs_unfinished"] > LEFT * row["batch"]["jobs"] for row in mine)
            for name, mine in by_design.items()
        }
        thought = {
            name: sum(row["service"]["busy"] for row in mine) for name, mine in by_design.items()
        }
        coarse = [thought[name] / thought["Omega"] for name in list(DESIGNS)[4:]]
        return [
            Claim(
                "work stays unscheduled over most of the surface with a single path, over less with"
                " multi path, over least with Omega",
                f"of {len(self.x) * len(T_TASKS)} points: {counted}",
                len(self.x) * len(T_TASKS) < 2 * left["single path"]
                and left["single path"] > left["multi path"] > left["Omega"],
            ),
            Claim(
                "with Omega no batch job stays behind for the sake of service jobs",
                "points with batch jobs left: "
                + ", ".join(f"{name} {number}" for name, number in held.items()),
                held["Omega"] == 0 < held["single path"],
            ),
            Claim(
                "coarse conflicts and all-or-nothing commits make schedulers busier",
                f"service busyness over the surface, by that of Omega: {coarse[0]:.2f} coarse,"
                f" {coarse[1]:.2f} coarse and all or nothing",
                1 < coarse[0] <= coarse[1],
            ),
        ]

    def paint(self, rows: Sequence[Row], title: str) -> Picture:
        """Draw one surface per design."""
        return surfaces(
            {name: where(rows, **(USUAL | design)) for name, design in DESIGNS.items()},
            title,
            columns=3,
            leaves_work=leaves_work,
        )


command = command_of(Figure10)
