"""Figure 12 of the Omega paper: conflicts of slow service decisions, on a recorded cell."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, ClassVar, Final

from benchmarks.paper.claims import (
    UNSATURATED,
    WAIT_TARGET_S,
    Claim,
    Row,
    first_not,
    has,
    spread,
    told,
    where,
)
from benchmarks.paper.figure import Figure, command_of, curves
from benchmarks.paper.setting import (
    BY_CLASS,
    BY_PRODUCTION,
    RECORDED,
    RECORDED_HOURS,
    T_JOB_S,
    T_TASK_S,
    WEEK,
    WINDOW,
    Setting,
)
from omega.plots.picture import Picture
from omega.workload.arrivals import SERVICE

SLOW_TASK_S: Final = 1.0
FEW: Final = 0.2
"""Conflict fraction that the paper calls low."""
AT_S: Final = 10.0
"""Decision time that the paper's claims name."""
ABOUT: Final = 3.0
"""Factor by which the measured decision time may differ from it."""
PAPERS_MORE: Final = (0.2, 0.8)
"""Bounds for the paper's 40 %: how much busier a scheduler is than without conflicts."""
APART: Final = 2.0
"""Factor between conflict fractions that no noise explains."""
FREE: Final[dict[str, Any]] = {
    "one_in": 1,
    "alike": True,
    "obeyed": True,
    "placed_by": None,
    "service_by": BY_CLASS,
    "period": WINDOW,
}
"""Settings without constraints except for the trace's own, each kind with its own placement."""
CELLS: Final[dict[str, dict[str, Any]]] = {
    "cell of 2011": {"cell": RECORDED, "fill": None, **FREE},
    "cell of 2011, placed alike": {"cell": RECORDED, "fill": None, **FREE, "placed_by": SERVICE},
    "cell B, 60 % full": {"cell": "B", "fill": None, **FREE},
    "cell B, 85 %": {"cell": "B", "fill": 0.85, **FREE},
    "cell B, 92 %": {"cell": "B", "fill": 0.92, **FREE},
    "cell B, 60 %, 1 machine in 4": {"cell": "B", "fill": None, **FREE, "one_in": 4},
}
"""Conflicts depend on how full a cell is, on the part of it that jobs may use, and on whether both
kinds look for the same machines."""
RECORDED_FREE, B_FREE = (CELLS[name] for name in ("cell of 2011", "cell B, 60 % full"))
PLACED_ALIKE = CELLS["cell of 2011, placed alike"]
WEEKS: Final = {
    f"service jobs by {service}": {**RECORDED_FREE, "service_by": service, "period": WEEK}
    for service in (BY_PRODUCTION, BY_CLASS)
}
ONE_IN: Final = (1, 2, 4, 10)
NARROWED: Final = {
    cell["cell"]: [{**cell, "one_in": one_in} for one_in in ONE_IN]
    for cell in (RECORDED_FREE, B_FREE)
}
OF_THEIR_OWN: Final = [{**cell, "one_in": 4, "alike": False} for cell in (RECORDED_FREE, B_FREE)]
DROPPED: Final = {**RECORDED_FREE, "obeyed": False}


@dataclass(frozen=True)
class _More:
    """How much busier a scheduler is than without conflicts."""

    said: str
    share: float | None


@dataclass(frozen=True, kw_only=True)
class Figure12(Figure):
    """Wait, conflicts and busyness by the decision time of service jobs, on the cell of 2011.

    Beside it both kinds placed alike, a week of the same cell, cell B at three levels, and
    constraints. Takes half an hour.
    """

    title: ClassVar[str] = "Slow service decisions on the cell of 2011"
    x: tuple[float, ...] = (0.1, 1.0, 3.0, 10.0, 20.0, 30.0, 60.0, 100.0)
    week_x: tuple[float, ...] = (1.0, 10.0, 100.0)
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
        weeks = [
            Setting(**week, t_job_service=t_job) for week in WEEKS.values() for t_job in self.week_x
        ]
        return [*dict.fromkeys([*by_job, *by_constraint]), slow, *weeks]

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
        more = {name: self._more(rows, cell) for name, cell in CELLS.items()}
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
                "at the longest t_job up to 10 s at which it keeps up: "
                + ", ".join(f"{name} {one.said}" for name, one in more.items()),
                recorded.share is not None and PAPERS_MORE[0] <= recorded.share <= PAPERS_MORE[1],
            ),
            Claim(
                "a second a task, at 0.1 s a job, costs a conflict fraction of at most 0.2",
                spread(slow, SERVICE, "conflict_fraction"),
                few <= FEW,
            ),
            constraints_matter(rows, self._at_s),
            placement_matters(rows, self._at_s),
            self._weeks(rows),
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

    def _more(self, rows: Sequence[Row], cell: Mapping[str, Any]) -> _More:
        """Return how much busier it is than with one decision per job, where it keeps up."""
        unsaturated = [
            row
            for row in where(rows, **cell, t_task_service=T_TASK_S)
            if row["t_job_service"] <= self._at_s
            and row["service"]["think_started"] < UNSATURATED
            and row["service"]["tasks"]
        ]
        if not unsaturated:
            return _More("saturated at every t_job", None)
        row = max(unsaturated, key=lambda row: row["t_job_service"])
        service, t_job = row["service"], row["t_job_service"]
        takes_s = service["jobs"] * t_job + service["tasks"] * row["t_task_service"]
        share = float(service["think_started"] * self.hours * 3_600 / takes_s) - 1
        return _More(f"{share:+.0%} (at {t_job:g} s)", share)

    def _weeks(self, rows: Sequence[Row]) -> Claim:
        """Report a week; the paper's medians are of seven days."""
        told_ = []
        conflicts = []
        for name, week in WEEKS.items():
            for row in where(rows, **week):
                service = row["service"]
                middle, apart = (
                    service[f"conflict_fraction_daily_{what}"] for what in ("median", "mad")
                )
                conflicts.append(middle or 0.0)
                told_.append(
                    f"{name}, t_job {row['t_job_service']:g} s: "
                    + ("none" if middle is None else f"{middle:.2g} (mad {apart:.1g})")
                    + f", wait {service['wait_mean_s'] or 0.0:.3g} s"
                )
        return Claim(
            "seven days: the daily conflict fraction passes 1 too",
            "medians over days: " + "; ".join(told_),
            max(conflicts, default=0.0) > 1,
        )


def placement_matters(rows: Sequence[Row], at_s: float) -> Claim:
    """Compare runs that differ only in the placement of batch jobs."""
    own, alike = (_at(rows, cell, at_s) for cell in (RECORDED_FREE, PLACED_ALIKE))
    few, many = (row["service"]["conflict_fraction"] or 0.0 for row in (own, alike))
    return Claim(
        "kinds that look for the same machines conflict more often (our own question)",
        f"at {at_s:g} s on the cell of 2011: {spread(own, SERVICE, 'conflict_fraction')} if batch"
        " jobs go to random machines and service jobs to the fullest,"
        f" {spread(alike, SERVICE, 'conflict_fraction')} if both go to the fullest",
        many > APART * few,
    )


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
