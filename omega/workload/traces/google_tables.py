"""The tables of google-2011 as arrays and jobs.

Goal     Keep the meaning of the columns apart from the making of the workload.
Promise  Normalised amounts become integers: 1.0 is 64 cores, 256 GiB of memory, 1 TiB of disk.
         Times are seconds of the trace; a malformed cell is BadInput.
Source   Google ClusterData2011_2, folded into CSV; priorities and classes as in its format.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from omega.limits import LIMITS
from omega.model.arrays import Amounts, Codes, Ids, Score, positions
from omega.model.jobs import JobSpec, TaskGroup
from omega.model.machines import Machines
from omega.model.resources import KINDS, Kind
from omega.workload.arrivals import BATCH, MS_PER_S, SERVICE, Arrival
from omega.workload.machine_events import MachineEvent
from omega.workload.tasks import NO_END, SCHEDULERS, Tasks
from omega.workload.traces.columns import Table, read_table

AT_1 = {Kind.CPU_MILLI: 64_000, Kind.MEMORY_MIB: 262_144, Kind.DISK_MIB: 1_048_576}
"""What 1.0, the most that any machine has, stands for."""
SHARE_MAX = 16.0
"""Largest share that a task may ask for; a request may exceed every machine (1.0)."""

WINDOW_START_S = 600.0
SECONDS_MAX = 1e9
ID_MAX = 2**40
"""The trace's ids are below 2^33. Up to this id, job and task index fit one 64-bit integer."""
NO_MACHINE = -1

SCHEDULER_BY_CLASS = (BATCH, BATCH, SERVICE, SERVICE)
CLASS_MAX = len(SCHEDULER_BY_CLASS) - 1
PRIORITY_MAX = 11
PRODUCTION_PRIORITY = 9
"""The lowest priority that the trace's format calls production."""
PRIORITY_STEP = 10
"""Precedences between two priorities below production: the gap of precedence of a cell whose owner
has set none, so that each priority may evict the lower ones, as in the trace. Production priorities
follow each other by one: none of them evicts another."""
BY_CLASS, BY_PRODUCTION = "class", "production"
"""Which jobs are service jobs: those of scheduling class 2 or 3; those of these that also have a
production priority, as the open simulator of the Omega paper counts them."""
MACHINE_EVENTS = ("add", "remove", "update")
TASK_EVENTS = ("submit", "schedule", "evict", "fail", "finish", "kill")
SUBMIT, SCHEDULE, EVICT = 0, 1, 2
"""Positions in TASK_EVENTS; from EVICT on, an event ends a run of the task."""

JOB_COLUMNS = ("job_id", "scheduling_class", "priority", "cpu", "mem", "disk", "different_machine")
TASK_COLUMNS = (*JOB_COLUMNS, "task_index")


@dataclass(frozen=True, eq=False)
class StartTasks:
    """The tasks that existed before the window, placed or pending."""

    tasks: Tasks
    key: Ids
    """Job and task index as one integer."""
    machine: Ids
    """The machine's id in the trace, or NO_MACHINE for a pending task."""


@dataclass(frozen=True, eq=False)
class TaskEvents:
    """What happened to tasks in the window, ordered by task, then by time."""

    tasks: Tasks
    key: Ids
    event: Codes
    """Position in TASK_EVENTS."""
    since_start_ms: Ids


@dataclass(frozen=True, eq=False)
class SubmittedJobs:
    """The jobs submitted in the window."""

    arrivals: tuple[Arrival, ...]
    id: Ids
    scheduling_class: Ids
    task_share: Score
    """The duration of a task as a share of the time for which its job ran; 1 where unknown."""


