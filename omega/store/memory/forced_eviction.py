"""Tasks of a memory store that lose their places: to evictions, with machines, to resizes.

Goal     The half of a machine's life that ends what runs on it.
Promise  What is ended by force is unplaced again, never over. A gang that falls below its minimum
         falls whole, wherever it runs.
Source   docs/decisions/0015-evictions-alternates-machines.md.
"""

from collections import defaultdict

import numpy as np

from omega.lifecycle.states import State
from omega.model.arrays import Amounts, Ids, Index, integers, some_kind
from omega.model.machines import DEAD, MachineState
from omega.store.memory.job_records import JobRecord
from omega.store.memory.jobs import MemoryJobs, milliseconds
from omega.store.memory.quotas import QuotaTable
from omega.store.status import Notice


class ForcedEvictions(MemoryJobs):
    """A queue whose tasks may have to go back to it."""

    _transactions = 0
    """How many there have been: the mark of reads, and the number of the next one."""

    _quotas: QuotaTable

    def set_state(self, machine: Ids, state: MachineState) -> int:
        """Open, drain, take down or remove machines; return how many changed."""
        return self._machines.set_state(machine, state, self._next_transaction())

    def resize(self, machine: int, capacity: Amounts, *, notice_ms: int) -> None:
        """Change a machine's capacity, for claims at once."""
        ends_s = self._clock.now() + notice_ms / 1_000
        self._machines.resize(machine, capacity, ends_s, self._next_transaction())

    def lose_tasks(self, machine: Ids) -> int:
        """End by force what runs on those of the machines that are down or gone."""
        named = self._machines.named(machine)
        dead = np.isin(self._machines.state[named], DEAD)
        return self._force_end(self._allocations.on(named[dead] + 1))

    def enforce_notices(self) -> int:
        """End by force what no longer fits where a notice has run out; return how many tasks."""
        now_s = self._clock.now()
        ended = 0
        for machine, notice in sorted(self._machines.notices.items()):
            if notice.ends_s <= now_s:
                ended += self._force_end(self._in_excess(machine))
            self._machines.end_notice_if_it_fits(machine)
        return ended

    def notices(self) -> list[Notice]:
        """Return the notices of machines that are used above their capacity, ascending by id."""
        now_s = self._clock.now()
        return [
            Notice(machine, excess, milliseconds(notice.ends_s - now_s))
            for machine, notice in sorted(self._machines.notices.items())
            if (excess := self._machines.excess(machine)).any()
        ]

    def _next_transaction(self) -> int:
        self._transactions += 1
        return self._transactions

    def _in_excess(self, machine: int) -> Index:
        """Return the slots to be ended on a machine, those first that matter least.

        Walking in that order, whatever holds some of what is still short is ended.
        """
        slots = self._allocations.on(integers([machine]))
        rows = self._allocations.rows[slots]
        precedence = integers(self._jobs[job].spec.precedence for job in rows["job"].tolist())
        order = np.lexsort((-rows["task"], -rows["job"], -rows["started_ms"], precedence))
        excess = self._machines.excess(machine)
        held = rows["amounts"][order]
        ended_before = np.cumsum(held, axis=0) - held
        return slots[order[some_kind((excess > ended_before) & (held > 0))]]

    def _force_end(self, slots: Index) -> int:
        """End allocations, and what is left of the gangs that they break; return how many."""
        rows = self._allocations.rows[slots]
        by_job = tasks_by_job(rows["job"], rows["task"])
        ended = [slots]
        for number, tasks in by_job.items():
            job = self._jobs[number]
            falling = tasks
            if job.placed - len(tasks) < job.spec.minimum:
                falling = job.running
                ended.append(job.slot[np.setdiff1d(falling, tasks)])
            self._unplace(job, falling)
        slots = np.concatenate(ended)
        self._free(slots)
        return len(slots)

    def _unplace(self, job: JobRecord, tasks: Index) -> None:
        """Note that tasks have lost their places; a job that ran waits in line again."""
        ran = job.state is State.RUNNING
        job.unplace(tasks)
        if ran:
            self._queue(job)

    def _free(self, slots: Index) -> None:
        """End allocations and give their room back."""
        if len(slots):
            rows = self._allocations.rows[slots]
            self._machines.free(rows["machine"], rows["amounts"], self._next_transaction())
            self._forget(slots)

    def _forget(self, slots: Index) -> None:
        """End allocations, and their charges to quotas."""
        rows = self._allocations.rows[slots]
        self._quotas.charge(rows["job"], rows["amounts"], sign=-1)
        self._allocations.end(slots)


def tasks_by_job(job: Ids, task: Index) -> dict[int, Index]:
    """Gather tasks by job, in the order in which jobs and tasks are named."""
    tasks: dict[int, list[int]] = defaultdict(list)
    for number, index in zip(job.tolist(), task.tolist(), strict=True):
        tasks[number].append(index)
    return {number: np.array(its, dtype=np.intp) for number, its in tasks.items()}
