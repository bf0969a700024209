"""Figure 12 of the Omega paper: conflicts of slow service decisions, on a recorded cell."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Final

from benchmarks.paper.claims import WAIT_AIM_S, Claim, Row, first_not, has, told, where
from benchmarks.paper.figure import Figure, command_of, curves
from benchmarks.paper.setting import RECORDED, RECORDED_HOURS, T_JOB_S, T_TASK_S, Setting
from omega.cli.pictures import Picture

SLOW_TASK_S: Final = 1.0
FEW: Final = 0.2
"""Conflicts a transaction that are few, in the paper."""
AT_S: Final = 10.0
"""Decision time of which the paper speaks ..."""
ABOUT: Final = 3.0
"""... give or take this factor."""
PAPERS_MORE: Final = (0.2, 0.8)
"""About 40 % more than the estimate."""
CELLS: Final[dict[str, tuple[str, float | None]]] = {
    "cell of 2011": (RECORDED, None),
    "cell B, 60 % full": ("B", None),
    "cell B, 85 %": ("B", 0.85),
    "cell B, 92 %": ("B", 0.92),
}
"""How full a cell is decides how often schedulers meet."""


@dataclass(frozen=True, kw_only=True)
class Figure12(Figure):
    """Wait, conflicts and busyness by the decision time of service jobs, on the cell of 2011.

    Beside it cell B, at three levels. Takes four minutes.
    """

    title: ClassVar[str] = "Slow service decisions on the cell of 2011"
    x: tuple[float, ...] = (0.1, 1.0, 3.0, 10.0, 20.0, 30.0, 60.0, 100.0)
    hours: float = RECORDED_HOURS

    def settings(self) -> list[Setting]:
        """Return what is simulated."""
        by_job = [
            Setting(cell=cell, fill=fill, t_job_service=t_job)
            for cell, fill in CELLS.values()
            for t_job in self.x
        ]
        return [*by_job, Setting(cell=RECORDED, t_job_service=T_JOB_S, t_task_service=SLOW_TASK_S)]

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        """Hold the paper's claims against the rows."""
        mine, most = where(rows, cell=RECORDED, t_task_service=T_TASK_S), max(self.x)
        passes = {
            name: first_not(
                where(rows, cell=cell, fill=fill, t_task_service=T_TASK_S),
                "t_job_service",
                lambda row: (row["service"]["conflict_fraction"] or 0) <= 1,
            )
            for name, (cell, fill) in CELLS.items()
        }
        first = passes[next(iter(CELLS))]
        late = first_not(
            mine, "t_job_service", lambda row: (row["service"]["wait_mean_s"] or 0) <= WAIT_AIM_S
        )
        at_s = min(self.x, key=lambda one: abs(one - AT_S))
        more = {
            name: self._more(
                where(rows, cell=cell, fill=fill, t_job_service=at_s, t_task_service=T_TASK_S)[0]
            )
            for name, (cell, fill) in CELLS.items()
        }
        recorded = more[next(iter(CELLS))]
        (slow,) = where(rows, t_task_service=SLOW_TASK_S)
        few = slow["service"]["conflict_fraction"] or 0.0
        return [
            Claim(
                "the conflict fraction passes 1 at a decision time of about 10 s",
                "from, in s: "
                + ", ".join(f"{name} {told(at, most)}" for name, at in passes.items()),
                first is not None and AT_S / ABOUT <= first <= AT_S * ABOUT,
            ),
            Claim(
                "from about 10 s on jobs wait for more than 30 s",
                f"from {told(late, most)} s",
                late is not None and AT_S / ABOUT <= late <= AT_S * ABOUT,
            ),
            Claim(
                "then the scheduler is about 40 % busier than without conflicts",
                f"at {at_s:g} s: " + ", ".join(f"{name} {one:+.0%}" for name, one in more.items()),
                PAPERS_MORE[0] <= recorded <= PAPERS_MORE[1],
            ),
            Claim(
                "a second a task, at 0.1 s a job, costs a conflict fraction of at most 0.2",
                f"{few:.2f}",
                few <= FEW,
            ),
        ]

    def paint(self, rows: Sequence[Row], title: str) -> Picture:
        """Draw the three measures."""
        return curves(
            where(rows, t_task_service=T_TASK_S),
            title,
            x="t_job_service",
            measures=["wait_mean_s", "conflict_fraction", "busy"],
            columns={"": has},
            lines={
                name: partial(has, cell=cell, fill=fill) for name, (cell, fill) in CELLS.items()
            },
            workloads=("service",),
        )

    def _more(self, row: Row) -> float:
        """Return how much busier than if each job was decided on once; -1 for not at all busy."""
        service = row["service"]
        takes_s = service["jobs"] * row["t_job_service"] + service["tasks"] * row["t_task_service"]
        return float(service["busy"] * self.hours * 3_600 / max(takes_s, 1e-9)) - 1


command = command_of(Figure12)