def read_machines(path: Path) -> tuple[Machines, Ids, tuple[MachineEvent, ...]]:
    """Return the machines of time 0, their ids in the trace, ascending, and their later events.

    Machines that appear first after time 0 are left out, with their events.
    """
    table = read_table(path, ("time_s", "machine_id", "event", "platform", "cpu", "mem"))
    event = np.array(table.words("event", allowed=MACHINE_EVENTS))
    at_start = (table.numbers("time_s", highest=SECONDS_MAX) == 0) & (event == "add")
    id_in_trace = table.integers("machine_id", highest=ID_MAX)
    rows = np.flatnonzero(at_start)
    rows = rows[np.argsort(id_in_trace[rows], kind="stable")]
    ids = id_in_trace[rows]
    for again in np.flatnonzero(np.diff(ids) == 0).tolist():
        raise table.reject(int(rows[again + 1]), "machine_id", "the machine is there already")
    platform = table.words("platform", may_miss=True)
    capacity = _amounts(
        table.numbers("cpu", highest=1.0, empty=0.0),
        table.numbers("mem", highest=1.0, empty=0.0),
        # No table gives a machine's disk. Each gets 1.0: no task asks for more than 1 % of it.
        np.ones(len(table)),
    )
    machines = Machines(
        names=tuple(map(str, ids.tolist())),
        capacity=capacity[rows],
        attributes={"platform": [platform[row] or None for row in rows.tolist()]},
    )
    return machines, ids, _later_events(table, capacity, ids, machines)


def _later_events(
    table: Table, capacity: Amounts, ids: Ids, machines: Machines
) -> tuple[MachineEvent, ...]:
    """Return the events after time 0 of the machines that exist at time 0.

    Nearly all updates, and all machines that come back, leave the capacity as it was.
    """
    time_s = table.numbers("time_s", highest=SECONDS_MAX)
    at = positions(ids, table.integers("machine_id", highest=ID_MAX))
    has, is_up, events = machines.capacity.copy(), np.ones(len(ids), np.bool_), []
    later = np.flatnonzero((time_s > 0) & (at >= 0))
    for row in later[np.argsort(time_s[later], kind="stable")].tolist():
        machine, event = int(at[row]), table.columns["event"][row]
        if event != "update":  # an update changes only the capacity
            is_up[machine] = event == "add"
        changed = event != "remove" and bool((capacity[row] != has[machine]).any())
        if changed:
            has[machine] = capacity[row]
        if changed or event != "update":
            since_start_s = max(0.0, float(time_s[row]) - WINDOW_START_S)
            events.append(
                MachineEvent(
                    since_start_s,
                    machine,
                    bool(is_up[machine]),
                    capacity[row] if changed else None,
                )
            )
    return tuple(events)


def read_start(path: Path, service: str = BY_CLASS) -> StartTasks:
    """Return the state of the cell when the window begins.

    `service` is BY_CLASS or BY_PRODUCTION, here and in the functions below.
    """
    table = read_table(path, (*TASK_COLUMNS, "machine_id"))
    return StartTasks(
        _tasks(table, service),
        _key(table),
        table.integers("machine_id", highest=ID_MAX, empty=NO_MACHINE),
    )


def read_events(path: Path, service: str = BY_CLASS) -> TaskEvents:
    """Return the task events of the window."""
    table = read_table(path, (*TASK_COLUMNS, "time_s", "event"))
    code = {event: number for number, event in enumerate(TASK_EVENTS)}
    event = np.array([code[e] for e in table.words("event", allowed=code)], dtype=np.int32)
    since_start_ms = _since_start_ms(table, "time_s")
    key = _key(table)
    order = np.lexsort((since_start_ms, key))
    return TaskEvents(
        _tasks(table, service).take(order), key[order], event[order], since_start_ms[order]
    )


