"""Forced evictions in a memory store: tasks that lose their places with machines, or to resizes.

Goal     Changes of machines, and the ends of tasks that they cause.
Promise  A task that is evicted by force is unplaced again; it does not count as ended. If its gang
         falls below its minimum, all running tasks of the gang are evicted, on any machine.
Source   docs/decisions/0015-evictions-alternates-machines.md.
"""

from collections import defaultdict

import numpy as np

from omega.lifecycle.states import FINAL, State
from omega.model.arrays import Amounts, Ids, Index, any_kind, integers
from omega.model.machines import DEAD, MachineState
from omega.store.memory.ended_tasks import EndCause
from omega.store.memory.job_records import JobRecord
from omega.store.memory.jobs import MemoryJobs, milliseconds
from omega.store.memory.quotas import QuotaTable
from omega.store.status import Notice


class ForcedEvictions(MemoryJobs):
    """A job queue whose running tasks can lose their places."""

    _transactions = 0
    """The number of transactions so far; it is the mark of reads."""

    _quotas: QuotaTable

    def set_state(self, machine: Ids, state: MachineState) -> int:
        """Open, drain, take down or remove machines; return how many changed."""
        return self._machines.set_state(machine, state, self._next_transaction())

    def resize(self, machine: int, capacity: Amounts, *, notice_ms: int) -> None:
        """Change a machine's capacity; claims are judged by the new one at once."""
        ends_s = self._clock.now() + notice_ms / 1_000
        self._machines.resize(machine, capacity, ends_s, self._next_transaction())

    def lose_tasks(self, machine: Ids) -> int:
        """Evict the tasks on those of the machines that are down or gone; return how many."""
        named = self._machines.named(machine)
        dead = np.isin(self._machines.state[named], DEAD)
        return self._force_end(self._allocations.on(named[dead] + 1))

    def enforce_notices(self) -> int:
        """Evict tasks above capacity on machines whose notice has ended; return how many."""
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
        """Return the slots of the tasks to evict from a machine, in order of eviction.

        Lowest precedence comes first, then the latest start. In this order a task is evicted if it
        holds some of a kind that is still in excess.
        """
        slots = self._allocations.on(integers([machine]))
        rows = self._allocations.rows[slots]
        precedence = integers(self._jobs[job].spec.precedence for job in rows["job"].tolist())
        order = np.lexsort((-rows["task"], -rows["job"], -rows["started_ms"], precedence))
        excess = self._machines.excess(machine)
        held = rows["amounts"][order]
        ended_before = np.cumsum(held, axis=0) - held
        return slots[order[any_kind((excess > ended_before) & (held > 0))]]

    def _force_end(self, slots: Index) -> int:
        """Evict tasks, and the rest of each gang that falls below its minimum; return how many."""
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
            self._end_lost_helpers(job, falling)
        slots = np.concatenate(ended)
        self._free(slots, EndCause.LOST)
        return len(slots)

    def _unplace(self, job: JobRecord, tasks: Index) -> None:
        """Record that tasks have lost their places; queue the job again if it was running."""
        ran = job.state is State.RUNNING and job.parent is None
        job.unplace(tasks)
        job.lost_s = self._clock.now()
        if ran:
            self._queue(job)

    def _end_lost_helpers(self, job: JobRecord, tasks: Index) -> None:
        """If they are helpers, end those of these tasks that have lost their places."""
        if job.parent is not None:
            job.give_up(tasks, self._clock.now())
            if job.state in FINAL:
                self._leased.pop(job.id, None)

    def _free(self, slots: Index, cause: EndCause = EndCause.ENDED) -> None:
        """End allocations, and free their amounts on the machines."""
        if len(slots):
            rows = self._allocations.rows[slots]
            self._machines.free(rows["machine"], rows["amounts"], self._next_transaction())
            self._forget(slots, cause)

    def _forget(self, slots: Index, cause: EndCause) -> None:
        """End allocations, and their charges to quotas; machines are left as they are."""
        rows = self._allocations.rows[slots]
        self._quotas.charge(rows["job"], rows["amounts"], sign=-1)
        ended_ms = milliseconds(self._clock.now())
        self._ended.add(
            rows["job"], rows["task"], rows["machine"], rows["started_ms"], ended_ms, cause
        )
        self._allocations.end(slots)


def tasks_by_job(job: Ids, task: Index) -> dict[int, Index]:
    """Group task indexes by job; jobs and tasks keep their order."""
    tasks: dict[int, list[int]] = defaultdict(list)
    for number, index in zip(job.tolist(), task.tolist(), strict=True):
        tasks[number].append(index)
    return {number: np.array(its, dtype=np.intp) for number, its in tasks.items()}
