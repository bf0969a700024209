"""google-2011: one cell of 12,477 machines, what ran on it, and what arrived then.

Goal     A real start state, real job sizes and real churn, on a cell that never overcommits.
Promise  Time 0 is the trace's 600 s. The start state is made to fit (option `overcommit`); counts
         and notes report the changes. A task of the start state that ends in the window has a
         duration. Tasks that are resubmitted in the window after an eviction or failure arrive
         again.
Source   Google ClusterData2011_2, folded into CSV; the cell of Omega (EuroSys 2013), section 5.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from omega.model.arrays import Amounts, Ids, Index, integers, positions
from omega.model.machines import Machines
from omega.model.resources import Kind
from omega.workload.arrivals import MS_PER_S, Arrival, Prefill, Workload
from omega.workload.feasible_tasks import highest_that_fit, scaled_to_fit
from omega.workload.machine_events import MachineEvent
from omega.workload.synthetic import merged
from omega.workload.tasks import NO_END, Tasks, jobs_of, prefill_of
from omega.workload.traces.google_tables import (
    BY_CLASS,
    BY_PRODUCTION,
    EVICT,
    NO_MACHINE,
    SCHEDULE,
    SUBMIT,
    StartTasks,
    TaskEvents,
    read_events,
    read_jobs,
    read_machines,
    read_start,
)
from omega.workload.traces.google_week import read_week
from omega.workload.traces.loader import Tables, TraceLoader

NEVER = (integers(), integers())
"""Ids and times of jobs whose end is known: none."""
GRAIN_MS = 10_000
"""Times of single tasks are rounded to this grid, so that a job's tasks have few distinct ones."""


@dataclass(frozen=True, kw_only=True)
class StartReport:
    """What became of the tasks that ran when the window began."""

    tasks_at_start: int
    tasks_on_unknown_machines: int
    tasks_dropped: int
    tasks_scaled: int
    tasks_placed: int
    tasks_pending: int
    cpu_asked_percent: int
    """Of the cell's CPU, by the tasks on known machines, as recorded."""
    cpu_placed_percent: int

    def notes(self) -> Iterator[str]:
        """Yield the report as sentences."""
        yield (
            f"the recorded start state asks for {self.cpu_asked_percent} % of all CPU;"
            f" {self.tasks_placed} of its {self.tasks_at_start} tasks start placed and take"
            f" {self.cpu_placed_percent} %"
        )
        if self.tasks_dropped:
            yield (
                f"{self.tasks_dropped} tasks were dropped where a machine was overcommitted,"
                " lowest priority first"
            )
        if self.tasks_scaled:
            yield f"{self.tasks_scaled} tasks were scaled down where a machine was overcommitted"
        if self.tasks_on_unknown_machines:
            yield (
                f"{self.tasks_on_unknown_machines} tasks were left out, for they name machines"
                " that the trace does not have at time 0"
            )


def _read(
    tables: Tables,
    options: Mapping[str, str],
    rng: np.random.Generator,
) -> Workload:
    machines, machine_ids, machine_events = _larger(
        *read_machines(tables["machine_events"]), int(options["capacity"])
    )
    service = options["service"]
    at_start = read_start(tables["tasks_at_start"], service)
    events = read_events(tables["task_events"], service)
    window = read_jobs(tables["job_arrivals"], service)
    new, ends = window.arrivals, NEVER
    if options["arrivals"] == "week":
        week = read_week(tables["jobs"], window, rng)
        new, ends = week.arrivals, (week.ended, week.end_ms)

    prefill, report = _start(at_start, events, ends, machines, machine_ids, options["overcommit"])
    pending = at_start.tasks.take(np.flatnonzero(at_start.machine == NO_MACHINE))
    waiting = _arrivals(pending, np.zeros(len(pending), np.int64), "pending")
    back = _resubmitted(events, window.id)
    streams = [
        *([waiting] if options["pending"] == "arrive" else []),
        new,
        *([back] if options["returning"] == "arrive" else []),
    ]
    return Workload(
        name="google-2011",
        machines=machines,
        prefill=prefill,
        arrivals=merged(*streams),
        counts={
            "machines": len(machines),
            **vars(report),
            "jobs_submitted": len(new),
            "tasks_submitted": sum(arrival.spec.tasks for arrival in new),
            "tasks_back_in_window": sum(arrival.spec.tasks for arrival in back),
        },
        notes=tuple(report.notes()),
        machine_events=machine_events if options["machines"] == "change" else (),
    )


def _larger(
    machines: Machines, ids: Ids, events: tuple[MachineEvent, ...], percent: int
) -> tuple[Machines, Ids, tuple[MachineEvent, ...]]:
    """Return machines and their events with so many percent of their CPU and memory."""
    grown = tuple(
        event
        if event.capacity is None
        else replace(event, capacity=_percent_of(event.capacity, percent))
        for event in events
    )
    return replace(machines, capacity=_percent_of(machines.capacity, percent)), ids, grown


def _percent_of(capacity: Amounts, percent: int) -> Amounts:
    larger = capacity.copy()
    for kind in (Kind.CPU_MILLI, Kind.MEMORY_MIB):
        larger[..., kind] = larger[..., kind] * percent // 100
    return larger