def read_jobs(path: Path, service: str = BY_CLASS) -> SubmittedJobs:
    """Return the jobs submitted in the window.

    A task's duration is the median run time of the job's tasks that finished in the window. If
    none did, it is the time from the job's schedule event to its end.
    """
    more = ("submit_s", "n_tasks", "schedule_s", "end_s", "task_runtime_median_s")
    table = read_table(path, (*JOB_COLUMNS, *more))
    columns = _tasks(table, service)
    count = table.integers("n_tasks", lowest=1, highest=LIMITS.tasks_per_job_max)
    ran_s = table.numbers("end_s", highest=SECONDS_MAX, empty=np.nan) - table.numbers(
        "schedule_s", highest=SECONDS_MAX, empty=np.nan
    )
    median_s = table.numbers("task_runtime_median_s", highest=SECONDS_MAX, empty=np.nan)
    duration_s = np.where(np.isnan(median_s), np.maximum(ran_s, 0.0), median_s)
    submit_s = (_since_start_ms(table, "submit_s") / MS_PER_S).tolist()
    arrivals = tuple(
        Arrival(submit_s[row], _job(columns, row, int(count[row]), float(duration_s[row])))
        for row in range(len(table))
    )
    share = np.ones(len(table))
    known = (ran_s > 0) & (duration_s < ran_s)
    share[known] = duration_s[known] / ran_s[known]
    return SubmittedJobs(
        arrivals, columns.owner, table.integers("scheduling_class", highest=CLASS_MAX), share
    )


def _job(columns: Tasks, row: int, tasks: int, duration_s: float) -> JobSpec:
    amounts = columns.amounts[row]
    group = TaskGroup(
        tasks=tasks,
        cpu_milli=int(amounts[Kind.CPU_MILLI]),
        memory_mib=int(amounts[Kind.MEMORY_MIB]),
        disk_mib=int(amounts[Kind.DISK_MIB]),
        duration_ms=None if np.isnan(duration_s) else round(duration_s * MS_PER_S),
        different_machines=bool(columns.different_machines[row]),
    )
    return JobSpec(
        name=str(columns.owner[row]),
        scheduler=SCHEDULERS[columns.scheduler[row]],
        precedence=int(columns.precedence[row]),
        groups=(group,),
    )


def _tasks(table: Table, service: str) -> Tasks:
    """Return the tasks (or jobs) of a table, all with the duration NO_END."""
    cpu, memory, disk = (
        table.numbers(column, highest=SHARE_MAX, empty=0.0) for column in ("cpu", "mem", "disk")
    )
    priority = table.integers("priority", highest=PRIORITY_MAX)
    kinds = np.array([SCHEDULERS.index(name) for name in SCHEDULER_BY_CLASS], dtype=np.int32)
    scheduler = kinds[table.integers("scheduling_class", highest=CLASS_MAX)]
    if service == BY_PRODUCTION:
        scheduler[priority < PRODUCTION_PRIORITY] = SCHEDULERS.index(BATCH)
    return Tasks(
        owner=table.integers("job_id", highest=ID_MAX),
        scheduler=scheduler,
        precedence=precedence_of(priority),
        amounts=_amounts(cpu, memory, disk),
        different_machines=table.integers("different_machine", highest=1, empty=0) == 1,
        duration_ms=np.full(len(table), NO_END, dtype=np.int64),
    )


def precedence_of(priority: Ids) -> Ids:
    """Return the precedences that stand for the trace's priorities: 0, 10, ... 80, 90, 91, 92."""
    below = np.minimum(priority, PRODUCTION_PRIORITY)
    return PRIORITY_STEP * below + np.maximum(priority - PRODUCTION_PRIORITY, 0)


def _amounts(cpu: Score, memory: Score, disk: Score) -> Amounts:
    amounts = np.zeros((len(cpu), KINDS), dtype=np.int64)
    columns: Sequence[Score] = (cpu, memory, disk)
    for (kind, whole), share in zip(AT_1.items(), columns, strict=True):
        amounts[:, kind] = np.rint(share * whole)
    return amounts


def _key(table: Table) -> Ids:
    task = table.integers("task_index", highest=LIMITS.tasks_per_job_max - 1)
    return table.integers("job_id", highest=ID_MAX) * LIMITS.tasks_per_job_max + task


def _since_start_ms(table: Table, column: str) -> Ids:
    seconds = table.numbers(column, lowest=WINDOW_START_S, highest=SECONDS_MAX) - WINDOW_START_S
    return np.rint(seconds * MS_PER_S).astype(np.int64)
