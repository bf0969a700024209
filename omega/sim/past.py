"""A saved cell as a workload: the cell as it was when the saved time began, and what came then.

Goal     Simulate the very time of which is known what happened, so that both can be compared.
Promise  Nothing is drawn. What ran at the beginning is where it was and for as long as it ran; what
         waited then is queued at once, and every other job when it was submitted. What cannot be
         known is left out and counted. Durations are in seconds of the tasks' lives, which nodes
         with the cell's speed-up shorten.
Source   docs/decisions/0055-snapshots-and-what-if.md; omega.workload.arrivals.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final

import numpy as np

from omega.lifecycle.states import ParkReason, State
from omega.limits import LIMITS
from omega.model.arrays import Amounts, Ids, positions
from omega.model.jobs import JobSpec, TaskGroup
from omega.model.machines import DEAD, Machines, MachineState
from omega.model.resources import DEVICES, KINDS
from omega.store.saved.cell import ENDED, SavedCell, SavedJob
from omega.workload.arrivals import MS_PER_S, Arrival, Prefill, Workload

STEP_MS: Final = 100
"""Nodes look so often for tasks that are over: no remaining duration is known more exactly."""


@dataclass(frozen=True, eq=False)
class Past:
    """What is simulated of a saved cell."""

    workload: Workload
    waited: int
    """How many of its first arrivals are jobs that waited at the beginning."""
    state: tuple[MachineState, ...]
    """Of each machine of the workload."""
    horizon_s: float
    left_out: Mapping[str, int]
    """How many jobs or tasks are not simulated as they were, by a description of them."""


@dataclass(frozen=True)
class _Start:
    """A task that ran at the beginning."""

    job: int
    task: int
    row: int
    """Position of its machine."""
    started_ms: int
    remaining_ms: int | None
    """What was left of its duration; None if it ran for all of the time."""
    amounts: Amounts | None
    """None where they are those that its group asks for, on device slots that are not known."""


def past_of(cell: SavedCell, kinds: Sequence[str], *, speedup: float) -> Past:
    """Return the time that was saved, with the jobs for these kinds of schedulers.

    `speedup`: how many seconds of a task's duration passed in one second.
    """
    is_there = cell.machines.state != MachineState.GONE
    rows = np.flatnonzero(is_there)
    machines = Machines(
        tuple(cell.machines.machines.names[row] for row in rows.tolist()),
        cell.machines.machines.capacity[rows],
        {
            name: [values[row] for row in rows.tolist()]
            for name, values in cell.machines.machines.attributes.items()
        },
    )
    state = tuple(MachineState(one) for one in cell.machines.state[rows].tolist())
    left_out: Counter[str] = Counter()
    jobs = {job.id: job for job in cell.jobs}
    starts = _starts(cell, cell.machines.id[rows], state, jobs, speedup)
    begun = int((cell.running.started_ms < cell.begin_ms).sum()) + int(
        (cell.past.started_ms < cell.begin_ms).sum()
    )
    if begun > len(starts):
        left_out["running tasks on machines that are down or gone"] = begun - len(starts)
    prefill = _Placing(machines, jobs, left_out).place(starts)
    ran = {(one.job, one.task) for one in starts}
    waited, later = _arrivals(cell, kinds, ran, left_out, speedup)
    workload = Workload(
        name="snapshot", machines=machines, prefill=prefill, arrivals=(*waited, *later)
    )
    horizon_s = max(1, cell.until_ms - cell.begin_ms) / MS_PER_S
    return Past(workload, len(waited), state, horizon_s, left_out)


def _starts(
    cell: SavedCell,
    ids: Ids,
    state: Sequence[MachineState],
    jobs: Mapping[int, SavedJob],
    speedup: float,
) -> list[_Start]:
    """Return the tasks that ran at the beginning, by job and task.

    Without those on machines that are down or gone: what lost its place is queued by `_arrivals`.
    """
    begin_ms = cell.begin_ms
    running, past = cell.running, cell.past
    at = positions(ids, running.machine)
    found = [
        _Start(
            *(int(running.job[n]), int(running.task[n]), int(at[n])),
            *(int(running.started_ms[n]), None, running.amounts[n]),
        )
        for n in np.flatnonzero((running.started_ms < begin_ms) & (at >= 0)).tolist()
    ]
    at = positions(ids, past.machine)
    for n in np.flatnonzero((past.started_ms < begin_ms) & (at >= 0)).tolist():
        job, task, started_ms = int(past.job[n]), int(past.task[n]), int(past.started_ms[n])
        remaining_ms: int | None = _lived((int(past.ended_ms[n]) - begin_ms) * speedup)
        if past.cause[n] != ENDED:
            # It lost its place: how long it would have run follows from its spec.
            lasts_ms = jobs[job].spec.groups[_group_of(jobs[job].spec, task)].duration_ms
            gone_ms = round((begin_ms - started_ms) * speedup)
            remaining_ms = None if lasts_ms is None else _lived(lasts_ms - gone_ms)
        found.append(_Start(job, task, int(at[n]), started_ms, remaining_ms, None))
    dead = {row for row, one in enumerate(state) if one in DEAD}
    return sorted(
        (one for one in found if one.row not in dead), key=lambda one: (one.job, one.task)
    )


class _Placing:
    """Puts the tasks of the beginning on their machines, as long as there is room."""

    def __init__(
        self, machines: Machines, jobs: Mapping[int, SavedJob], left_out: Counter[str]
    ) -> None:
        self._free = machines.capacity.copy()
        self._jobs = jobs
        self._left_out = left_out

    def place(self, starts: Sequence[_Start]) -> Prefill:
        """Return the tasks as a start state; those that have no room are left out."""
        amounts: dict[int, Amounts] = {}
        # Those whose device slots are known come first, then as they were started.
        order = sorted(
            range(len(starts)), key=lambda n: (starts[n].amounts is None, starts[n].started_ms, n)
        )
        for n in order:
            taken = self._amounts(starts[n])
            if taken is None or (taken > self._free[starts[n].row]).any():
                self._left_out["running tasks without room at the beginning"] += 1
                continue
            self._free[starts[n].row] -= taken
            amounts[n] = taken
        return self._prefill([(starts[n], amounts[n]) for n in sorted(amounts)])

    def _amounts(self, start: _Start) -> Amounts | None:
        """Return what a task took; None if no device slots of its machine have room for it."""
        if start.amounts is not None:
            return start.amounts
        spec = self._jobs[start.job].spec
        group = spec.groups[_group_of(spec, start.task)]
        taken = group.demand.copy()
        if group.gpus:
            slots = self._free[start.row, DEVICES]
            fitting = np.flatnonzero(slots >= group.gpu_slices)
            # The fullest slot that has room: shared slots stay shared, and whole ones whole.
            chosen = fitting[np.argsort(slots[fitting], kind="stable")][: group.gpus]
            if len(chosen) < group.gpus:
                return None
            taken[DEVICES.start + chosen] = group.gpu_slices
        return taken

    def _prefill(self, placed: Sequence[tuple[_Start, Amounts]]) -> Prefill:
        """Return the start state: a job for each job, with a group for each duration left."""
        of_job: defaultdict[int, list[int]] = defaultdict(list)
        for n, (start, _) in enumerate(placed):
            of_job[start.job].append(n)
        specs: list[JobSpec] = []
        order: list[int] = []
        job: list[int] = []
        task: list[int] = []
        for number, (job_id, mine) in enumerate(sorted(of_job.items())):
            spec, ordered = _with_what_is_left(
                self._jobs[job_id].spec, [(n, placed[n][0]) for n in mine]
            )
            specs.append(spec)
            order += ordered
            job += [number] * len(ordered)
            task += range(len(ordered))
        if not order:
            return Prefill.none()
        shapes, shape = np.unique(
            np.stack([placed[n][1] for n in order]).reshape(-1, KINDS), axis=0, return_inverse=True
        )
        return Prefill(
            tuple(specs),
            np.array(job, np.intp),
            np.array(task, np.intp),
            np.array([placed[n][0].row for n in order], np.intp),
            shape.reshape(-1).astype(np.intp),
            shapes,
        )


def _with_what_is_left(
    spec: JobSpec, tasks: Sequence[tuple[int, _Start]]
) -> tuple[JobSpec, list[int]]:
    """Return the job of these running tasks, and their numbers in the order of its tasks."""
    groups: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for number, start in tasks:
        left_ms = -1 if start.remaining_ms is None else start.remaining_ms // STEP_MS * STEP_MS
        groups[_group_of(spec, start.task), left_ms].append(number)
    made = tuple(
        _lasting(spec.groups[group], len(numbers), None if left_ms < 0 else left_ms)
        for (group, left_ms), numbers in sorted(groups.items())
    )
    ordered = [number for _, numbers in sorted(groups.items()) for number in numbers]
    return replace(spec, groups=made, minimum=0, work=None, workers=None), ordered


def _arrivals(
    cell: SavedCell,
    kinds: Sequence[str],
    ran: set[tuple[int, int]],
    left_out: Counter[str],
    speedup: float,
) -> tuple[list[Arrival], list[Arrival]]:
    """Return the jobs that waited at the beginning, and those that were submitted since."""
    lifetimes = _Lifetimes(cell, speedup)
    later = _placed_later(cell)
    before: list[Arrival] = []
    since: list[Arrival] = []
    for job in cell.jobs:
        if job.parent is not None or job.submitted_ms > cell.until_ms:
            continue
        tasks: Sequence[int] = range(job.spec.tasks)
        if job.submitted_ms < cell.begin_ms:
            waited = {*_in_ranges(job.unplaced), *later.get(job.id, ())}
            tasks = [task for task in sorted(waited) if (job.id, task) not in ran]
        if not tasks:
            continue
        if job.spec.scheduler not in kinds:
            left_out["jobs of kinds of schedulers that are not simulated"] += 1
        elif job.park_reason is ParkReason.HELD:
            left_out["jobs that a user holds"] += 1
        else:
            at_s = (job.submitted_ms - cell.begin_ms) / MS_PER_S
            spec = _waiting(job, tasks, lifetimes, max(0, cell.begin_ms - job.submitted_ms))
            (before if at_s < 0 else since).append(Arrival(max(0.0, at_s), spec))
    return before, sorted(since, key=lambda one: one.submit_s)


def _placed_later(cell: SavedCell) -> dict[int, set[int]]:
    """Return, by job, the tasks that were placed after the beginning."""
    later: defaultdict[int, set[int]] = defaultdict(set)
    for tasks in (cell.running, cell.past):
        new = tasks.started_ms >= cell.begin_ms
        for job, task in zip(tasks.job[new].tolist(), tasks.task[new].tolist(), strict=True):
            later[job].add(task)
    return later


class _Lifetimes:
    """How long tasks ran that ended by themselves, by job and group."""

    def __init__(self, cell: SavedCell, speedup: float) -> None:
        self._sums: defaultdict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
        self._speedup = speedup
        specs = {job.id: job.spec for job in cell.jobs}
        past = cell.past
        lived_ms = (past.ended_ms - past.started_ms).tolist()
        for job, task, ms, cause in zip(
            past.job.tolist(), past.task.tolist(), lived_ms, past.cause, strict=True
        ):
            if cause == ENDED:
                sums = self._sums[job, _group_of(specs[job], task)]
                sums[0] += ms
                sums[1] += 1

    def of(self, job: SavedJob, group: int) -> int | None:
        """Return the duration of a group's tasks: as specified, or else as it turned out.

        Tasks of a cancelled job ran until then. None if no task has ended.
        """
        specified = job.spec.groups[group].duration_ms
        if specified is not None and job.state is not State.CANCELLED:
            return specified
        total_ms, tasks = self._sums.get((job.id, group), (0, 0))
        return _lived(total_ms * self._speedup / tasks) if tasks else specified


def _waiting(job: SavedJob, tasks: Sequence[int], lifetimes: _Lifetimes, waited_ms: int) -> JobSpec:
    """Return the job as it is submitted: only these tasks, with their durations.

    It is as patient as it still was when the saved time began.
    """
    spec = job.spec
    processes_phases = spec.workers is not None and spec.workers.phases
    counts = Counter(_group_of(spec, task) for task in tasks)
    groups = tuple(
        replace(
            _lasting(
                spec.groups[group], count, None if processes_phases else lifetimes.of(job, group)
            ),
            patience_ms=max(0, spec.groups[group].patience_ms - waited_ms),
        )
        for group, count in sorted(counts.items())
    )
    minimum = max(0, spec.minimum - (spec.tasks - len(tasks)))
    return replace(spec, groups=groups, minimum=minimum, work=None)


def _lived(ms: float) -> int:
    """Return a duration within its limits: clocks may go back, and files say anything."""
    return min(max(0, round(ms)), LIMITS.duration_ms_max)


def _lasting(group: TaskGroup, tasks: int, duration_ms: int | None) -> TaskGroup:
    return replace(group, tasks=tasks, duration_ms=duration_ms, program=None)


def _group_of(spec: JobSpec, task: int) -> int:
    """Return the number of a task's group."""
    if len(spec.groups) == 1:
        return 0
    stops = accumulate(group.tasks for group in spec.groups)
    return next(number for number, stop in enumerate(stops) if task < stop)


def _in_ranges(ranges: Sequence[tuple[int, int]]) -> Iterator[int]:
    for first, stop in ranges:
        yield from range(first, stop)
