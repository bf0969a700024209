"""Collects the lines of a file into a saved cell, and checks each against those before it.

Goal     Build arrays of millions of tasks from lines of a thousand.
Promise  A line that contradicts itself, or an earlier one, is BadInput with its field; the caller
         adds the file and the line.
Source   docs/decisions/0055-snapshots-and-what-if.md; omega.store.saved.lines.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from omega.errors import BadInput
from omega.lifecycle.states import ParkReason, State
from omega.limits import LIMITS
from omega.model.arrays import Amounts, Ids, Index, ascends, integers, positions
from omega.model.claims import ConflictRule
from omega.model.jobs import PRECEDENCE_MAX, PRECEDENCE_MIN, JobSpec
from omega.model.machines import Machines
from omega.model.names import ADDRESS_RULE, is_address, is_storable_name
from omega.model.quotas import Budget, Quota, QuotaScope
from omega.model.resources import KINDS, Kind
from omega.model.wire import spec_from_wire
from omega.ordering.tenants import Tenant, TenantTree
from omega.store.saved.cell import (
    PastTasks,
    RunningTasks,
    SavedCell,
    SavedJob,
    SavedMachines,
    SavedProcess,
    SavedScheduler,
)
from omega.store.saved.lines import (
    PAST_MS_MAX,
    AnyLine,
    CellLine,
    JobLine,
    MachinesLine,
    PastLine,
    ProcessLine,
    QuotaLine,
    RunningLine,
    SchedulerLine,
    TenantLine,
)

MACHINES_MAX: Final = 1_000_000
JOBS_MAX: Final = 2_000_000
TASKS_MAX: Final = 10_000_000
"""Of each kind of line with tasks."""
OTHERS_MAX: Final = 100_000
"""Quotas, tenants, schedulers and processes."""
ATTRIBUTES_MAX: Final = 20_000_000
"""Names of attributes times machines: so many values are held, most of them none."""


class Collected:
    """What has been read so far."""

    def __init__(self) -> None:
        self._head: CellLine | None = None
        self._machines: list[MachinesLine] = []
        self._names: set[str] = set()
        self._attributes: set[str] = set()
        self._waiting = 0
        """Tasks of jobs that go on, and ranges of tasks without a place."""
        self._last_machine = 0
        self._ids: Ids | None = None
        self._jobs: dict[int, SavedJob] = {}
        self._last_job = 0
        self._running: list[RunningTasks] = []
        self._last_running = (0, -1)
        self._past: list[PastTasks] = []
        self._last_end_ms = 0
        self._tasks = 0
        self._quotas: dict[tuple[str, str], Quota] = {}
        self._tenants: list[Tenant] = []
        self._schedulers: list[SavedScheduler] = []
        self._processes: list[SavedProcess] = []

    def take(self, line: AnyLine) -> None:
        """Add a line. Raises BadInput, with the field."""
        match line:
            case CellLine():
                self._head = _sound_head(line)
            case MachinesLine():
                self._take_machines(line)
            case QuotaLine():
                self._take_quota(line)
            case TenantLine():
                self._take_tenant(line)
            case JobLine():
                self._take_job(line)
            case RunningLine():
                self._take_running(line)
            case PastLine():
                self._take_past(line)
            case SchedulerLine() | ProcessLine():
                self._take_process(line)
            case _:
                raise AssertionError("the last line is not collected")
        others = (self._quotas, self._tenants, self._schedulers, self._processes)
        if sum(map(len, others)) > OTHERS_MAX:
            raise BadInput(f"more than {OTHERS_MAX:,} quotas, tenants, schedulers and processes")

    def cell(self) -> SavedCell:
        """Return the cell of all lines. Raises BadInput if its tenants make no tree."""
        head = self._head
        assert head is not None, "the first line is checked by the reader"
        TenantTree(self._tenants)
        return SavedCell(
            taken_ms=head.taken_ms,
            begin_ms=head.begin_ms,
            precedence_gap=head.precedence_gap,
            machines=_joined_machines(self._machines),
            quotas=tuple(self._quotas.values()),
            tenants=tuple(self._tenants),
            jobs=tuple(self._jobs.values()),
            running=_joined_running(self._running),
            past=_joined_past(self._past),
            schedulers=tuple(self._schedulers),
            processes=tuple(self._processes),
        )

    def _take_machines(self, line: MachinesLine) -> None:
        rows = len(line.id)
        _same_length(
            rows,
            name=line.name,
            state=line.state,
            sequence=line.sequence,
            revision=line.revision,
            address=line.address,
            notice_ends_ms=line.notice_ends_ms,
            **line.capacity,
            **{f"notice.{kind}": values for kind, values in line.notice.items()},
            **{f"attributes.{name}": values for name, values in line.attributes.items()},
        )
        ids = integers(line.id)
        if not rows or ids[0] <= self._last_machine or not ascends(ids):
            raise BadInput("machines are ascending by id", field="id")
        self._last_machine = line.id[-1]
        for name in line.name:
            if name in self._names or not is_storable_name(name):
                raise BadInput(f"{name!r} is not printable, or is there twice", field="name")
            self._names.add(name)
        texts = [*line.attributes, *(v for vs in line.attributes.values() for v in vs if v)]
        if not all(map(is_storable_name, texts)):
            raise BadInput("a name or a value is not printable", field="attributes")
        if not all(address is None or is_address(address) for address in line.address):
            raise BadInput(ADDRESS_RULE, field="address")
        if len(self._names) > MACHINES_MAX:
            raise BadInput(f"more than {MACHINES_MAX:,} machines", field="id")
        self._attributes.update(line.attributes)
        if len(self._attributes) * len(self._names) > ATTRIBUTES_MAX:
            raise BadInput(
                f"machines times names of attributes are more than {ATTRIBUTES_MAX:,}",
                field="attributes",
            )
        self._machines.append(line)

    def _take_quota(self, line: QuotaLine) -> None:
        whose = (line.scope, line.name)
        if whose in self._quotas or not is_storable_name(line.name):
            raise BadInput(f"{line.name!r} is not printable, or is there twice", field="name")
        limits = {Budget[name.upper()]: limit for name, limit in line.limits.items()}
        self._quotas[whose] = Quota(QuotaScope(line.scope), line.name, limits)

    def _take_tenant(self, line: TenantLine) -> None:
        if self._tenants and line.name <= self._tenants[-1].name:
            raise BadInput("tenants are ascending by name", field="name")
        for field, name in (("name", line.name), ("parent", line.parent)):
            if name is not None and not is_storable_name(name):
                raise BadInput("it is not printable", field=field)
        self._tenants.append(Tenant(line.name, line.weight, line.parent))

    def _take_job(self, line: JobLine) -> None:
        if line.id <= self._last_job:
            raise BadInput("jobs are ascending by id", field="id")
        self._last_job = line.id
        if len(self._jobs) == JOBS_MAX:
            raise BadInput(f"more than {JOBS_MAX:,} jobs", field="id")
        self._jobs[line.id] = job = _job(line)
        self._waiting += len(job.unplaced) + (job.spec.tasks if job.goes_on else 0)
        if self._waiting > TASKS_MAX:
            raise BadInput(f"the jobs have more than {TASKS_MAX:,} tasks", field="spec")

    def _take_running(self, line: RunningLine) -> None:
        rows = len(line.job)
        amounts = {f"amounts.{kind}": values for kind, values in line.amounts.items()}
        tasks = {"task": line.task, "machine": line.machine, "started_ms": line.started_ms}
        _same_length(rows, **tasks, **amounts)
        self._count_tasks(rows)
        self._refuse_unknown(line.job, line.machine)
        before = self._last_running
        for here in zip(line.job, line.task, strict=True):
            if here <= before:
                raise BadInput("tasks are ascending by job and task, each once", field="task")
            before = here
            job = self._jobs[here[0]]
            if not job.goes_on or here[1] >= job.spec.tasks or _is_in(here[1], job.unplaced):
                raise BadInput(f"task {here[1]} of job {here[0]} cannot run", field="task")
        self._last_running = before
        self._running.append(
            RunningTasks(
                *(integers(line.job), np.array(line.task, np.intp), integers(line.machine)),
                integers(line.started_ms),
                _amounts(line.amounts, rows),
            )
        )

    def _take_past(self, line: PastLine) -> None:
        rows = len(line.job)
        told = {"task": line.task, "machine": line.machine, "started_ms": line.started_ms}
        _same_length(rows, **told, ended_ms=line.ended_ms, cause=line.cause)
        self._count_tasks(rows)
        self._refuse_unknown(line.job, line.machine)
        for job, task in zip(line.job, line.task, strict=True):
            if task >= self._jobs[job].spec.tasks:
                raise BadInput(f"job {job} has no task {task}", field="task")
        ended = integers(line.ended_ms)
        if ended[0] < self._last_end_ms or (np.diff(ended) < 0).any():
            raise BadInput("tasks that are over are in the order of their end", field="ended_ms")
        self._last_end_ms = line.ended_ms[-1]
        if not all(map(is_storable_name, line.cause)):
            raise BadInput("a cause is not printable", field="cause")
        self._past.append(
            PastTasks(
                *(integers(line.job), np.array(line.task, np.intp), integers(line.machine)),
                *(integers(line.started_ms), ended, tuple(line.cause)),
            )
        )

    def _take_process(self, line: SchedulerLine | ProcessLine) -> None:
        _refuse_unprintable(line.kind, line.replica)
        told = line.model_dump(exclude={"line", "rule"})
        if isinstance(line, SchedulerLine):
            told |= {"rule": ConflictRule(line.rule), "parts": tuple(line.parts)}
            self._schedulers.append(SavedScheduler(**told))
        else:
            self._processes.append(SavedProcess(**told))

    def _count_tasks(self, rows: int) -> None:
        self._tasks += rows
        if not rows or self._tasks > 2 * TASKS_MAX:
            raise BadInput(f"no task, or more than {2 * TASKS_MAX:,} tasks", field="job")

    def _refuse_unknown(self, jobs: Sequence[int], machines: Sequence[int]) -> None:
        """Raise BadInput for a job or machine that no line before has."""
        if self._ids is None:
            self._ids = integers([machine for line in self._machines for machine in line.id])
        for job in jobs:
            if job not in self._jobs:
                raise BadInput(f"there is no job {job}", field="job")
        missing = positions(self._ids, integers(machines)) < 0
        if missing.any():
            which = machines[int(missing.argmax())]
            raise BadInput(f"there is no machine {which}", field="machine")


def _sound_head(line: CellLine) -> CellLine:
    """Return the first line. Raises BadInput, with the field."""
    if not 0 <= line.taken_ms - line.begin_ms <= PAST_MS_MAX:
        raise BadInput("it is not at most a year before `taken_ms`", field="begin_ms")
    return line


def _refuse_unprintable(kind: str, replica: str) -> None:
    """Raise BadInput, with the field, for a name of a process that is not printable."""
    for field, name in (("kind", kind), ("replica", replica)):
        if not is_storable_name(name):
            raise BadInput("it is not printable", field=field)


def _job(line: JobLine) -> SavedJob:
    """Return the job of a line. Raises BadInput, with the field."""
    try:
        spec = spec_from_wire(line.spec)
    except BadInput as error:
        raise BadInput(error.sentence, field="spec") from error
    if not _is_within_limits(spec):
        raise BadInput("it asks for more than a job may", field="spec")
    if not all(map(is_storable_name, (spec.name, spec.tenant, spec.scheduler))):
        raise BadInput("a name is not printable", field="spec")
    edge = 0
    for first, stop in line.unplaced:
        if not edge <= first < stop <= spec.tasks:
            raise BadInput("these are no ascending ranges of its tasks", field="unplaced")
        edge = stop
    reasons = {reason.value: reason for reason in ParkReason}
    if (line.state == State.PARKED.value) != (line.park_reason in reasons):
        raise BadInput("a parked job has a known reason, and no other has one", field="park_reason")
    told = line.model_dump(exclude={"line", "spec", "state", "unplaced", "park_reason", "phases"})
    job = SavedJob(
        **told,
        spec=spec,
        state=State(line.state),
        unplaced=tuple(line.unplaced),
        park_reason=reasons.get(line.park_reason or ""),
        phases=tuple(line.phases),
    )
    if job.goes_on != (job.finished_ms is None):
        raise BadInput("a job that has ended says when, and no other", field="finished_ms")
    if job.state is State.RUNNING and job.unplaced:
        raise BadInput("a task of a running job has no place", field="unplaced")
    return job


def _is_within_limits(spec: JobSpec) -> bool:
    """Return whether a job asks for no more than one that can be submitted."""
    return (
        spec.tasks <= LIMITS.tasks_per_job_max
        and len(spec.groups) <= LIMITS.task_groups_per_job_max
        and PRECEDENCE_MIN <= spec.precedence <= PRECEDENCE_MAX
        and all(
            max(group.cpu_milli, group.memory_mib, group.disk_mib) <= LIMITS.amount_max
            and (group.duration_ms or 0) <= LIMITS.duration_ms_max
            for group in spec.groups
        )
    )


def _is_in(task: int, ranges: Sequence[tuple[int, int]]) -> bool:
    """Return whether a task is in one of these ascending ranges."""
    at = bisect_right(ranges, (task, LIMITS.tasks_per_job_max))
    return at > 0 and task < ranges[at - 1][1]


def _same_length(rows: int, **columns: Sequence[object]) -> None:
    for name, values in columns.items():
        if len(values) != rows:
            raise BadInput(f"{len(values)} entries, where there are {rows} rows", field=name)


def _amounts(by_kind: Mapping[str, Sequence[int]], rows: int) -> Amounts:
    amounts = np.zeros((rows, KINDS), dtype=np.int64)
    for name, values in by_kind.items():
        amounts[:, Kind[name.upper()]] = values
    return amounts


def _joined_machines(lines: Sequence[MachinesLine]) -> SavedMachines:
    every = sorted({name for line in lines for name in line.attributes})
    attributes: dict[str, list[str | None]] = {name: [] for name in every}
    for line in lines:
        for name, values in attributes.items():
            values.extend(line.attributes.get(name, [None] * len(line.id)))
    none = np.zeros((0, KINDS), dtype=np.int64)
    return SavedMachines(
        id=integers([one for line in lines for one in line.id]),
        machines=Machines(
            tuple(name for line in lines for name in line.name),
            np.concatenate([none, *(_amounts(line.capacity, len(line.id)) for line in lines)]),
            attributes,
        ),
        state=np.array([one for line in lines for one in line.state], dtype=np.int8),
        sequence=integers([one for line in lines for one in line.sequence]),
        revision=integers([one for line in lines for one in line.revision]),
        address=tuple(one for line in lines for one in line.address),
        notice=np.concatenate([none, *(_amounts(line.notice, len(line.id)) for line in lines)]),
        notice_ends_ms=tuple(one for line in lines for one in line.notice_ends_ms),
    )


def _joined_running(parts: Sequence[RunningTasks]) -> RunningTasks:
    return RunningTasks(
        job=np.concatenate([integers(), *(part.job for part in parts)]),
        task=np.concatenate([_no_index(), *(part.task for part in parts)]),
        machine=np.concatenate([integers(), *(part.machine for part in parts)]),
        started_ms=np.concatenate([integers(), *(part.started_ms for part in parts)]),
        amounts=np.concatenate(
            [np.zeros((0, KINDS), dtype=np.int64), *(part.amounts for part in parts)]
        ),
    )


def _joined_past(parts: Sequence[PastTasks]) -> PastTasks:
    return PastTasks(
        job=np.concatenate([integers(), *(part.job for part in parts)]),
        task=np.concatenate([_no_index(), *(part.task for part in parts)]),
        machine=np.concatenate([integers(), *(part.machine for part in parts)]),
        started_ms=np.concatenate([integers(), *(part.started_ms for part in parts)]),
        ended_ms=np.concatenate([integers(), *(part.ended_ms for part in parts)]),
        cause=tuple(cause for part in parts for cause in part.cause),
    )


def _no_index() -> Index:
    return np.zeros(0, dtype=np.intp)
