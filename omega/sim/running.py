"""What runs, by machine and by job, where something may happen to machines.

Goal     Find at once what a machine takes down with it.
Promise  Answers come in the order in which things began to run: the same run, the same order.
Source   docs/decisions/0021-virtual-time.md, machines that fail.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from omega.model.arrays import Amounts, Ids, Index, Mask
from omega.sim.ledger import SimulatedJob

Tell = Callable[[Ids, Amounts], None]
"""Told of tasks that end: the machine of each, and what it had there: an entry each, or one row for
all."""
Lose = Callable[[SimulatedJob, Index], None]
"""Told of a job's tasks that have lost their place."""


@dataclass(eq=False)
class Grant:
    """Tasks that run, and that end together if they do; columns with a row a task."""

    job_id: Ids
    task: Index
    machine: Ids
    amounts: Amounts
    job: SimulatedJob | None = None
    """None of the start state, whose tasks are of several jobs."""
    tell: Tell | None = None
    lose: Lose | None = None

    def __len__(self) -> int:
        return len(self.task)

    def split(self, lost: Mask) -> "Grant":
        """Keep all but what is lost, and return that."""
        gone = Grant(
            *(self.job_id[lost], self.task[lost], self.machine[lost], self.amounts[lost]),
            *(self.job, self.tell, self.lose),
        )
        kept = ~lost
        self.job_id, self.task = self.job_id[kept], self.task[kept]
        self.machine, self.amounts = self.machine[kept], self.amounts[kept]
        return gone


def sum_of(machine: Ids, amounts: Amounts) -> Amounts:
    """Add up what tasks have, of which each is told, or one row for all."""
    return len(machine) * amounts if amounts.ndim == 1 else amounts.sum(axis=0)


class Running:
    """All grants of one cell that have tasks running."""

    def __init__(self) -> None:
        self._on: dict[int, dict[Grant, None]] = {}
        self._of: dict[int, dict[Grant, None]] = {}

    def add(self, grant: Grant) -> None:
        """Let a grant run."""
        for machine in set(grant.machine.tolist()):
            self._on.setdefault(machine, {})[grant] = None
        if grant.job is not None:
            self._of.setdefault(grant.job.lease.id, {})[grant] = None

    def end(self, grant: Grant) -> None:
        """Let all of a grant be over."""
        for machine in set(grant.machine.tolist()):
            del self._on[machine][grant]
        if grant.job is not None and len(grant):
            del self._of[grant.job.lease.id][grant]

    def take_off(self, machine: int) -> list[Grant]:
        """Take off what a machine runs, and the gangs that cannot stand without that."""
        lost = [self._take(one, one.machine == machine) for one in [*self._on.get(machine, ())]]
        counts: dict[SimulatedJob, int] = {}
        for gone in lost:
            if gone.job is not None:
                counts[gone.job] = counts.get(gone.job, 0) + len(gone)
        for job, tasks in counts.items():
            if job.falls_without(tasks):
                siblings = [*self._of.get(job.lease.id, ())]
                lost += [self._take(one, np.ones(len(one), dtype=np.bool_)) for one in siblings]
        return lost

    def _take(self, grant: Grant, lost: Mask) -> Grant:
        self.end(grant)
        gone = grant.split(lost)
        if len(grant):
            self.add(grant)
        return gone
