"""Figure 12 of the Omega paper: conflicts of slow service decisions, on a recorded cell."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, ClassVar, Final

from benchmarks.paper.claims import WAIT_TARGET_S, Claim, Row, first_not, has, told, where
from benchmarks.paper.figure import Figure, command_of, curves
from benchmarks.paper.setting import RECORDED, RECORDED_HOURS, T_JOB_S, T_TASK_S, Setting
from omega.plots.picture import Picture

SLOW_TASK_S: Final = 1.0
FEW: Final = 0.2
"""Conflict fraction that the paper calls low."""
AT_S: Final = 10.0
"""Decision time that the paper's claims name."""
ABOUT: Final = 3.0
"""Factor by which the measured decision time may differ from it."""
PAPERS_MORE: Final = (0.2, 0.8)
"""Bounds for the paper's 40 %: how much busier a scheduler is than without conflicts."""
FREE: Final[dict[str, Any]] = {"one_in": 1, "alike": True, "obeyed": True}
"""Settings without constraints except for the trace's own."""
CELLS: Final[dict[str, dict[str, Any]]] = {
    "cell of 2011": {"cell": RECORDED, "fill": None, **FREE},
    "cell B, 60 % full": {"cell": "B", "fill": None, **FREE},
    "cell B, 85 %": {"cell": "B", "fill": 0.85, **FREE},
    "cell B, 92 %": {"cell": "B", "fill": 0.92, **FREE},
    "cell B, 60 %, 1 machine in 4": {"cell": "B", "fill": None, **FREE, "one_in": 4},
}
"""Conflicts depend on how full a cell is, and on the part of it that jobs may use."""
RECORDED_FREE, B_FREE = (CELLS[name] for name in ("cell of 2011", "cell B, 60 % full"))
ONE_IN: Final = (1, 2, 4, 10)
NARROWED: Final = {
    cell["cell"]: [{**cell, "one_in": one_in} for one_in in ONE_IN]
    for cell in (RECORDED_FREE, B_FREE)
}
OF_THEIR_OWN: Final = [{**cell, "one_in": 4, "alike": False} for cell in (RECORDED_FREE, B_FREE)]
DROPPED: Final = {**RECORDED_FREE, "obeyed": False}


@dataclass(frozen=True, kw_only=True)
class Figure12(Figure):
    """Wait, conflicts and busyness by the decision time of service jobs, on the cell of 2011.

    Beside it cell B, at three levels; and both with constraints. Takes four minutes.
    """

    title: ClassVar[str] = "Slow service decisions on the cell of 2011"
    x: tuple[float, ...] = (0.1, 1.0, 3.0, 10.0, 20.0, 30.0, 60.0, 100.0)
    hours: float = RECORDED_HOURS

    def settings(self) -> list[Setting]:
        """Return the settings to simulate."""
        by_job = [
            Setting(**cell, t_job_service=t_job) for cell in CELLS.values() for t_job in self.x
        ]
        by_constraint = [
            Setting(**cell, t_job_service=self._at_s)
            for cell in (*chain(*NARROWED.values()), *OF_THEIR_OWN, DROPPED)
        ]
        slow = Setting(cell=RECORDED, t_job_service=T_JOB_S, t_task_service=SLOW_TASK_S)
        return [*dict.fromkeys([*by_job, *by_constraint]), slow]

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        """Return the paper's claims, judged by the rows."""
        mine, most = where(rows, **RECORDED_FREE, t_task_service=T_TASK_S), max(self.x)
        passes = {
            name: first_not(
                where(rows, **cell, t_task_service=T_TASK_S),
                "t_job_service",
                lambda row: (row["service"]["conflict_fraction"] or 0) <= 1,
            )
            for name, cell in CELLS.items()
        }
        first = passes[next(iter(CELLS))]
        late = first_not(
            mine, "t_job_service", lambda row: (row["service"]["wait_mean_s"] or 0) <= WAIT_TARGET_S
        )
        more = {name: self._more(_at(rows, cell, self._at_s)) for name, cell in CELLS.items()}
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
                f"at {self._at_s:g} s: "
                + ", ".join(f"{name} {one:+.0%}" for name, one in more.items()),
                PAPERS_MORE[0] <= recorded <= PAPERS_MORE[1],
            ),
            Claim(
                "a second a task, at 0.1 s a job, costs a conflict fraction of at most 0.2",
                f"{few:.2f}",
                few <= FEW,
            ),
            constraints_matter(rows, self._at_s),
        ]

    def paint(self, rows: Sequence[Row], title: str) -> Picture:
        """Draw the three measures."""
        return curves(
            where(rows, t_task_service=T_TASK_S),
            title,
            x="t_job_service",
            measures=["wait_mean_s", "conflict_fraction", "busy"],
            columns={"": has},
            lines={name: partial(has, **cell) for name, cell in CELLS.items()},
            workloads=("service",),
        )

    @property
    def _at_s(self) -> float:
        return min(self.x, key=lambda one: abs(one - AT_S))

    def _more(self, row: Row) -> float:
        """Return how much busier it is than with one decision per job; -1 if it is idle."""
        service = row["service"]
        takes_s = service["jobs"] * row["t_job_service"] + service["tasks"] * row["t_task_service"]
        return float(service["busy"] * self.hours * 3_600 / max(takes_s, 1e-9)) - 1


def constraints_matter(rows: Sequence[Row], at_s: float) -> Claim:
    """Compare runs that differ only in constraints."""

    def conflicts(cells: Sequence[Mapping[str, Any]]) -> list[float]:
        return [_at(rows, cell, at_s)["service"]["conflict_fraction"] or 0.0 for cell in cells]

    recorded, on_b = (conflicts(NARROWED[cell]) for cell in (RECORDED, "B"))
    return Claim(
        "constraints raise conflicts: a simulator that ignores them sees fewer",
        f"at {at_s:g} s, all jobs on the same machines, 1 in {_listed(ONE_IN, 'g')}:"
        f" cell of 2011 {_listed(recorded, '.2f')}; cell B {_listed(on_b, '.2f')};"
        f" each on 1 in 4 of its own choice: {_listed(conflicts(OF_THEIR_OWN), '.2f')};"
        " the cell of 2011 without its own constraints:"
        f" {_listed(conflicts([DROPPED]), '.2f')}",
        all(sorted(set(one)) == one for one in (recorded, on_b)),
    )


def _at(rows: Sequence[Row], cell: Mapping[str, Any], at_s: float) -> Row:
    """Return a cell's row with this decision time."""
    return where(rows, **cell, t_job_service=at_s, t_task_service=T_TASK_S)[0]


def _listed(values: Iterable[float], form: str) -> str:
    return ", ".join(format(value, form) for value in values)


command = command_of(Figure12)
