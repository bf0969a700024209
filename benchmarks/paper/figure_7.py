"""Figure 7 of the Omega paper: two-level scheduling, where offers are held during decisions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final

from benchmarks.paper.claims import Claim, Row, has, where
from benchmarks.paper.figure import Figure, command_of, curves
from benchmarks.paper.setting import (
    DURATION_S,
    RECORDED,
    T_JOB_S,
    T_TASK_S,
    TASKS_MEAN,
    Setting,
)
from omega.plots.picture import Picture

MESOS: Final = "two-level"
MULTI: Final = "multi-path"
FAR_ABOVE: Final = 2.0
Kinds = Mapping[str, Mapping[str, Any]]
"""Kinds of work: by name, the fields of the setting."""
OF_2011: Final[Mapping[str, Any]] = {"cell": RECORDED}
PLAIN: Final[Mapping[str, Any]] = {
    "cell": "B",
    "fill": None,
    "tasks_mean": TASKS_MEAN,
    "duration_s": DURATION_S,
    "large_tasks": 0.0,
    "factor": 1.0,
    "t_job_batch": T_JOB_S,
    "t_task_batch": T_TASK_S,
    "t_task_service": T_TASK_S,
}
UNEVEN: Final = "60 % full, tasks of 1 and 3 cores"
WORK: Final[Kinds] = {
    "60 % full": PLAIN,
    "90 % full": {**PLAIN, "fill": 0.9},
    "90 % full, large jobs": {**PLAIN, "fill": 0.9, "tasks_mean": 400, "duration_s": 60},
    UNEVEN: {**PLAIN, "large_tasks": 0.1},
}
"""Kinds of work on cell B. On a full cell, and with jobs that ask for much at once, offers leave
little to others. Tasks of three cores seldom fit the rest of a machine."""
ALONE: Final[Kinds] = {
    "jobs of 400 tasks": {**PLAIN, "tasks_mean": 400},
    "batch t_job 1 s": {**PLAIN, "t_job_batch": 1.0},
    "batch t_task 50 ms": {**PLAIN, "t_task_batch": 0.05},
    "service t_task 1 s": {**PLAIN, "t_task_service": 1.0},
    "4 times the batch jobs": {**PLAIN, "factor": 4.0},
}
"""Other possible reasons, each on its own, with the longest service decisions."""


@dataclass(frozen=True, kw_only=True)
class Figure7(Figure):
    """Two-level offers by decision time, beside one scheduler with two paths. Four minutes.

    On cell B as it is, fuller, fuller with few large batch jobs, and with some larger tasks; and on
    the cell of 2011, with its own sizes of tasks, if `--trace` names it.
    """

    title: ClassVar[str] = "Two-level offers"

    def settings(self) -> list[Setting]:
        """Return the settings to simulate."""
        compared = [
            Setting(architecture=architecture, t_job_service=t_job, **work)
            for work in WORK.values()
            for architecture in (MESOS, MULTI)
            for t_job in self.x
        ]
        return (
            compared
            + [
                Setting(architecture=architecture, t_job_service=t_job, **work)
                for work in ALONE.values()
                for architecture, t_job in ((MESOS, max(self.x)), (MULTI, min(self.x)))
            ]
            + [
                Setting(**OF_2011, architecture=architecture, t_job_service=t_job)
                for architecture in (MESOS, MULTI)
                for t_job in (self.x if self.trace is not None else ())
            ]
        )

    def claims(self, rows: Sequence[Row]) -> list[Claim]:
        """Return the paper's claims, judged by the rows."""
        first, last = (
            [
                where(rows, architecture=MESOS, **work)[at]["batch"]["wait_mean_s"] or 0.0
                for work in WORK.values()
            ]
            for at in (0, -1)
        )
        waits = Claim(
            "batch jobs wait while a service scheduler thinks, which holds what it is offered",
            "batch waits with the shortest and the longest service decisions: "
            + _each(WORK, (f"{a:.2g} and {b:.3g} s" for a, b in zip(first, last, strict=True))),
            last[0] > 10 * first[0],
        )
        of_one_size = {**WORK, **ALONE}
        del of_one_size[UNEVEN]
        return [
            waits,
            *_busier_and_given_up("tasks of one size", rows, of_one_size),
            *_busier_and_given_up("tasks of two sizes", rows, {UNEVEN: WORK[UNEVEN]}),
            *(
                _busier_and_given_up("the cell of 2011, its own sizes", rows, {"": OF_2011})
                if where(rows, **OF_2011)
                else []
            ),
        ]

    def paint(self, rows: Sequence[Row], title: str) -> Picture:
        """Draw waits, the time spent thinking, and unfinished jobs."""
        return curves(
            rows,
            title,
            x="t_job_service",
            measures=["wait_mean_s", "think_started", "jobs_unfinished"],
            columns={
                name: partial(has, **work)
                for name, work in {**WORK, "cell of 2011": OF_2011}.items()
                if where(rows, **work)
            },
            lines={one: partial(has, architecture=one) for one in (MESOS, MULTI)},
        )


def _busier_and_given_up(sizes: str, rows: Sequence[Row], kinds: Kinds) -> list[Claim]:
    """Return two claims, judged by the first kind of work, with the figures of all."""
    offered = {name: where(rows, architecture=MESOS, **work) for name, work in kinds.items()}
    alone = {name: where(rows, architecture=MULTI, **work)[0] for name, work in kinds.items()}
    busier = [
        max(row["batch"]["think_started"] for row in offered[name])
        / max(1e-9, alone[name]["batch"]["think_started"])
        for name in kinds
    ]
    given_up, left = (
        [sum(row["batch"][what] for row in mine) for mine in offered.values()]
        for what in ("jobs_abandoned", "jobs_unfinished")
    )
    return [
        Claim(
            f"{sizes}: batch schedulers are far busier than with multi path and short decisions",
            "thinking for so many times as long, at most: "
            + _each(kinds, (f"{one:.2f}" for one in busier)),
            busier[0] > FAR_ABOVE,
        ),
        Claim(
            f"{sizes}: jobs are given up at the limit of attempts",
            "batch jobs given up: "
            + _each(kinds, (f"{one:g}" for one in given_up))
            + "; left over, in all runs: "
            + _each(kinds, (f"{one:g}" for one in left)),
            given_up[0] > 0,
        ),
    ]


def _each(names: Iterable[str], said: Iterable[str]) -> str:
    """Join names and texts: a: x, b: y."""
    return ", ".join(f"{name}: {one}" for name, one in zip(names, said, strict=True))


command = command_of(Figure7)
