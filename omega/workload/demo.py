"""The demonstration: a mixed cell, half full, and enough work to cause conflicts.

Goal     Show conflicts being made and resolved within half a minute, on a cell of any size.
Promise  A function of its arguments and of the generator passed in. The rate of jobs is in
         proportion to the number of schedulers; jobs are as large as it takes to fill the cell.
Source   Omega (EuroSys 2013), section 4: conflicts matter where machines are nearly full and
         churn. Shapes and rates are ours, after the order of magnitude of public traces.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from omega.model.arrays import Amounts, Index
from omega.model.jobs import Constraint, JobSpec, Operator, TaskGroup
from omega.model.machines import Machines
from omega.model.resources import DEVICES, GPU_SLICES, Kind
from omega.workload.arrivals import BATCH, ML_GPU, SERVICE, Arrival, Workload
from omega.workload.demo_cell import (
    CPU_MILLI_PER_GPU,
    MEMORY_MIB_PER_GPU,
    cpu_shape,
    demo_machines,
    demo_prefill,
)
from omega.workload.synthetic import JobClass, arrivals_of, merged

JOBS_PER_S = {BATCH: 10.0, SERVICE: 2.0, ML_GPU: 5.0}
"""Jobs that arrive for each scheduler of a kind."""
MACHINES_FOR_FULL_RATE = 200
"""A smaller cell gets jobs less often, in proportion; otherwise single jobs would fill it."""

BATCH_SHAPES = (
    cpu_shape(2, memory_gib=4, weight=0.20),
    cpu_shape(4, memory_gib=12, weight=0.30),
    cpu_shape(8, memory_gib=24, weight=0.25),
    cpu_shape(16, memory_gib=48, weight=0.25),
)
"""A half-full machine holds one task of a large shape: two schedulers that choose it conflict."""
BATCH_TASKS_MIN = 0.5
"""Mean tasks of a batch job at the least; draws are rounded up, so that jobs have 1 or 2."""

SERVICE_SHAPES = (
    cpu_shape(2, memory_gib=8),
    cpu_shape(4, memory_gib=16),
    cpu_shape(8, memory_gib=32),
)
SERVICE_TASKS_MEAN = 8.0
SERVICE_DURATION_MEAN_S = 600.0
SERVICE_GANG_SHARE = 0.3

GPU_LIFE_IN_CHURNS = 2.0
"""Mean duration of a GPU job; training takes longer than a batch task."""
GPU_LIFE_S_MIN = 1.0
GPU_PRESSURE = 1.6
"""Factor on `pressure` for GPU jobs: a demo ends before their use reaches its level."""
GPU_TASKS_MAX = 16
"""The largest multiple of its pattern's tasks that a GPU job has."""
GPU_MODEL_SHARE = 0.5
"""Share of the GPU jobs that are constrained to GPU models."""


@dataclass(frozen=True, kw_only=True)
class GpuJob:
    """A pattern of GPU jobs."""

    weight: float
    tasks: int
    gpus: int = 1
    slices: int = GPU_SLICES
    gang: bool = False

    @property
    def total(self) -> float:
        """GPUs of all tasks."""
        return self.tasks * self.gpus * self.slices / GPU_SLICES


GPU_JOBS = (
    GpuJob(weight=0.35, tasks=3, slices=250),
    GpuJob(weight=0.20, tasks=2, slices=500),
    GpuJob(weight=0.25, tasks=4),
    GpuJob(weight=0.12, tasks=2, gpus=4, gang=True),
    GpuJob(weight=0.08, tasks=2, gpus=8, gang=True),
)


@dataclass(frozen=True, kw_only=True)
class Demo:
    """The parameters of the demonstration."""

    schedulers: Mapping[str, int]
    """Number of schedulers by kind; a kind without any gets no jobs."""
    machines: int = 10_000
    share: float = 0.5
    """Part of the cell that is taken at the start."""
    seconds: float = 30.0
    churn_s: float = 15.0
    """Mean duration of a batch task."""
    pressure: float = 0.95
    """What batch would use in the long run, relative to the CPU that is left at the start."""

    def __post_init__(self) -> None:
        assert self.machines >= 1
        assert 0 <= self.share < 1
        assert min(self.seconds, self.churn_s, self.pressure) > 0
        assert all(count >= 0 for count in self.schedulers.values())

    def jobs_per_s(self, kind: str) -> float:
        """Return how many jobs a second arrive for all schedulers of a kind."""
        slowed = min(1.0, self.machines / MACHINES_FOR_FULL_RATE)
        return JOBS_PER_S[kind] * slowed * self.schedulers.get(kind, 0)


def demo_workload(demo: Demo, rng: np.random.Generator) -> Workload:
    """Draw the cell, its start state and the jobs of so many seconds."""
    for_cell, for_prefill, for_batch, for_service, for_gpu = rng.spawn(5)
    machines = demo_machines(demo.machines, for_cell)
    prefill = demo_prefill(machines, demo.share, churn_s=demo.churn_s, rng=for_prefill)
    free = (machines.capacity - prefill.used(len(machines))).sum(axis=0)
    return Workload(
        name="demo",
        machines=machines,
        prefill=prefill,
        arrivals=merged(
            _batch(demo, free, for_batch),
            _service(demo, machines, for_service),
            _ml_gpu(demo, free, machines, for_gpu),
        ),
        counts={"machines": len(machines), "tasks_placed": len(prefill)},
    )


