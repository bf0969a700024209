"""google-2011, a week: the jobs of the trace's first seven days, with sizes drawn from the window.

Goal     Days of arrivals, so that measures can be taken day by day as the Omega paper does.
Promise  Times and scheduling classes are the recorded ones. The job table has no sizes, so the
         tasks of each job, what a task asks for and its priority are those of a job of the same
         class that was drawn from the published window. A job's tasks run for a share of the time
         that it was recorded to run: the share of the job that was drawn.
Source   Google ClusterData2011_2, job events; Omega (EuroSys 2013), section 5 (seven days).
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from omega.model.arrays import Ids, Index
from omega.workload.arrivals import MS_PER_S, Arrival
from omega.workload.tasks import NO_END
from omega.workload.traces.columns import Table, read_table
from omega.workload.traces.google_tables import (
    CLASS_MAX,
    ID_MAX,
    SECONDS_MAX,
    WINDOW_START_S,
    SubmittedJobs,
)


@dataclass(frozen=True, eq=False)
class Week:
    """The jobs of the first seven days."""

    arrivals: tuple[Arrival, ...]
    """Those submitted after the start of the window, ordered by submission."""
    ended: Ids
    """The ids of all jobs that ended, ascending, ..."""
    end_ms: Ids
    """... and when, from the window's start; 0 if before."""


def read_week(path: Path, window: SubmittedJobs, rng: np.random.Generator) -> Week:
    """Read the jobs.

    Raises BadInput for a malformed table and for a class of which the window has no job.
    """
    table = read_table(path, ("job_id", "submit_s", "schedule_s", "end_s", "scheduling_class"))
    submit_s = table.numbers("submit_s", highest=SECONDS_MAX)
    rows = np.flatnonzero(submit_s >= WINDOW_START_S)
    rows = rows[np.argsort(submit_s[rows], kind="stable")]
    like = _drawn(table, rows, window.scheduling_class, rng)
    duration_ms = _ran_ms(table)[rows]
    names = table.integers("job_id", highest=ID_MAX)[rows]
    arrivals = []
    for at_s, name, number, ran_ms in zip(
        (submit_s[rows] - WINDOW_START_S).tolist(),
        names.tolist(),
        like.tolist(),
        duration_ms.tolist(),
        strict=True,
    ):
        spec = window.arrivals[number].spec
        lasts = None if ran_ms == NO_END else round(ran_ms * window.task_share[number])
        group = replace(spec.groups[0], duration_ms=lasts)
        arrivals.append(Arrival(at_s, replace(spec, name=str(name), groups=(group,))))
    return Week(tuple(arrivals), *_ends(table))


def _ends(table: Table) -> tuple[Ids, Ids]:
    """Return the ids of jobs that ended, ascending, and when, in ms from the window's start."""
    end_s = table.numbers("end_s", highest=SECONDS_MAX, empty=np.nan)
    ended = np.flatnonzero(~np.isnan(end_s))
    job = table.integers("job_id", highest=ID_MAX)[ended]
    since_ms = np.rint((end_s[ended] - WINDOW_START_S) * MS_PER_S).astype(np.int64)
    order = np.argsort(job, kind="stable")
    return job[order], np.maximum(since_ms[order], 0)


def _drawn(table: Table, rows: Index, window_class: Ids, rng: np.random.Generator) -> Index:
    """Return, for each row, the position of a job of the window that has its class."""
    of_class = table.integers("scheduling_class", highest=CLASS_MAX)[rows]
    like = np.zeros(len(rows), dtype=np.intp)
    for each in np.unique(of_class).tolist():
        mine = np.flatnonzero(of_class == each)
        choices = np.flatnonzero(window_class == each)
        if not len(choices):
            raise table.reject(
                int(rows[mine[0]]), "scheduling_class", f"the window has no job of class {each}"
            )
        like[mine] = choices[rng.integers(len(choices), size=len(mine))]
    return like


def _ran_ms(table: Table) -> Ids:
    """Return how long each job ran, in milliseconds; NO_END if it outlived the trace."""
    ran_s = table.numbers("end_s", highest=SECONDS_MAX, empty=np.nan) - table.numbers(
        "schedule_s", highest=SECONDS_MAX, empty=np.nan
    )
    known = ~np.isnan(ran_s)
    ran_ms = np.full(len(table), NO_END, dtype=np.int64)
    ran_ms[known] = np.rint(np.maximum(ran_s[known], 0.0) * MS_PER_S)
    return ran_ms
