"""What is on record of one job or one machine, in a memory store.

Goal     The reads of `omega.store.stories`, on plain records.
Promise  The answers are those of the Postgres store. Only as many ended tasks are told as
         `EndedTasks` keeps.
Source   docs/decisions/0054-why-a-job-waits.md.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final
from uuid import UUID

import numpy as np

from omega.model.arrays import integers
from omega.model.outcomes import ACCEPTED, Verdict
from omega.store.memory.ended_tasks import EndCause
from omega.store.memory.inquiries import MemoryInquiries, RecordedTransaction
from omega.store.memory.jobs import milliseconds
from omega.store.stories import (
    EVICTIONS_MAX,
    RUNS_MAX,
    TRANSACTIONS_MAX,
    VISIT_CLAIMS_MAX,
    VISITS_MAX,
    JobRecords,
    MachineRecords,
    PastRun,
    RecordedEviction,
    RecordedVisit,
    RunEnd,
    Searched,
    machines_of,
)

ENDS: Final = {
    EndCause.ENDED: RunEnd.ENDED,
    EndCause.EVICTED: RunEnd.EVICTED,
    EndCause.LOST: RunEnd.LOST,
}


class MemoryStories(MemoryInquiries):
    """What is on record of one job or one machine."""

    def job_records(self, job: int) -> JobRecords:
        """Return what is on record of a job; nothing of one that never was."""
        transactions = tuple(self.transactions_of(job, transactions_max=TRANSACTIONS_MAX))
        evictions = self._evictions_told(lambda it: it.job == job)
        runs = self._runs("job", job)
        names = self._machines.snapshot(0).names
        return JobRecords(
            transactions=transactions,
            evictions=evictions,
            runs=tuple(runs[:RUNS_MAX]),
            are_all_runs=len(runs) <= RUNS_MAX,
            searched=self._searched(),
            names={
                machine: names[machine - 1]
                for machine in machines_of(transactions, evictions, tuple(runs))
                if 1 <= machine <= len(names)
            },
        )

    def machine_records(self, machine: int) -> MachineRecords:
        """Return what is on record of a machine; nothing of one that never was."""
        runs = self._runs("machine", machine)
        return MachineRecords(
            visits=tuple(islice(self._visits(machine), VISITS_MAX)),
            evictions=self._evictions_told(lambda it: it.machine == machine),
            runs=tuple(runs[:RUNS_MAX]),
            are_all_runs=len(runs) <= RUNS_MAX,
            searched=self._searched(),
        )

    def _searched(self) -> Searched:
        newest = [judged for _, judged in self._newest()]
        oldest_ms = milliseconds(newest[-1].at_s) if newest else None
        return Searched(len(newest), oldest_ms, are_all=len(newest) == len(self._judged))

    def _visits(self, machine: int) -> Iterator[RecordedVisit]:
        claims = 0
        for number, judged in self._newest():
            visit = _visit(number, judged, machine)
            if visit.jobs:
                yield visit
            claims += len(visit.jobs)
            if claims >= VISIT_CLAIMS_MAX:
                return

    def _evictions_told(
        self, is_wanted: Callable[[RecordedEviction], bool]
    ) -> tuple[RecordedEviction, ...]:
        found = (it for number, judged in self._newest() for it in _evictions(number, judged))
        return tuple(islice(filter(is_wanted, found), EVICTIONS_MAX))

    def _runs(self, column: str, subject: int) -> list[PastRun]:
        """Return all runs, the newest first."""
        live = self._allocations.live()
        mine = np.flatnonzero(getattr(live, column) == subject)
        columns = (live.job, live.task, live.machine, live.started_ms)
        runs = [
            PastRun(job, task, machine, began, None, None)
            for job, task, machine, began in zip(
                *(each[mine].tolist() for each in columns), strict=True
            )
        ]
        runs.sort(key=lambda it: (-it.started_ms, it.job, it.task))
        past = self._ended.rows
        past = past[past[column] == subject]
        over = [
            PastRun(job, task, machine, began, ended, ENDS[EndCause(cause)])
            for job, task, machine, began, ended, cause in past.tolist()
        ]
        over.sort(key=lambda it: (-(it.ended_ms or 0), -it.started_ms, it.job, it.task))
        return runs + over


def _visit(number: UUID, judged: RecordedTransaction, machine: int) -> RecordedVisit:
    """Return a transaction's claims on a machine; without jobs if it has none."""
    outcome = judged.outcome
    at = np.flatnonzero(outcome.machine == machine)
    of = _claimants(judged)
    return RecordedVisit(
        number,
        judged.scheduler,
        judged.replica,
        milliseconds(judged.at_s),
        tuple(of[at].tolist()),
        tuple(judged.task[at].tolist()),
        tuple(Verdict(it) for it in outcome.verdicts[at].tolist()),
    )


def _evictions(number: UUID, judged: RecordedTransaction) -> Iterator[RecordedEviction]:
    """Yield what a transaction evicted, by job and task."""
    outcome = judged.outcome
    granted, of = outcome.verdicts == ACCEPTED, _claimants(judged)
    columns = (outcome.evicted_job, outcome.evicted_task, judged.evicted_from)
    for job, task, machine in sorted(zip(*(each.tolist() for each in columns), strict=True)):
        there = np.flatnonzero(granted & (of == job) & (judged.task == task))
        yield RecordedEviction(
            number,
            judged.scheduler,
            judged.replica,
            milliseconds(judged.at_s),
            job,
            task,
            machine,
            int(outcome.machine[there[0]]) if len(there) else None,
            tuple(sorted(set(of[granted & (outcome.machine == machine)].tolist()))),
        )


def _claimants(judged: RecordedTransaction) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the job of each claim."""
    sizes = [part.claims.stop - part.claims.start for part in judged.jobs]
    return np.repeat(integers([part.job for part in judged.jobs]), sizes)
