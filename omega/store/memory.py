"""A whole store in memory: the simulator's cell, and the tests' model of Postgres.

Goal     Do what the Postgres store does, in one process and as fast as arrays go.
Promise  Passes the same contracts; judges by `omega.cell.judge`; every time in it is its clock's.
Source   docs/decisions/0002-one-store-protocol.md.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from uuid import UUID, uuid4

import numpy as np

from omega.cell.judge import Standing, judge
from omega.clock import Clock
from omega.lifecycle.states import FINAL, State, Trigger
from omega.model.arrays import Ids, Index, Verdicts, integers
from omega.model.claims import JobPart, Transaction
from omega.model.machines import Changes, Machines, MachineState, Snapshot
from omega.model.outcomes import Outcome
from omega.model.resources import COLUMNS
from omega.store.base import Allocations, CellUse, Violation
from omega.store.memory_allocations import ROW, AllocationTable
from omega.store.memory_books import broken_invariants
from omega.store.memory_machines import MachineTable
from omega.store.memory_queue import MemoryQueue, milliseconds
from omega.store.memory_registry import MemoryRegistry

OUTCOMES_KEPT_MAX = 100_000
"""Transactions whose verdicts are remembered; a reply that was lost is asked for long before."""


class MemoryStore(MemoryQueue, MemoryRegistry):
    """A cell, its queue and its registry. Marks are counts of the transactions so far."""

    def __init__(
        self,
        clock: Clock,
        *,
        new_token: Callable[[], UUID] = uuid4,
        outcomes_kept_max: int = OUTCOMES_KEPT_MAX,
    ) -> None:
        MemoryRegistry.__init__(self, clock)
        MemoryQueue.__init__(self, clock, MachineTable(), AllocationTable(), new_token)
        self._transactions = 0
        self._judged: dict[UUID, Verdicts] = {}
        self._outcomes_kept_max = outcomes_kept_max

    def add_machines(self, machines: Machines) -> Ids:
        """Add machines; return their ids in order. Raises BadInput for a name that is taken."""
        return self._machines.add(machines, self._next_transaction())

    def snapshot(self) -> Snapshot:
        """Read the whole cell."""
        return self._machines.snapshot(self._transactions)

    def changes_since(self, mark: int) -> Changes:
        """Read the rows changed by transactions after `mark`."""
        return self._machines.changes_since(mark, self._transactions)

    def commit(self, transaction: Transaction) -> Outcome:
        """Judge the claims against the cell as it is now and apply those that stand."""
        rows = self._machines.rows(self._machines.named(transaction.claims.machine))
        recorded = self._judged.get(transaction.id)
        if recorded is not None:
            return Outcome(recorded, fresh=rows)
        outcome = judge(rows, transaction, self._standing(transaction))
        if outcome.accepted.any():
            self._apply(transaction, outcome)
        self._record(transaction.id, outcome.verdicts)
        return outcome

    def end_tasks(self, job: Ids, task: Index) -> int:
        """End the live ones among these tasks, free their room; return how many were live."""
        now_s = self._clock.now()
        slots: list[int] = []
        for number, index in zip(job.tolist(), task.tolist(), strict=True):
            record = self._jobs.get(number)
            slot = record.end(index, now_s) if record is not None else None
            if slot is not None:
                slots.append(slot)
        self._free(np.array(slots, dtype=np.intp))
        return len(slots)

    def cancel(self, job: int) -> bool:
        """End a job and free its room; False if it was over already or never was."""
        record = self._jobs.get(job)
        if record is None or record.state in FINAL:
            return False
        slots = record.slot[record.running]
        record.ended = record.placed
        record.finish(Trigger.CANCEL, self._clock.now())
        self._leased.pop(job, None)
        self._parked.pop(job, None)
        self._free(slots)
        return True

    def allocations(self) -> Allocations:
        """Read all live allocations."""
        return self._allocations.live()

    def allocations_since(self, mark: int) -> tuple[Allocations, int]:
        """Read live allocations granted by transactions after `mark`, and the next mark."""
        return self._allocations.live(since=mark), self._transactions

    def now_ms(self) -> int:
        """Return the time by the store's clock, in milliseconds."""
        return milliseconds(self._clock.now())

    def verify(self) -> Sequence[Violation]:
        """Check every invariant; return those that are broken."""
        return broken_invariants(self._machines, self._allocations, self._jobs.values())

    def use(self) -> CellUse:
        """Sum up the cell and its queue; machines that are gone count for nothing."""
        here = self._machines.state != MachineState.GONE
        capacity = self._machines.capacity[here].sum(axis=0).tolist()
        used = self._machines.used[here].sum(axis=0).tolist()
        parked = [job.park_reason for job in self._parked.values() if job.park_reason]
        return CellUse(
            machines=int(np.count_nonzero(here)),
            open=int(np.count_nonzero(self._machines.state == MachineState.OPEN)),
            capacity=dict(zip(COLUMNS, capacity, strict=True)),
            used=dict(zip(COLUMNS, used, strict=True)),
            jobs_by_state=Counter(job.state for job in self._jobs.values()),
            parked_by_reason=Counter(parked),
            live_allocations=len(self._allocations),
        )

    def close(self) -> None:
        """Do nothing: there is nothing to let go of."""

    def _next_transaction(self) -> int:
        self._transactions += 1
        return self._transactions

    def _standing(self, transaction: Transaction) -> Standing:
        """Say how the transaction's jobs stand; those without their lease need no closer look."""
        held = [self._holds(part.job, part.token) for part in transaction.jobs]
        lacking = [0] * len(held)
        unplaced = np.zeros(len(transaction.claims), dtype=np.bool_)
        for number, part in enumerate(transaction.jobs):
            if held[number]:
                job = self._jobs[part.job]
                lacking[number] = job.lacking
                unplaced[part.claims] = job.unplaced(transaction.claims.task[part.claims])
        return Standing(np.array(held, dtype=np.bool_), integers(lacking), unplaced)

    def _apply(self, transaction: Transaction, outcome: Outcome) -> None:
        number = self._next_transaction()
        self._machines.write(outcome.fresh, number)
        for part in transaction.jobs:
            granted = np.flatnonzero(outcome.accepted[part.claims]) + part.claims.start
            if len(granted):
                self._place(part, transaction, granted, number)

    def _place(self, part: JobPart, transaction: Transaction, granted: Index, number: int) -> None:
        job, claims = self._jobs[part.job], transaction.claims
        rows = np.zeros(len(granted), dtype=ROW)
        rows["job"] = job.id
        rows["task"] = claims.task[granted]
        rows["machine"] = claims.machine[granted]
        rows["amounts"] = claims.shapes[claims.shape[granted]]
        rows["started_ms"] = milliseconds(self._clock.now())
        rows["duration_ms"] = job.durations_ms(claims.task[granted])
        rows["granted_by"] = number
        job.place(claims.task[granted], self._allocations.add(rows))
        if job.state is State.RUNNING:
            del self._leased[job.id]

    def _free(self, slots: Index) -> None:
        if len(slots):
            rows = self._allocations.rows[slots]
            self._machines.free(rows["machine"], rows["amounts"], self._next_transaction())
            self._allocations.end(slots)

    def _record(self, transaction: UUID, verdicts: Verdicts) -> None:
        self._judged[transaction] = verdicts
        if len(self._judged) > self._outcomes_kept_max:
            del self._judged[next(iter(self._judged))]
