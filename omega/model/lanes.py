"""Lanes: the parts of the queue of a kind of scheduler, by tenant, shape and constraints.

Goal     Name the parts of a queue between which a fair order decides, and what their jobs need.
Promise  A job is in the same lane for as long as it exists. A tenant has few lanes of a kind,
         whatever it submits. Postgres computes the same classes and demands (functions/specs.sql).
Source   Choosy (EuroSys 2013): users, and the machines that their jobs may use;
         docs/decisions/0058-the-order-of-the-queue.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from hashlib import sha256
from typing import Final

import numpy as np

from omega.model.arrays import Amounts, integers
from omega.model.jobs import Constraint, JobSpec, LeasedJob, TaskGroup
from omega.model.resources import DEVICES, GPU_SLICES

SIZES: Final = 16
"""Into how many sizes jobs are divided: each but the first and the last is twice the one before."""
SIZE_UNITS: Final = (1_000 // 8, 512, 8 * 1_024, GPU_SLICES // 100)
"""What counts as equally much of each resource: an eighth of a core, 0.5 GiB of memory, 8 GiB of
disk, and a hundredth of a GPU."""
SHAPE_CLASSES: Final = len(SIZE_UNITS) * 2 * SIZES
"""The classes of jobs without constraints: the resource, whether they are gangs, and the size."""
CONSTRAINT_CLASSES: Final = 64
"""Into how many classes the jobs of a tenant that have constraints are divided, by a hash."""


class QueueOrder(Enum):
    """Which jobs of the whole queue of a kind are leased next."""

    FIFO = "fifo"
    """The highest precedence, then the oldest."""
    DRF = "drf"
    """The tenant with the smallest weighted dominant share; if a job of it finds no room, the
    tenant after it."""
    CHOOSY = "choosy"
    """The same, but if a job finds no room, only its lane is passed over: jobs that few machines
    take do not hold up others of their tenant."""
    DEADLINE = "deadline"
    """The highest precedence, then the earliest start deadline: the least laxity."""
    EDF = "deadline-edf"
    """The same by the time by which a stage is to have ended."""
    SJF = "deadline-sjf"
    """The same by how long a stage takes: the shortest first."""
    TOKENS = "deadline-tokens"
    """The same by the stamps of pipelines' tokens."""

    @property
    def is_fair(self) -> bool:
        """Whether it compares the shares of tenants."""
        return self in (QueueOrder.DRF, QueueOrder.CHOOSY)

    @property
    def is_by_key(self) -> bool:
        """Whether jobs have keys, of which the smallest comes first."""
        return self.value.startswith("deadline")


@dataclass(frozen=True, order=True)
class Lane:
    """The jobs of one tenant and one class that wait for one kind of scheduler."""

    tenant: str
    lane_class: int

    @classmethod
    def of(cls, spec: JobSpec) -> "Lane":
        """Return the lane of a job."""
        return cls(spec.tenant, lane_class(spec))

    @property
    def has_constraints(self) -> bool:
        """Whether its jobs have constraints on machines."""
        return self.lane_class >= SHAPE_CLASSES


def lane_class(spec: JobSpec) -> int:
    """Return the class of a job: its shape if it has no constraints, else a hash of both.

    Jobs of the same shape with the same constraints are in one class; jobs with constraints that
    are in one class may differ in both.
    """
    constraints = frozenset(each for group in spec.groups for each in group.constraints)
    shape = shape_class(spec)
    return _class_of(shape, constraints) if constraints else shape


def shape_class(spec: JobSpec) -> int:
    """Return the class of a job's shape, from 0 to SHAPE_CLASSES - 1.

    It says of which resource a task of it needs most, which is GPUs if it needs any; whether it is
    a gang; and how much it needs to begin, a task or the minimum of a gang, of whichever resource
    that is most. If its groups differ, each task counts as the average of all.
    """
    demand, least = job_demand(spec), max(1, spec.minimum)
    begin = demand // spec.tasks * least // SIZE_UNITS
    resource = len(begin) - 1 if demand[-1] else int(begin.argmax())
    size = min(int(begin.max()).bit_length(), SIZES - 1)
    return (2 * resource + (least > 1)) * SIZES + size


@lru_cache(maxsize=4_096)
def _class_of(shape: int, constraints: frozenset[Constraint]) -> int:
    texts = {"\n".join((it.attribute, it.operator.value, *it.values)) for it in constraints}
    text = "\n\n".join((*sorted(texts), str(shape)))
    return SHAPE_CLASSES + sha256(text.encode()).digest()[0] % CONSTRAINT_CLASSES


def task_demand(group: TaskGroup) -> Amounts:
    """Return what one task needs, with the slices of its GPUs added up: (resources,).

    The resources are CPU in millicores, memory and disk in MiB, and GPU slices.
    """
    return np.append(group.demand[: DEVICES.start], group.gpus * group.gpu_slices)


def job_demand(spec: JobSpec) -> Amounts:
    """Return what all tasks of a job need together: (resources,), as of `task_demand`."""
    return _together(spec.groups, [group.tasks for group in spec.groups])


def demand_left(job: LeasedJob) -> Amounts:
    """Return what the tasks of a job that have no place need together: (resources,)."""
    groups = job.spec.groups
    return _together(groups, [len(job.unplaced_in(number)) for number in range(len(groups))])


def _together(groups: Sequence[TaskGroup], tasks: Sequence[int]) -> Amounts:
    return integers(tasks) @ np.array([task_demand(group) for group in groups], dtype=np.int64)
