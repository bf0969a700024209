"""The demonstration's cell: machines of several shapes, some with GPUs, and what runs on them.

Goal     A start state like that of a cell in use: machines differ in shape and are unevenly full.
Promise  The tasks fit their machines. Every tenth machine has GPUs. The share taken is met within
         a few percent, in CPU and in GPUs.
Source   Shapes are ours, after the order of magnitude of public inventories.
"""

import numpy as np

from omega.model.arrays import Amounts, Codes, Ids, Index, every_kind
from omega.model.machines import Machines
from omega.model.resources import DEVICES, DEVICES_MAX, GPU_SLICES, KINDS, Kind
from omega.model.resources import machine_capacity as machine
from omega.workload.arrivals import BATCH, ML_GPU, MS_PER_S, SERVICE, Prefill
from omega.workload.synthetic import Shape
from omega.workload.tasks import NO_END, SCHEDULERS, Tasks, prefill_of

GIB = 1_024
TIB = 1_024 * GIB

CPU_SHAPES: tuple[tuple[float, Amounts], ...] = (
    (0.50, machine(32_000, 128 * GIB, 1 * TIB)),
    (0.30, machine(64_000, 256 * GIB, 2 * TIB)),
    (0.12, machine(16_000, 64 * GIB, 1 * TIB)),
    (0.08, machine(96_000, 768 * GIB, 4 * TIB)),
)
"""(share of the machines, capacity of one) pairs."""

GPU_SHAPES: tuple[tuple[str, Amounts], ...] = (
    ("A100", machine(96_000, 1_024 * GIB, 4 * TIB, gpus=8)),
    ("T4", machine(64_000, 256 * GIB, 2 * TIB, gpus=4)),
    ("A10", machine(64_000, 512 * GIB, 2 * TIB, gpus=4)),
    ("H100", machine(128_000, 2_048 * GIB, 8 * TIB, gpus=8)),
)
GPU_EVERY = 10
MACHINES_PER_RACK = 40
ZONES = ("zone-a", "zone-b", "zone-c")
PLATFORMS = ("P0", "P1", "P2")

DISK_MIB_PER_CORE = 16 * GIB


def cpu_shape(cores: int, *, memory_gib: int, weight: float = 1.0) -> Shape:
    """Return what a task without GPUs asks for."""
    return Shape(
        cpu_milli=cores * 1_000,
        memory_mib=memory_gib * GIB,
        disk_mib=cores * DISK_MIB_PER_CORE,
        weight=weight,
    )


TASK_SHAPES = (
    cpu_shape(1, memory_gib=4, weight=0.35),
    cpu_shape(4, memory_gib=12, weight=0.35),
    cpu_shape(8, memory_gib=32, weight=0.20),
    cpu_shape(16, memory_gib=48, weight=0.10),
)
"""Tasks of the start state."""
TASKS_PER_JOB = 50
SERVICE_SHARE = 0.6
"""Part of the jobs at the start that are services, which stay; the others are batch, which end."""
GPU_HALF_SHARE = 0.3
"""Part of the GPUs taken at the start of which a task takes only half."""
GPU_EVENNESS = 1.0
"""Sum of the beta law's parameters. Below 2, a machine's GPUs are mostly all taken or all free; the
larger it is, the more alike are the machines."""
CPU_MILLI_PER_GPU = 4_000
MEMORY_MIB_PER_GPU = 24 * GIB
UNEVENNESS = 0.2
"""Standard deviation of the machines' shares around the cell's."""
FULLEST = 0.98
ROUNDS_MAX = 64
BATCH_LIFE_IN_CHURNS = 5.0


def demo_machines(machines: int, rng: np.random.Generator) -> Machines:
    """Return so many machines: racks of 40, each in one zone and of one platform."""
    number = np.arange(machines)
    has_gpus = number % GPU_EVERY == min(GPU_EVERY, machines) - 1
    weights = np.array([weight for weight, _ in CPU_SHAPES])
    shapes = np.stack([row for _, row in (*CPU_SHAPES, *GPU_SHAPES)])
    gpu_shape = (np.cumsum(has_gpus) - 1) % len(GPU_SHAPES)
    cpu_shape = rng.choice(len(weights), size=machines, p=weights / weights.sum())
    rack = number // MACHINES_PER_RACK
    platform = rng.integers(len(PLATFORMS), size=int(rack[-1]) + 1)[rack]
    models = [GPU_SHAPES[shape][0] for shape in gpu_shape.tolist()]
    return Machines(
        names=tuple(f"machine-{n:05d}" for n in range(1, machines + 1)),
        capacity=shapes[np.where(has_gpus, len(CPU_SHAPES) + gpu_shape, cpu_shape)],
        attributes={
            "zone": [ZONES[n % len(ZONES)] for n in rack.tolist()],
            "rack": [f"rack-{n:03d}" for n in rack.tolist()],
            "platform": [PLATFORMS[n] for n in platform.tolist()],
            "gpu_model": [
                model if gpus else None for model, gpus in zip(models, has_gpus, strict=True)
            ],
        },
    )


