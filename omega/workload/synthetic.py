"""Synthetic work from simple laws: exponential gaps, tasks per job and durations.

Goal     Draw the two-class workloads of the paper's simulator, for any cell and from any seed.
Promise  A function of its arguments and of the generator passed in. Jobs are ordered by submission.
Source   Omega (EuroSys 2013), section 4 and its open simulator; W1 and W2 are its shipped example
         and a contended variant. `omega.workload.recipe` gives their job lists to the byte.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from omega.limits import LIMITS
from omega.model.arrays import Amounts, Index
from omega.model.jobs import JobSpec, TaskGroup
from omega.model.machines import Machines
from omega.model.resources import amounts, machine_capacity
from omega.workload.arrivals import BATCH, MS_PER_S, SERVICE, Arrival, Prefill, Workload
from omega.workload.tasks import NO_END, SCHEDULERS, Tasks, prefill_of

RANDOM_TRIES_MAX = 64
"""Random machines that are tried before one is drawn from those that have room."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What a task asks for, and its weight among the shapes of its class."""

    cpu_milli: int = 1_000
    memory_mib: int = 2_048
    disk_mib: int = 0
    weight: float = 1.0

    @property
    def demand(self) -> Amounts:
        """The shape as one row of amounts."""
        return amounts(cpu_milli=self.cpu_milli, memory_mib=self.memory_mib, disk_mib=self.disk_mib)


@dataclass(frozen=True, kw_only=True)
class JobClass:
    """A stream of jobs of one kind; every law is exponential with the mean given."""

    scheduler: str
    gap_mean_s: float
    tasks_mean: float
    duration_mean_s: float
    shapes: tuple[Shape, ...] = (Shape(),)
    """One is drawn for each job, by weight."""
    precedence: int = 0

    def __post_init__(self) -> None:
        assert min(self.gap_mean_s, self.tasks_mean, self.duration_mean_s) > 0
        assert self.shapes


@dataclass(frozen=True, kw_only=True)
class TwoClasses:
    """A uniform cell with batch and service jobs, as the paper's simulator has it."""

    machines: int
    cpus: float
    memory_gib: float
    prefill_tasks: int
    """Tasks of the default shape that run from the start to the end."""
    batch: JobClass
    service: JobClass
    horizon_s: float = 21_600.0


W1 = TwoClasses(
    machines=10_000,
    cpus=4,
    memory_gib=16,
    prefill_tasks=0,
    batch=JobClass(scheduler=BATCH, gap_mean_s=10, tasks_mean=100, duration_mean_s=100),
    service=JobClass(scheduler=SERVICE, gap_mean_s=20, tasks_mean=10, duration_mean_s=500),
)
"""A large cell that stays nearly empty."""

W2 = TwoClasses(
    machines=1_000,
    cpus=4,
    memory_gib=16,
    prefill_tasks=2_400,
    batch=JobClass(scheduler=BATCH, gap_mean_s=5, tasks_mean=20, duration_mean_s=100),
    service=JobClass(scheduler=SERVICE, gap_mean_s=60, tasks_mean=10, duration_mean_s=2_000),
)
"""A small, contended cell."""


def two_class_workload(laws: TwoClasses, rng: np.random.Generator) -> Workload:
    """Draw a workload: the prefill first, then batch, then service, each from its own stream."""
    for_prefill, for_batch, for_service = rng.spawn(3)
    machines = uniform_machines(laws.machines, cpus=laws.cpus, memory_gib=laws.memory_gib)
    return Workload(
        name="two-class",
        machines=machines,
        prefill=scattered(machines, laws.prefill_tasks, Shape(), for_prefill),
        arrivals=merged(
            arrivals_of(laws.batch, laws.horizon_s, for_batch),
            arrivals_of(laws.service, laws.horizon_s, for_service),
        ),
    )


