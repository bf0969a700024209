"""What explains one job, in a memory store: its line, and the commits that are on record.

Goal     The reads of `omega.store.inquiries`, on plain records.
Promise  The answers are those of the Postgres store. Time between two commits is their order.
Source   docs/decisions/0054-why-a-job-waits.md.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from uuid import UUID

import numpy as np

from omega.lifecycle.states import FINAL, State
from omega.model.arrays import Ids, Index
from omega.model.claims import JobSlice, Transaction
from omega.model.outcomes import ACCEPTED, Outcome, Verdict
from omega.store.inquiries import (
    CLAIMS_SEARCHED_MAX,
    CLAIMS_TOLD_MAX,
    LINE_MAX,
    TRANSACTIONS_SEARCHED_MAX,
    JobTransaction,
    Line,
    RecordedClaim,
    Rival,
    WaitingJob,
    refusals_of,
    traced,
)
from omega.store.memory.job_records import UNPLACED, JobRecord
from omega.store.memory.jobs import MemoryJobs, milliseconds, status_of


@dataclass(frozen=True, eq=False)
class RecordedTransaction:
    """A transaction that was judged, as it is kept."""

    outcome: Outcome
    """Without rows."""
    evicted_from: Ids
    """The machines of the evicted tasks."""
    scheduler: str
    replica: str
    jobs: tuple[JobSlice, ...]
    task: Index
    at_s: float

    @classmethod
    def of(
        cls, transaction: Transaction, outcome: Outcome, evicted_from: Ids, at_s: float
    ) -> "RecordedTransaction":
        """Return what is kept of a transaction."""
        return cls(
            outcome,
            evicted_from,
            transaction.scheduler,
            transaction.replica,
            transaction.jobs,
            transaction.claims.task,
            at_s,
        )


class MemoryInquiries(MemoryJobs):
    """Reads that explain one job."""

    _judged: dict[UUID, RecordedTransaction]
    """By transaction, oldest first."""

    def waiting_job(self, job: int) -> WaitingJob | None:
        """Return a job as placement sees it; None if it has ended."""
        record = self._jobs.get(job)
        if record is None or record.state in FINAL:
            return None
        placed_task, placed_machine = self._places(record)
        return WaitingJob(
            id=job,
            spec=record.spec,
            unplaced=np.flatnonzero(record.slot == UNPLACED),
            placed_task=placed_task,
            placed_machine=placed_machine,
            placed=record.placed,
            running=record.placed - record.ended,
            waits_ms=max(0, milliseconds(record.not_before_s - self._clock.now())),
            age_ms=milliseconds(self._clock.now() - record.submitted_s),
        )

    def line_before(self, scheduler: str, precedence: int, job: int, *, jobs_max: int) -> Line:
        """Return who is leased before a job of this kind, precedence and number."""
        now_s = self._clock.now()

        def waits(record: JobRecord) -> bool:
            is_pending = record.state is State.PENDING and record.spec.scheduler == scheduler
            return is_pending and record.not_before_s <= now_s

        line = sorted(
            filter(waits, self._jobs.values()), key=lambda it: (-it.spec.precedence, it.id)
        )
        higher = [it for it in line if it.spec.precedence > precedence][:LINE_MAX]
        older = [it for it in line if it.spec.precedence == precedence and it.id < job][:LINE_MAX]
        first = [*higher, *older][:jobs_max]
        return Line(len(higher), len(older), tuple(map(status_of, first)))

    def transactions_of(self, job: int, *, transactions_max: int) -> list[JobTransaction]:
        """Return the newest recorded transactions that claimed for a job, newest first."""
        mine = (
            _attempt(number, judged, part)
            for number, judged in self._newest()
            for part in judged.jobs
            if part.job == job
        )
        attempts = list(islice(mine, transactions_max))
        rivals: Mapping[tuple[UUID, int], Rival] = {
            (attempt.transaction, machine): rival
            for attempt, machine in refusals_of(attempts)
            if (rival := self._rival(attempt.transaction, machine)) is not None
        }
        return traced(attempts, rivals)

    def _newest(self) -> Iterator[tuple[UUID, RecordedTransaction]]:
        claims = 0
        for number, judged in islice(reversed(self._judged.items()), TRANSACTIONS_SEARCHED_MAX):
            if claims >= CLAIMS_SEARCHED_MAX:
                return
            yield number, judged
            claims += len(judged.task)

    def _rival(self, transaction: UUID, machine: int) -> Rival | None:
        """Return who was granted a machine last before this transaction."""
        newest = self._newest()
        for number, _ in newest:
            if number == transaction:
                break
        for number, judged in newest:
            granted = (judged.outcome.machine == machine) & (judged.outcome.verdicts == ACCEPTED)
            for part in judged.jobs:
                if granted[part.claims].any():
                    at_ms = milliseconds(judged.at_s)
                    return Rival(number, judged.scheduler, judged.replica, part.job, at_ms)
        return None


def _attempt(transaction: UUID, judged: RecordedTransaction, part: JobSlice) -> JobTransaction:
    verdicts = judged.outcome.verdicts[part.claims]
    machine, task = judged.outcome.machine[part.claims], judged.task[part.claims]
    refused = verdicts != ACCEPTED
    told = np.argsort(~refused, kind="stable")[:CLAIMS_TOLD_MAX].tolist()
    return JobTransaction(
        transaction,
        judged.scheduler,
        judged.replica,
        milliseconds(judged.at_s),
        granted=int((~refused).sum()),
        refused=int(refused.sum()),
        claims=tuple(
            RecordedClaim(int(task[at]), int(machine[at]), Verdict(int(verdicts[at])))
            for at in told
        ),
    )