def _batch(demo: Demo, free: Amounts, rng: np.random.Generator) -> tuple[Arrival, ...]:
    """Draw batch jobs; the more CPU is free, the more tasks they have."""
    if not (jobs_per_s := demo.jobs_per_s(BATCH)):
        return ()
    cpu_mean = sum(shape.cpu_milli * shape.weight for shape in BATCH_SHAPES)
    tasks_per_s = demo.pressure * float(free[Kind.CPU_MILLI]) / (cpu_mean * demo.churn_s)
    jobs = JobClass(
        scheduler=BATCH,
        gap_mean_s=1 / jobs_per_s,
        tasks_mean=max(BATCH_TASKS_MIN, tasks_per_s / jobs_per_s),
        duration_mean_s=demo.churn_s,
        shapes=BATCH_SHAPES,
    )
    return arrivals_of(jobs, demo.seconds, rng)


def _service(demo: Demo, machines: Machines, rng: np.random.Generator) -> tuple[Arrival, ...]:
    """Draw services; most are constrained to a zone or platform, most spread, some are gangs."""
    if not (jobs_per_s := demo.jobs_per_s(SERVICE)):
        return ()
    jobs = JobClass(
        scheduler=SERVICE,
        gap_mean_s=1 / jobs_per_s,
        tasks_mean=SERVICE_TASKS_MEAN,
        duration_mean_s=SERVICE_DURATION_MEAN_S,
        shapes=SERVICE_SHAPES,
    )

    def with_constraints(spec: JobSpec) -> JobSpec:
        request_offer = rng.choice(["zone", "platform", ""], p=[0.4, 0.3, 0.3])
        spread = rng.choice(["rack", "zone", ""], p=[0.4, 0.3, 0.3])
        group = replace(
            spec.groups[0],
            constraints=(_one_of(machines, str(request_offer), rng),) if request_offer else (),
            spread_over=str(spread) or None,
        )
        is_gang = rng.random() < SERVICE_GANG_SHARE
        return replace(spec, groups=(group,), minimum=group.tasks if is_gang else 0)

    drawn = arrivals_of(jobs, demo.seconds, rng)
    return tuple(replace(arrival, spec=with_constraints(arrival.spec)) for arrival in drawn)


def _ml_gpu(
    demo: Demo, free: Amounts, machines: Machines, rng: np.random.Generator
) -> tuple[Arrival, ...]:
    """Draw GPU jobs from the patterns, scaled in tasks or duration to use the free GPUs."""
    gpus = np.count_nonzero(machines.capacity[:, DEVICES], axis=1)
    if not (jobs_per_s := demo.jobs_per_s(ML_GPU)) or not gpus.any():
        return ()
    weights = np.array([pattern.weight for pattern in GPU_JOBS])
    gpus_per_s = jobs_per_s * sum(pattern.weight * pattern.total for pattern in GPU_JOBS)
    free_gpus = float(free[DEVICES].sum()) / GPU_SLICES
    life_s = GPU_LIFE_IN_CHURNS * demo.churn_s
    enough = GPU_PRESSURE * demo.pressure * free_gpus / (gpus_per_s * life_s)
    jobs = JobClass(
        scheduler=ML_GPU,
        gap_mean_s=1 / jobs_per_s,
        tasks_mean=1.0,  # the pattern decides
        duration_mean_s=max(GPU_LIFE_S_MIN, life_s * min(1.0, enough)),
    )

    def with_gpus(spec: JobSpec) -> JobSpec:
        pattern = GPU_JOBS[int(rng.choice(len(weights), p=weights / weights.sum()))]
        count = min(pattern.gpus, int(gpus.max()))
        tasks = round(pattern.tasks * float(np.clip(enough, 1, GPU_TASKS_MAX)))
        insists = rng.random() < GPU_MODEL_SHARE
        group = TaskGroup(
            tasks=tasks,
            cpu_milli=CPU_MILLI_PER_GPU * count * pattern.slices // GPU_SLICES,
            memory_mib=MEMORY_MIB_PER_GPU * count * pattern.slices // GPU_SLICES,
            gpus=count,
            gpu_slices=pattern.slices,
            duration_ms=spec.groups[0].duration_ms,
            constraints=(_one_of(machines, "gpu_model", rng, np.flatnonzero(gpus >= count)),)
            if insists
            else (),
        )
        return replace(spec, groups=(group,), minimum=tasks if pattern.gang else 0)

    drawn = arrivals_of(jobs, demo.seconds, rng)
    return tuple(replace(arrival, spec=with_gpus(arrival.spec)) for arrival in drawn)


def _one_of(
    machines: Machines,
    attribute: str,
    rng: np.random.Generator,
    among: Index | Sequence[int] | None = None,
) -> Constraint:
    """Return a constraint to one or two values that the machines in rows `among` have."""
    rows = range(len(machines)) if among is None else among
    column = machines.attributes[attribute]
    values = sorted({value for row in rows if (value := column[row]) is not None})
    count = min(len(values), int(rng.integers(1, 3)))
    chosen = rng.choice(len(values), size=count, replace=False)
    return Constraint(attribute, Operator.IN, tuple(values[i] for i in sorted(chosen.tolist())))