def arrivals_of(jobs: JobClass, horizon_s: float, rng: np.random.Generator) -> tuple[Arrival, ...]:
    """Draw the jobs of a class that arrive before the horizon."""
    submit_s = _arrival_times(jobs.gap_mean_s, horizon_s, rng)
    tasks = np.ceil(rng.exponential(jobs.tasks_mean, len(submit_s)))
    tasks = np.clip(tasks, 1, LIMITS.tasks_per_job_max).astype(np.int64)
    duration_ms = np.rint(rng.exponential(jobs.duration_mean_s * MS_PER_S, len(submit_s)))
    weights = np.array([shape.weight for shape in jobs.shapes])
    shape = rng.choice(len(weights), size=len(submit_s), p=weights / weights.sum())
    return tuple(
        Arrival(
            at,
            JobSpec(
                name=f"{jobs.scheduler}-{number}",
                scheduler=jobs.scheduler,
                precedence=jobs.precedence,
                groups=(_group(jobs.shapes[which], count, int(lasts)),),
            ),
        )
        for number, (at, count, lasts, which) in enumerate(
            zip(submit_s, tasks.tolist(), duration_ms.tolist(), shape.tolist(), strict=True), 1
        )
    )


def merged(*streams: Sequence[Arrival]) -> tuple[Arrival, ...]:
    """Return the arrivals of all streams by submission; on a tie, earlier streams go first."""
    return tuple(
        sorted((one for stream in streams for one in stream), key=lambda one: one.submit_s)
    )


def uniform_machines(machines: int, *, cpus: float, memory_gib: float) -> Machines:
    """Return so many machines of one shape, without attributes."""
    capacity = machine_capacity(round(cpus * 1_000), round(memory_gib * 1_024))
    return Machines(
        names=tuple(f"machine-{number:05d}" for number in range(1, machines + 1)),
        capacity=np.tile(capacity, (machines, 1)),
        attributes={},
    )


def scattered(machines: Machines, tasks: int, shape: Shape, rng: np.random.Generator) -> Prefill:
    """Return tasks of one shape without end, placed on random machines with room, as one job.

    Raises ValueError if the machines hold fewer.
    """
    demand = shape.demand
    asked = demand > 0
    room = (machines.capacity[:, asked] // demand[asked]).min(axis=1, initial=tasks)
    if tasks > room.sum():
        raise ValueError(f"{tasks} tasks were to be placed at the start, {room.sum()} fit")
    machine = np.array([_hit(room, rng) for _ in range(tasks)], dtype=np.intp)
    columns = Tasks(
        owner=np.zeros(tasks, np.int64),
        scheduler=np.full(tasks, SCHEDULERS.index(SERVICE), np.int32),
        precedence=np.zeros(tasks, np.int64),
        amounts=np.tile(demand, (tasks, 1)),
        different_machines=np.zeros(tasks, np.bool_),
        duration_ms=np.full(tasks, NO_END, np.int64),
    )
    return prefill_of(columns, machine, lambda _: "prefill") if tasks else Prefill.none()


def _hit(room: Index, rng: np.random.Generator) -> int:
    """Draw a machine uniformly from those that have room, and reduce its room by one."""
    for _ in range(RANDOM_TRIES_MAX):
        at = int(rng.integers(len(room)))
        if room[at] > 0:
            break
    else:
        at = int(rng.choice(np.flatnonzero(room > 0)))
    room[at] -= 1
    return at


def _arrival_times(gap_mean_s: float, horizon_s: float, rng: np.random.Generator) -> list[float]:
    times: list[float] = []
    now_s = float(rng.exponential(gap_mean_s))
    while now_s < horizon_s:
        times.append(now_s)
        now_s += float(rng.exponential(gap_mean_s))
    return times


def _group(shape: Shape, tasks: int, duration_ms: int) -> TaskGroup:
    return TaskGroup(
        tasks=tasks,
        cpu_milli=shape.cpu_milli,
        memory_mib=shape.memory_mib,
        disk_mib=shape.disk_mib,
        duration_ms=duration_ms,
    )