def demo_prefill(
    machines: Machines, share: float, *, churn_s: float, rng: np.random.Generator
) -> Prefill:
    """Return tasks that take about this share of the machines, unevenly."""
    if share == 0:
        return Prefill.none()
    on_gpus, gpu_amounts = _gpu_tasks(machines, share, rng)
    used = np.zeros_like(machines.capacity)
    np.add.at(used, on_gpus, gpu_amounts)
    on_cpus, cpu_amounts = _cpu_tasks(machines, used, share, rng)
    at = np.concatenate([on_gpus, on_cpus])
    tasks = _in_jobs(
        np.concatenate([gpu_amounts, cpu_amounts]), len(on_gpus), churn_s=churn_s, rng=rng
    )
    return prefill_of(tasks, at, lambda number: f"start-{number:04d}")


def _gpu_tasks(machines: Machines, share: float, rng: np.random.Generator) -> tuple[Index, Amounts]:
    """Return GPU tasks, some of half a GPU: machine row (tasks,) and amounts (tasks, kinds)."""
    share = min(FULLEST, share / (1 - GPU_HALF_SHARE / 2))  # compensates for half GPUs
    shares = rng.beta(GPU_EVENNESS * share, GPU_EVENNESS * (1 - share), len(machines))
    taken = rng.random((len(machines), DEVICES_MAX)) < shares[:, np.newaxis]
    taken &= machines.capacity[:, DEVICES] > 0
    at, slot = np.nonzero(taken)
    slices = np.where(rng.random(len(at)) < GPU_HALF_SHARE, GPU_SLICES // 2, GPU_SLICES)
    amounts = np.zeros((len(at), KINDS), dtype=np.int64)
    amounts[:, Kind.CPU_MILLI] = CPU_MILLI_PER_GPU * slices // GPU_SLICES
    amounts[:, Kind.MEMORY_MIB] = MEMORY_MIB_PER_GPU * slices // GPU_SLICES
    amounts[np.arange(len(at)), DEVICES.start + slot] = slices
    return at, amounts


def _cpu_tasks(
    machines: Machines, used: Amounts, share: float, rng: np.random.Generator
) -> tuple[Index, Amounts]:
    """Return CPU tasks, up to one per machine and pass until shares are full: rows, amounts."""
    shares = np.clip(rng.normal(share, UNEVENNESS, len(machines)), 0.0, FULLEST)
    limit = np.floor(machines.capacity * shares[:, None]).astype(np.int64)
    limit[:, DEVICES] = machines.capacity[:, DEVICES]
    demand = np.stack([shape.demand for shape in TASK_SHAPES])
    weights = np.array([shape.weight for shape in TASK_SHAPES])
    at: list[Index] = [np.zeros(0, dtype=np.intp)]
    shapes: list[Index] = [np.zeros(0, dtype=np.intp)]
    for _ in range(ROUNDS_MAX):
        shape = rng.choice(len(weights), size=len(machines), p=weights / weights.sum())
        fits = np.flatnonzero(every_kind(used + demand[shape] <= limit))
        used[fits] += demand[shape[fits]]
        at.append(fits)
        shapes.append(shape[fits])
    return np.concatenate(at), demand[np.concatenate(shapes)]


def _in_jobs(
    amounts: Amounts, gpu_tasks: int, *, churn_s: float, rng: np.random.Generator
) -> Tasks:
    """Assign tasks to jobs at random; the first `gpu_tasks` of them to separate jobs."""
    jobs = len(amounts) // TASKS_PER_JOB + 1
    gpu_jobs = gpu_tasks // TASKS_PER_JOB + 1
    owner = rng.integers(gpu_jobs, gpu_jobs + jobs, size=len(amounts))
    owner[:gpu_tasks] = rng.integers(gpu_jobs, size=gpu_tasks)
    scheduler, duration_ms = _kinds_of_jobs(gpu_jobs, gpu_jobs + jobs, churn_s, rng)
    return Tasks(
        owner=owner.astype(np.int64),
        scheduler=scheduler[owner],
        precedence=np.zeros(len(amounts), dtype=np.int64),
        amounts=amounts,
        different_machines=np.zeros(len(amounts), dtype=np.bool_),
        duration_ms=duration_ms[owner],
    )


def _kinds_of_jobs(
    gpu_jobs: int, jobs: int, churn_s: float, rng: np.random.Generator
) -> tuple[Codes, Ids]:
    serves = rng.random(jobs) < SERVICE_SHARE
    life_ms = rng.exponential(BATCH_LIFE_IN_CHURNS * churn_s * MS_PER_S, jobs)
    duration_ms = np.where(serves, NO_END, np.rint(life_ms)).astype(np.int64)
    scheduler = np.where(serves, SCHEDULERS.index(SERVICE), SCHEDULERS.index(BATCH))
    scheduler[:gpu_jobs] = SCHEDULERS.index(ML_GPU)
    return scheduler.astype(np.int32), duration_ms
