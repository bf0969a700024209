"""Who yields to whom in a memory store: the gap, who runs where, and the victims of a commit.

Goal     Keep what is read about preemption apart from commits and machines.
Promise  Jobs yield by the gap as it is now. What is read is a copy.
Source   docs/decisions/0036-preemption.md, 0037-who-makes-way.md.
"""

from collections.abc import Callable, Collection, Sequence
from uuid import UUID

import numpy as np

from omega.cell.commit_context import NO_VICTIMS, Victims
from omega.clock import Clock
from omega.limits import LIMITS
from omega.model.arrays import Ids, Mask, integers
from omega.model.claims import JobSlice
from omega.model.jobs import PRECEDENCE_GAP, checked_gap
from omega.model.occupants import Occupants, Yielding
from omega.model.resources import KINDS
from omega.store.memory.allocations import AllocationTable
from omega.store.memory.forced_eviction import ForcedEvictions
from omega.store.memory.job_records import JobRecord
from omega.store.memory.machines import MachineTable


class Preemption(ForcedEvictions):
    """The gap of precedence, and reads of who runs where and yields."""

    def __init__(
        self,
        clock: Clock,
        machines: MachineTable,
        allocations: AllocationTable,
        new_token: Callable[[], UUID],
    ) -> None:
        super().__init__(clock, machines, allocations, new_token)
        self._precedence_gap = PRECEDENCE_GAP

    def precedence_gap(self) -> int:
        """Return by how much a job's precedence must be higher to evict another's tasks."""
        return self._precedence_gap

    def set_precedence_gap(self, gap: int) -> None:
        """Change the gap for every commit from now on. Raises BadInput unless it is positive."""
        if checked_gap(gap) != self._precedence_gap:
            self._precedence_gap = gap
            self._machines.generation += 1

    def occupants(self, machine: Ids) -> Occupants:
        """Read who runs on these machines."""
        assert len(machine) <= LIMITS.occupied_machines_max
        rows = self._allocations.rows[self._allocations.on(machine)]
        rows = rows[np.lexsort((rows["task"], rows["job"]))]
        jobs = [self._jobs[job] for job in np.unique(rows["job"]).tolist()]
        return Occupants(
            job=rows["job"],
            task=rows["task"],
            machine=rows["machine"],
            amounts=rows["amounts"],
            started_ms=rows["started_ms"],
            distinct_job=integers([job.id for job in jobs]),
            precedence=integers([job.spec.precedence for job in jobs]),
            yields_to=self._yields_to(jobs),
            minimum=integers([job.spec.minimum for job in jobs]),
            placed=integers([job.placed for job in jobs]),
            running=integers([job.placed - job.ended for job in jobs]),
            scheduler=tuple(job.spec.scheduler for job in jobs),
            tenant=tuple(job.spec.tenant for job in jobs),
        )

    def yielding(self, precedence: int) -> Yielding:
        """Read how much of each machine is held by tasks that yield to a precedence."""
        live = self._allocations.rows[self._allocations.rows["job"] > 0]
        about, of = np.unique(live["job"], return_inverse=True)
        yields = self._yields_to([self._jobs[job] for job in about.tolist()]) <= precedence
        rows = live[yields[of]]
        machine, at = np.unique(rows["machine"], return_inverse=True)
        amounts = np.zeros((len(machine), KINDS), dtype=np.int64)
        np.add.at(amounts, at, rows["amounts"])
        return Yielding(machine, amounts)

    def _yields_to(self, jobs: Sequence[JobRecord]) -> Ids:
        return integers([job.spec.yields_to(self._precedence_gap) for job in jobs])

    def _victims(self, named: Ids, claimants: Sequence[JobSlice], held: Collection[int]) -> Victims:
        """Return the running tasks of the jobs that evictions name.

        `claimants` are the transaction's jobs; `held` are those of them whose leases are held.
        """
        if not len(named):
            return NO_VICTIMS
        jobs = [self._jobs[job] for job in sorted(set(named.tolist()) & self._jobs.keys())]
        slots = np.concatenate([np.zeros(0, np.intp), *(job.slot[job.running] for job in jobs)])
        rows = self._allocations.rows[slots]
        return Victims(
            job=rows["job"],
            task=rows["task"],
            machine=rows["machine"],
            amounts=rows["amounts"],
            distinct_job=integers([job.id for job in jobs]),
            yields_to=self._yields_to(jobs),
            minimum=integers([job.spec.minimum for job in jobs]),
            placed=integers([job.placed for job in jobs]),
            own=self._own(jobs, claimants, held),
        )

    def _own(
        self, jobs: Sequence[JobRecord], claimants: Sequence[JobSlice], held: Collection[int]
    ) -> Mask:
        """Return of which jobs each claimant may evict any task, as its own scheduler's."""
        mine = np.zeros((len(claimants), len(jobs)), dtype=np.bool_)
        for number, part in enumerate(claimants):
            if part.job in held:
                scheduler = self._jobs[part.job].spec.scheduler
                mine[number] = [job.id in held and job.spec.scheduler == scheduler for job in jobs]
        return mine
