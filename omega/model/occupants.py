"""Occupants: who runs on some machines, and whether they would make way.

Goal     Let placement choose victims, without a copy of all that runs in every view.
Promise  Frozen arrays. The jobs of all tasks on the machines that were named are complete; of each
         job only its tasks on these machines are listed. `Yielding` is of all machines.
Source   Omega (EuroSys 2013), section 3.4: preemption by precedence; docs/decisions/0036.
"""

from dataclasses import dataclass, replace

import numpy as np

from omega.limits import LIMITS
from omega.model.arrays import Amounts, Counts, Ids, Index, Mask, ascends, freeze
from omega.model.claims import Evictions


@dataclass(frozen=True, eq=False)
class Occupants:
    """Running tasks on some machines, and what decides whether each may be evicted."""

    job: Ids
    """The job of each task; ascending by job, then by task."""
    task: Index
    machine: Ids
    amounts: Amounts
    started_ms: Ids

    distinct_job: Ids
    """The distinct jobs, ascending; all that follows has one entry for each."""
    precedence: Counts
    yields_to: Ids
    """The least precedence that may evict its tasks; NEVER_YIELDS if none may."""
    minimum: Counts
    placed: Counts
    """Tasks that run or have ended, anywhere."""
    running: Counts
    """Tasks that run, anywhere."""
    scheduler: tuple[str, ...]
    """The kind of scheduler of each job."""
    tenant: tuple[str, ...]
    """The tenant of each job."""

    def __post_init__(self) -> None:
        assert len(self.job) == len(self.task) == len(self.machine) == len(self.amounts)
        assert (
            len(self.distinct_job)
            == len(self.precedence)
            == len(self.yields_to)
            == len(self.minimum)
        )
        assert (
            len(self.distinct_job) == len(self.placed) == len(self.running) == len(self.scheduler)
        )
        assert len(self.distinct_job) == len(self.tenant)
        assert ascends(self.distinct_job)
        freeze(self.job, self.task, self.machine, self.amounts, self.started_ms, self.distinct_job)
        freeze(self.precedence, self.yields_to, self.minimum, self.placed, self.running)

    def __len__(self) -> int:
        return len(self.job)

    def named_in(self, evictions: Evictions) -> Mask:
        """Return which of the tasks are named: (tasks,)."""
        width = LIMITS.tasks_per_job_max
        named = evictions.job * width + evictions.task
        return np.isin(self.job * width + self.task, named)

    def only(self, which: Mask) -> "Occupants":
        """Return those of the tasks for which `which` is true; the others run on, unlisted."""
        return replace(
            self,
            job=self.job[which],
            task=self.task[which],
            machine=self.machine[which],
            amounts=self.amounts[which],
            started_ms=self.started_ms[which],
        )

    def without(self, gone: Mask) -> "Occupants":
        """Return those that are left when the tasks for which `gone` is true are evicted."""
        lost = np.searchsorted(self.distinct_job, self.job[gone])
        losses = np.bincount(lost, minlength=len(self.distinct_job))
        placed, running = self.placed - losses, self.running - losses
        return replace(self.only(~gone), placed=placed, running=running)


@dataclass(frozen=True, eq=False)
class Yielding:
    """How much of each machine is held by tasks that yield to one precedence."""

    machine: Ids
    """The machines on which some do, ascending."""
    amounts: Amounts
    """What these tasks hold together: (machines, kinds)."""

    def __post_init__(self) -> None:
        assert len(self.machine) == len(self.amounts)
        assert ascends(self.machine)
        freeze(self.machine, self.amounts)

    def __len__(self) -> int:
        return len(self.machine)
