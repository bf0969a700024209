"""A store in memory: for processes simulated in virtual time, and as the reference for Postgres.

Goal     Do what the Postgres store does, in one process, at the speed of arrays.
Promise  The store passes the same contracts. It judges by `omega.cell.judge`. All its times are its
         clock's.
Source   docs/decisions/0002-one-store-protocol.md.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from uuid import UUID, uuid4

import numpy as np

from omega.cell.commit_context import CommitContext
from omega.cell.judge import judge
from omega.cell.partition import WHOLE, Parts
from omega.clock import Clock
from omega.lifecycle.states import FINAL, State, Trigger
from omega.model.allocations import Allocations
from omega.model.arrays import Ids, Index, any_kind
from omega.model.claims import ConflictRule, JobSlice, Transaction
from omega.model.evictors import evictors
from omega.model.jobs import LeasedJob
from omega.model.machines import (
    DEAD,
    Changes,
    MachineRows,
    Machines,
    MachineState,
    Snapshot,
)
from omega.model.outcomes import Outcome
from omega.model.quotas import Quota, QuotaScope, QuotaUse
from omega.model.resources import COLUMNS
from omega.store.leases import HandBack
from omega.store.memory.allocations import ROW, AllocationTable
from omega.store.memory.ended_tasks import EndCause
from omega.store.memory.exits import ExitTable
from omega.store.memory.forced_eviction import tasks_by_job
from omega.store.memory.inquiries import RecordedTransaction
from omega.store.memory.job_records import JobRecord
from omega.store.memory.jobs import milliseconds
from omega.store.memory.lanes import MemoryLanes
from omega.store.memory.machine_leases import MemoryMachineLeases, broken_leases
from omega.store.memory.machines import MachineTable
from omega.store.memory.pipelines import PipelineTable
from omega.store.memory.preemption import Preemption
from omega.store.memory.progress import MemoryProgress
from omega.store.memory.quotas import QuotaTable
from omega.store.memory.registry import MemoryRegistry
from omega.store.memory.rounds import MemoryRounds
from omega.store.memory.stories import MemoryStories
from omega.store.memory.turns import MemoryTurns
from omega.store.memory.usage import MemoryUsage
from omega.store.memory.verify import broken_invariants
from omega.store.memory.watching import judged_since, queue_of
from omega.store.planned import HOLDER, PlannedJob, PlannedOutcome
from omega.store.status import CellUse, Violation
from omega.store.watching import Judged, QueueLine

LEASE_S = 60.0
"""For how long a job is leased while its plan is committed."""

OUTCOMES_KEPT_MAX = 100_000
"""The most outcomes that are kept; a client repeats a commit long before its outcome is dropped."""

NO_ROWS = MachineRows.none()


class MemoryStore(
    MemoryMachineLeases,
    MemoryProgress,
    MemoryUsage,
    MemoryStories,
    MemoryLanes,
    Preemption,
    MemoryRounds,
    MemoryTurns,
    MemoryRegistry,
):
    """A cell, its job queue and its registry.

    A mark is the number of changes of machines and allocations so far. A commit is one change if it
    grants a claim, and none otherwise. The marks of `judged_since` count recorded transactions.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        new_token: Callable[[], UUID] = uuid4,
        outcomes_kept_max: int = OUTCOMES_KEPT_MAX,
    ) -> None:
        MemoryRegistry.__init__(self, clock)
        MemoryRounds.__init__(self, clock)
        MemoryTurns.__init__(self, clock)
        Preemption.__init__(self, clock, MachineTable(), AllocationTable(), new_token)
        self._quotas = QuotaTable(self._jobs)
        self._exits = ExitTable()
        self._machine_leases = {}
        self._tenants, self._agreements = {}, {}
        self._pipelines = PipelineTable()
        self._judged: dict[UUID, RecordedTransaction] = {}
        self._judged_before = 0
        self._outcomes_kept_max = outcomes_kept_max

    def add_machines(self, machines: Machines) -> Ids:
        """Add machines; return their ids in order. Raises BadInput for a name already in use."""
        return self._machines.add(machines, self._next_transaction())

    def snapshot(self) -> Snapshot:
        """Read the whole cell."""
        return self._machines.snapshot(self._transactions)

    def changes_since(self, mark: int, parts: Parts = WHOLE) -> Changes:
        """Read the rows in these parts that were changed by transactions after `mark`."""
        return self._machines.changes_since(mark, self._transactions, parts)

    def commit(self, transaction: Transaction) -> Outcome:
        """Judge the claims against the cell as it is now; apply the accepted ones."""
        recorded = self._judged.get(transaction.id)
        if recorded is not None:
            fresh = self._rows(transaction, recorded.evicted_from)
            return replace(recorded.outcome, fresh=fresh)
        context = self._context(transaction)
        rows = self._rows(transaction, context.victims.machine)
        outcome = judge(rows, transaction, context)
        evicted_from = self._evicted_from(outcome)
        if outcome.accepted.any():
            self._apply(transaction, outcome)
        # Recorded last: a story expects no commit to be recorded before the start and end times of
        # the tasks that it placed and evicted.
        self._record(transaction, outcome, evicted_from)
        return outcome

    def submit_planned(self, planned: PlannedJob) -> PlannedOutcome:
        """Submit a job and commit its claims, all by the sequence rule, or change nothing."""
        if (known := self._judged.get(planned.id)) is not None:
            return self._planned(planned, known.jobs[0].job, known.outcome)
        record = JobRecord.submitted(len(self._jobs) + 1, planned.spec, self._clock.now())
        self._jobs[record.id] = record
        leased = self._leased_to(HOLDER, record, self._clock.now() + LEASE_S)
        transaction = Transaction.of(
            [(leased.id, leased.token, len(planned.claims), planned.claims)],
            id=planned.id,
            scheduler=planned.spec.scheduler,
            replica=HOLDER,
            rule=ConflictRule.SEQUENCE,
        )
        context = self._context(transaction)
        outcome = judge(self._rows(transaction, context.victims.machine), transaction, context)
        lost = zip(outcome.evicted_job.tolist(), outcome.evicted_task.tolist(), strict=True)
        if not outcome.accepted.all() or sorted(lost) != sorted(planned.evicted):
            del self._jobs[record.id], self._leased[record.id]
            return self._planned(planned, None, outcome)
        self.commit(transaction)
        self.hand_back([HandBack(leased.id, leased.token, 0, progressed=True)])
        return self._planned(planned, record.id, outcome)

    def _planned(self, planned: PlannedJob, job: int | None, outcome: Outcome) -> PlannedOutcome:
        lost = zip(outcome.evicted_job.tolist(), outcome.evicted_task.tolist(), strict=True)
        fresh = self._machines.rows(self._machines.named(planned.claims.machine))
        return PlannedOutcome(job, outcome.verdicts, tuple(sorted(lost)), fresh)

    def end_helpers(self, scheduler: str, job: Ids, task: Index) -> int:
        """End those of these tasks that run and help jobs of this kind; return how many."""
        helping = self._are_helpers(job, scheduler)
        return self.end_tasks(job[helping], task[helping])

    def recall(
        self, scheduler: str, number: int, jobs: Sequence[int] | None, *, lease_ms: int
    ) -> list[LeasedJob]:
        """Lease to a round's holder those of the jobs that run, ascending by id; tasks go on."""
        last = self.last_round(scheduler)
        if last is None or last.number != number:
            return []
        return self._recall(
            scheduler, jobs, holder=last.holder, before=last.before, lease_ms=lease_ms
        )

    def cancel(self, job: int) -> bool:
        """Cancel a job and free its amounts; return False if it has ended or never existed."""
        record = self._jobs.get(job)
        if record is None or record.state in FINAL:
            return False
        slots = self._stop(record, Trigger.CANCEL, of_helpers=Trigger.CANCEL)
        self._free(np.array(slots, dtype=np.intp))
        return True

    def set_quota(self, quota: Quota) -> None:
        """Limit what a tenant or a kind of scheduler may hold; running tasks are not evicted."""
        self._quotas.set(quota, self._allocations.live())

    def remove_quota(self, scope: QuotaScope, name: str) -> bool:
        """Remove a quota; return False if there was none."""
        return self._quotas.remove(scope, name)

    def quotas(self) -> list[QuotaUse]:
        """Return all quotas with their balances, by scope and name."""
        return self._quotas.uses()

    def allocations(self) -> Allocations:
        """Read all live allocations."""
        return self._allocations.live()

    def allocations_on(self, machine: Ids) -> Allocations:
        """Read the live allocations on these machines."""
        return self._allocations.read(self._allocations.on(machine))

    def unfinished(self, jobs: Sequence[int]) -> set[int]:
        """Return those of the jobs that exist and have not ended, in any state."""
        return {job for job in jobs if job in self._jobs and self._jobs[job].state not in FINAL}

    def allocations_of(self, jobs: Sequence[int]) -> Allocations:
        """Read the live allocations of these jobs."""
        named = [self._jobs[job] for job in sorted(set(jobs)) if job in self._jobs]
        slots = [job.slot[job.running] for job in named]
        return self._allocations.read(np.concatenate([np.zeros(0, np.intp), *slots]))

    def allocations_since(self, mark: int) -> tuple[Allocations, int]:
        """Read allocations granted by transactions after `mark`; return them and the next mark."""
        return self._allocations.live(since=mark), self._transactions

    def now_ms(self) -> int:
        """Return the time by the store's clock, in milliseconds."""
        return milliseconds(self._clock.now())

    def verify(self) -> Sequence[Violation]:
        """Check every invariant; return those that are broken."""
        broken = broken_invariants(self._machines, self._allocations, self._jobs.values())
        broken += broken_leases(self._machines, self._machine_leases)
        return broken + self._quotas.broken(self._allocations.live())

    def use(self) -> CellUse:
        """Sum up the cell and its queue. Capacity and use are without machines that are gone."""
        state = self._machines.state
        here = state != MachineState.GONE
        capacity = self._machines.capacity[here].sum(axis=0).tolist()
        used = self._machines.used[here].sum(axis=0).tolist()
        parked = [job.park_reason for job in self._parked.values() if job.park_reason]
        return CellUse(
            machines_by_state={
                MachineState(number): int(machines)
                for number, machines in enumerate(np.bincount(state).tolist())
                if machines
            },
            stranded=int(
                np.count_nonzero(np.isin(state, DEAD) & any_kind(self._machines.used > 0))
            ),
            capacity=dict(zip(COLUMNS, capacity, strict=True)),
            used=dict(zip(COLUMNS, used, strict=True)),
            jobs_by_state=Counter(it.state for it in self._jobs.values() if it.parent is None),
            parked_by_reason=Counter(parked),
            live_allocations=len(self._allocations),
        )

    def judged_since(self, mark: int) -> Judged:
        """Return the transactions recorded since a mark: that of the last call, or 0."""
        return judged_since(mark, self._judged, self._judged_before)

    def queue(self) -> list[QueueLine]:
        """Return the queue in sums, most jobs first."""
        return queue_of(list(self._jobs.values()))

    def close(self) -> None:
        """Do nothing: a memory store holds no connection."""

    def _rows(self, transaction: Transaction, others: Ids) -> MachineRows:
        """Return the rows of the machines in the claims, in their alternates and in `others`."""
        claims = transaction.claims
        named = np.concatenate([claims.machine, claims.alternates.machine, others])
        return self._machines.rows(self._machines.named(named))

    def _context(self, transaction: Transaction) -> CommitContext:
        """Return the commit context; a job whose lease is not held gets zeros."""
        held = [self._holds(part.job, part.token) for part in transaction.jobs]
        minimum, placed, precedence = np.zeros((3, len(held)), dtype=np.int64)
        unplaced = np.zeros(len(transaction.claims), dtype=np.bool_)
        for number, part in enumerate(transaction.jobs):
            if held[number]:
                job = self._jobs[part.job]
                minimum[number], placed[number] = job.spec.minimum, job.placed
                precedence[number] = job.spec.precedence
                unplaced[part.claims] = job.unplaced(transaction.claims.task[part.claims])
        own = {part.job for part, is_held in zip(transaction.jobs, held, strict=True) if is_held}
        evicted = transaction.claims.evictions.job
        return CommitContext(
            lease_held=np.array(held, dtype=np.bool_),
            minimum=minimum,
            placed=placed,
            precedence=precedence,
            unplaced=unplaced,
            victims=self._victims(evicted, transaction.jobs, own),
            quota_balances=self._quotas.balances(own | set(evicted.tolist())),
        )

    def _apply(self, transaction: Transaction, outcome: Outcome) -> None:
        number = self._next_transaction()
        self._machines.write(outcome.fresh, number)
        # Evict first and place afterwards, because one task may do both.
        evicted = tasks_by_job(outcome.evicted_job, outcome.evicted_task)
        for job, tasks in evicted.items():
            self._forget(self._jobs[job].slot[tasks], EndCause.EVICTED)
            self._unplace(self._jobs[job], tasks)
        for job, evictor in evictors(transaction, outcome).items():
            self._jobs[job].evicted_by = evictor
            self._jobs[job].evicted_s = self._clock.now()
        for part in transaction.jobs:
            granted = np.flatnonzero(outcome.accepted[part.claims]) + part.claims.start
            if len(granted):
                self._place(part, transaction, outcome, granted, number)
        # Helpers that got no other place end; all other evicted tasks are in the queue again.
        for job, tasks in evicted.items():
            self._end_lost_helpers(self._jobs[job], tasks)

    def _place(
        self,
        part: JobSlice,
        transaction: Transaction,
        outcome: Outcome,
        granted: Index,
        number: int,
    ) -> None:
        job, claims = self._jobs[part.job], transaction.claims
        rows = np.zeros(len(granted), dtype=ROW)
        rows["job"] = job.id
        rows["task"] = claims.task[granted]
        rows["machine"] = outcome.machine[granted]
        rows["amounts"] = claims.shapes[claims.shape_on(outcome.machine)[granted]]
        rows["started_ms"] = milliseconds(self._clock.now())
        rows["duration_ms"] = job.durations_ms(claims.task[granted])
        rows["granted_by"] = number
        self._quotas.charge(rows["job"], rows["amounts"], sign=1)
        job.place(claims.task[granted], self._allocations.add(rows))
        if job.state is State.RUNNING:
            del self._leased[job.id]

    def _evicted_from(self, outcome: Outcome) -> Ids:
        """Return the machine of each task that is to be evicted."""
        evicted = zip(outcome.evicted_job.tolist(), outcome.evicted_task.tolist(), strict=True)
        slots = [self._jobs[job].slot[task] for job, task in evicted]
        return self._allocations.machines(np.array(slots, dtype=np.intp))

    def _record(self, transaction: Transaction, outcome: Outcome, evicted_from: Ids) -> None:
        self._judged[transaction.id] = RecordedTransaction.of(
            transaction, replace(outcome, fresh=NO_ROWS), evicted_from, self._clock.now()
        )
        if len(self._judged) > self._outcomes_kept_max:
            del self._judged[next(iter(self._judged))]
            self._judged_before += 1
