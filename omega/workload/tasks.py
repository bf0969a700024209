"""Tasks as columns, and the jobs that they make up.

Goal     Turn a hundred thousand recorded tasks into job specs quickly.
Promise  Tasks of one owner, scheduler and precedence form one job, those of one shape one task
         group of it. A job that would exceed a limit is cut into several of the same name.
Source   docs/decisions/0012-workloads.md.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from omega.limits import LIMITS
from omega.model.arrays import Amounts, Codes, Ids, Index, Mask
from omega.model.jobs import JobSpec, TaskGroup
from omega.model.resources import DEVICES, GPU_SLICES, Kind
from omega.workload.arrivals import BATCH, ML_GPU, SERVICE, Prefill

SCHEDULERS = (BATCH, SERVICE, ML_GPU)
NO_END = -1
"""Duration of a task that runs until it is cancelled."""

_PER_JOB = 3  # the first columns of the key: what all tasks of a job share


@dataclass(frozen=True, eq=False)
class Tasks:
    """Tasks with a row each, in any order."""

    owner: Ids
    """Number of the task's owner in the source, most often a job."""
    scheduler: Codes
    """Position in SCHEDULERS."""
    precedence: Ids
    amounts: Amounts
    """(tasks, kinds), with device slots where the tasks run on machines."""
    different_machines: Mask
    duration_ms: Ids
    """NO_END for tasks that run until they are cancelled."""

    def __post_init__(self) -> None:
        columns = (self.scheduler, self.precedence, self.amounts, self.different_machines)
        assert all(len(column) == len(self) for column in (*columns, self.duration_ms))

    def __len__(self) -> int:
        return len(self.owner)

    def take(self, at: Index) -> "Tasks":
        """Return the tasks at these positions."""
        return Tasks(
            self.owner[at],
            self.scheduler[at],
            self.precedence[at],
            self.amounts[at],
            self.different_machines[at],
            self.duration_ms[at],
        )


@dataclass(frozen=True, eq=False)
class Jobs:
    """The jobs that tasks make up, and the place of each task in them."""

    specs: tuple[JobSpec, ...]
    owner: tuple[int, ...]
    """Number of each job's owner."""
    order: Index
    """Positions of the given tasks, ordered by job, then by task."""
    job: Index
    """Position in `specs` of each task, in that order."""
    task: Index
    """Index of each task within its job, in that order."""


def jobs_of(tasks: Tasks, name: Callable[[int], str]) -> Jobs:
    """Form jobs; `name` gives a job's name from the owner's number."""
    key = _key(tasks)
    order = np.lexsort(key.T[::-1])
    key = key[order]
    changes = np.diff(key, axis=0, prepend=key[:1] - 1) != 0
    first = np.flatnonzero(changes.any(axis=1))
    specs: list[JobSpec] = []
    owners: list[int] = []
    job = np.zeros(len(order), dtype=np.intp)
    task = np.zeros(len(order), dtype=np.intp)
    opens = changes[first, :_PER_JOB].any(axis=1)
    for at, groups in _batches(first, opens, len(order)):
        owner, scheduler, precedence = key[at.start, :_PER_JOB].tolist()
        job[at] = len(specs)
        task[at] = np.arange(at.stop - at.start)
        owners.append(owner)
        specs.append(
            JobSpec(
                name=name(owner),
                scheduler=SCHEDULERS[scheduler],
                precedence=precedence,
                groups=tuple(_group(key[start].tolist(), tasks) for start, tasks in groups),
            )
        )
    return Jobs(tuple(specs), tuple(owners), order.astype(np.intp), job, task)


def prefill_of(tasks: Tasks, machine: Index, name: Callable[[int], str]) -> Prefill:
    """Return the start state in which each task runs on the machine at this position."""
    assert len(machine) == len(tasks)
    jobs = jobs_of(tasks, name)
    shapes, shape = np.unique(tasks.amounts[jobs.order], axis=0, return_inverse=True)
    return Prefill(
        jobs.specs,
        jobs.job,
        jobs.task,
        machine[jobs.order].astype(np.intp),
        shape.reshape(-1).astype(np.intp),
        shapes,
    )


def _key(tasks: Tasks) -> Ids:
    devices = tasks.amounts[:, DEVICES]
    gpus = np.count_nonzero(devices, axis=1)
    return np.column_stack(
        [
            tasks.owner,
            tasks.scheduler,
            tasks.precedence,
            tasks.amounts[:, : DEVICES.start],
            gpus,
            np.where(gpus > 0, devices.max(axis=1, initial=0), GPU_SLICES),
            tasks.different_machines,
            tasks.duration_ms,
        ]
    ).astype(np.int64)


def _group(key: list[int], tasks: int) -> TaskGroup:
    gpus, gpu_slices, different_machines, duration_ms = key[_PER_JOB + DEVICES.start :]
    return TaskGroup(
        tasks=tasks,
        cpu_milli=key[_PER_JOB + Kind.CPU_MILLI],
        memory_mib=key[_PER_JOB + Kind.MEMORY_MIB],
        disk_mib=key[_PER_JOB + Kind.DISK_MIB],
        gpus=gpus,
        gpu_slices=gpu_slices,
        duration_ms=None if duration_ms == NO_END else duration_ms,
        different_machines=bool(different_machines),
    )


def _batches(first: Index, opens: Mask, end: int) -> Iterator[tuple[slice, list[tuple[int, int]]]]:
    """Yield each job's rows, and its groups as (first row, number of tasks)."""
    groups: list[tuple[int, int]] = []
    held = 0
    bounds = pairwise([*first.tolist(), end])
    for (start, stop), opens_job in zip(bounds, opens.tolist(), strict=True):
        for lower in range(start, stop, LIMITS.tasks_per_job_max):
            tasks = min(stop - lower, LIMITS.tasks_per_job_max)
            full = (
                len(groups) == LIMITS.task_groups_per_job_max
                or held + tasks > LIMITS.tasks_per_job_max
            )
            if groups and (full or (opens_job and lower == start)):
                yield slice(groups[0][0], lower), groups
                groups, held = [], 0
            groups.append((lower, tasks))
            held += tasks
    if groups:
        yield slice(groups[0][0], end), groups