def _start(
    at_start: StartTasks,
    events: TaskEvents,
    ends: tuple[Ids, Ids],
    machines: Machines,
    machine_ids: Ids,
    overcommit: str,
) -> tuple[Prefill, StartReport]:
    """Make the recorded start state fit; return it with a report of the changes."""
    at = positions(machine_ids, at_start.machine)
    known = np.flatnonzero(at >= 0)
    machine = at[known]
    tasks = replace(at_start.tasks, duration_ms=_durations(at_start, events, ends)).take(known)
    dropped = scaled = 0
    recorded = tasks.amounts
    if overcommit == "scale":
        tasks = replace(tasks, amounts=scaled_to_fit(machine, recorded, machines.capacity))
        scaled = int((tasks.amounts != recorded).any(axis=1).sum())
    else:
        stays = highest_that_fit(machine, tasks.precedence, recorded, machines.capacity)
        tasks, machine = tasks.take(np.flatnonzero(stays)), machine[stays]
        dropped = int(np.count_nonzero(~stays))
    placed = int(np.count_nonzero(at_start.machine != NO_MACHINE))
    return prefill_of(tasks, machine, str), StartReport(
        tasks_at_start=placed,
        tasks_on_unknown_machines=placed - len(known),
        tasks_dropped=dropped,
        tasks_scaled=scaled,
        tasks_placed=len(tasks),
        tasks_pending=len(at_start.key) - placed,
        cpu_asked_percent=_cpu_percent(recorded, machines),
        cpu_placed_percent=_cpu_percent(tasks.amounts, machines),
    )


def _cpu_percent(amounts: Amounts, machines: Machines) -> int:
    there_is = max(1, int(machines.capacity[:, Kind.CPU_MILLI].sum()))
    return round(100 * int(amounts[:, Kind.CPU_MILLI].sum()) / there_is)


def _durations(at_start: StartTasks, events: TaskEvents, ends: tuple[Ids, Ids]) -> Ids:
    """Return the duration (tasks,) of each start task; NO_END if no end is on record.

    The end of the task in the window counts, or else the end of its job, of which `ends` has the
    ids and the times.
    """
    durations = np.full(len(at_start.key), NO_END, dtype=np.int64)
    job, since_ms = ends
    at = positions(job, at_start.tasks.owner)
    durations[at >= 0] = _up_to_grain(since_ms[at[at >= 0]])
    of_tasks = np.flatnonzero(events.event >= EVICT)
    ended, first = np.unique(events.key[of_tasks], return_index=True)
    at = positions(ended, at_start.key)
    durations[at >= 0] = _up_to_grain(events.since_start_ms[of_tasks[first[at[at >= 0]]]])
    return durations


def _resubmitted(events: TaskEvents, new_jobs: Ids) -> tuple[Arrival, ...]:
    """Return what is submitted in the window apart from the first tasks of new jobs.

    These are tasks that were evicted, killed or failed. Each runs from its schedule event to its
    end; NO_END if it outlives the window. A task that was not scheduled is left out.
    """
    first_of_task = np.diff(events.key, prepend=-1) != 0
    is_new = np.isin(events.tasks.owner, new_jobs) & first_of_task
    submitted = np.flatnonzero((events.event == SUBMIT) & ~is_new)
    scheduled = _next(events, submitted)
    runs = (scheduled >= 0) & (events.event[scheduled] == SCHEDULE)
    submitted, scheduled = submitted[runs], scheduled[runs]
    ended = _next(events, scheduled)
    ran_ms = events.since_start_ms[ended] - events.since_start_ms[scheduled]
    duration_ms = np.where(ended >= 0, _up_to_grain(ran_ms), NO_END)
    tasks = replace(events.tasks.take(submitted), duration_ms=duration_ms)
    return _arrivals(tasks, events.since_start_ms[submitted], "back")


def _next(events: TaskEvents, at: Index) -> Index:
    """Return the position of each event's successor of the same task; -1 if it was the last."""
    after = np.minimum(at + 1, len(events.key) - 1)
    return np.where((after > at) & (events.key[after] == events.key[at]), after, -1)


def _arrivals(tasks: Tasks, submit_ms: Ids, what: str) -> tuple[Arrival, ...]:
    """Form jobs of the tasks that one recorded job submits within one step of the grid."""
    step = submit_ms // GRAIN_MS
    pairs, owner = np.unique(np.stack([tasks.owner, step], axis=1), axis=0, return_inverse=True)
    jobs = jobs_of(
        replace(tasks, owner=owner.reshape(-1).astype(np.int64)),
        lambda number: f"{pairs[number, 0]}-{what}",
    )
    submit_s = (pairs[:, 1] * (GRAIN_MS // MS_PER_S)).tolist()
    arrivals = (
        Arrival(float(submit_s[number]), spec)
        for number, spec in zip(jobs.owner, jobs.specs, strict=True)
    )
    return merged(tuple(arrivals))


def _up_to_grain(duration_ms: Ids) -> Ids:
    return -(-duration_ms // GRAIN_MS) * GRAIN_MS


GOOGLE_2011 = TraceLoader(
    name="google-2011",
    tables={
        "machine_events": ("machine_events.csv",),
        "tasks_at_start": ("tasks_at_start.csv",),
        "task_events": ("task_events_600s_to_5611s.csv",),
        "job_arrivals": ("job_arrivals_600s_to_5611s.csv",),
        "jobs": ("jobs_days_0_to_6.csv",),
    },
    options={
        "overcommit": ("drop", "scale"),
        "capacity": ("100", "110", "125", "150", "200"),
        "pending": ("arrive", "leave"),
        "returning": ("arrive", "leave"),
        "machines": ("change", "stay"),
        "service": (BY_CLASS, BY_PRODUCTION),
        "arrivals": ("window", "week"),
    },
    optional={"jobs": ("arrivals", "week")},
    read=_read,
)
