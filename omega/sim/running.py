"""The running tasks, by machine and by job, for cells whose machines change.

Goal     Find the tasks that are lost with a machine without a search.
Promise  Answers come in the order in which tasks began to run, so that a run is reproducible.
Source   docs/decisions/0021-virtual-time.md, machines that fail.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from omega.model.arrays import Amounts, Ids, Index, Mask
from omega.sim.ledger import SimulatedJob

Tell = Callable[[Ids, Amounts], None]
"""Is called with tasks that end: the machine of each, and amounts, (tasks, kinds), or (kinds,) if
all have one shape."""
Lose = Callable[[SimulatedJob, Index], None]
"""Is called with a job and the indexes of its tasks that have lost their places."""


@dataclass(eq=False)
class Grant:
    """Running tasks that end together, if they end; columns with a row for each task."""

    job_id: Ids
    task: Index
    machine: Ids
    amounts: Amounts
    job: SimulatedJob | None = None
    """None for the start state, whose tasks are of several jobs."""
    tell: Tell | None = None
    lose: Lose | None = None

    def __len__(self) -> int:
        return len(self.task)

    def split(self, lost: Mask) -> "Grant":
        """Remove the lost tasks, and return them as a grant of their own."""
        gone = Grant(
            *(self.job_id[lost], self.task[lost], self.machine[lost], self.amounts[lost]),
            *(self.job, self.tell, self.lose),
        )
        kept = ~lost
        self.job_id, self.task = self.job_id[kept], self.task[kept]
        self.machine, self.amounts = self.machine[kept], self.amounts[kept]
        return gone


def sum_of(machine: Ids, amounts: Amounts) -> Amounts:
    """Return the sum of the tasks' amounts: (tasks, kinds), or (kinds,) if all have one shape."""
    return len(machine) * amounts if amounts.ndim == 1 else amounts.sum(axis=0)


class Running:
    """All grants of one cell with running tasks."""

    def __init__(self) -> None:
        self._on: dict[int, dict[Grant, None]] = {}
        self._of: dict[int, dict[Grant, None]] = {}

    def add(self, grant: Grant) -> None:
        """Add a grant whose tasks begin to run."""
        for machine in set(grant.machine.tolist()):
            self._on.setdefault(machine, {})[grant] = None
        if grant.job is not None:
            self._of.setdefault(grant.job.lease.id, {})[grant] = None

    def end(self, grant: Grant) -> None:
        """Remove a grant whose tasks have ended."""
        for machine in set(grant.machine.tolist()):
            del self._on[machine][grant]
        if grant.job is not None and len(grant):
            del self._of[grant.job.lease.id][grant]

    def take_off(self, machine: int) -> list[Grant]:
        """Remove the tasks of a machine, and of gangs that break without them; return these."""
        lost = [self._take(one, one.machine == machine) for one in [*self._on.get(machine, ())]]
        counts: dict[SimulatedJob, int] = {}
        for gone in lost:
            if gone.job is not None:
                counts[gone.job] = counts.get(gone.job, 0) + len(gone)
        for job, tasks in counts.items():
            if job.breaks_without(tasks):
                siblings = [*self._of.get(job.lease.id, ())]
                lost += [self._take(one, np.ones(len(one), dtype=np.bool_)) for one in siblings]
        return lost

    def _take(self, grant: Grant, lost: Mask) -> Grant:
        self.end(grant)
        gone = grant.split(lost)
        if len(grant):
            self.add(grant)
        return gone
