"""Lanes: the queue of one kind of scheduler, by tenant and by class of constraints.

Goal     Name the parts of a queue between which an order of the whole queue decides.
Promise  A job is in one lane for as long as it exists. The store in Postgres computes the same
         classes.
Source   Choosy (EuroSys 2013): users, and the machines that their jobs may use;
         docs/decisions/0058-the-order-of-the-queue.md.
"""

from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from hashlib import sha256
from typing import Final

import numpy as np

from omega.model.arrays import Amounts
from omega.model.jobs import Constraint, JobSpec
from omega.model.resources import DEVICES

CONSTRAINT_CLASSES: Final = 64
"""Into how many classes the jobs of a tenant that have constraints are divided, by a hash."""


class QueueOrder(Enum):
    """Which jobs of the whole queue of a kind are leased next."""

    FIFO = "fifo"
    """The highest precedence, then the oldest."""
    DRF = "drf"
    """Those of the tenant with the smallest weighted dominant share, of the tenants whose next job
    finds room."""
    CHOOSY = "choosy"
    """The same, lane by lane: jobs that few machines take do not hold up their tenant's others."""

    @property
    def is_fair(self) -> bool:
        """Whether it compares tenants."""
        return self is not QueueOrder.FIFO


@dataclass(frozen=True, order=True)
class Lane:
    """The jobs of one tenant and one class of constraints that wait for one kind of scheduler."""

    tenant: str
    constraint_class: int = 0

    @classmethod
    def of(cls, spec: JobSpec) -> "Lane":
        """Return the lane of a job."""
        return cls(spec.tenant, constraint_class(spec))


def constraint_class(spec: JobSpec) -> int:
    """Return the class of a job's constraints, from 1 to CONSTRAINT_CLASSES; 0 without any.

    Jobs with the same constraints are in one class; jobs of one class may have different ones.
    """
    constraints = frozenset(each for group in spec.groups for each in group.constraints)
    return _class_of(constraints) if constraints else 0


@lru_cache(maxsize=4_096)
def _class_of(constraints: frozenset[Constraint]) -> int:
    texts = {"\n".join((it.attribute, it.operator.value, *it.values)) for it in constraints}
    return 1 + sha256("\n\n".join(sorted(texts)).encode()).digest()[0] % CONSTRAINT_CLASSES


def job_demand(spec: JobSpec) -> Amounts:
    """Return what all tasks of a job need together: (resources,), the GPUs' slices added up."""
    total = np.zeros(DEVICES.start + 1, dtype=np.int64)
    for group in spec.groups:
        total[:-1] += group.tasks * group.demand[: DEVICES.start]
        total[-1] += group.tasks * group.gpus * group.gpu_slices
    return total
