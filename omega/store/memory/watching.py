"""What those who watch a cell read from a memory store.

Goal     The memory store's record of what was judged, and its queue in sums.
Promise  The record keeps the latest transactions. A mark is how many were recorded before.
Source   omega/store/watching.py.
"""

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from omega.lifecycle.states import ParkReason, State
from omega.limits import LIMITS
from omega.model.arrays import integers
from omega.model.claims import Transaction
from omega.model.machines import MachineRows
from omega.model.outcomes import Outcome
from omega.store.memory.job_records import JobRecord
from omega.store.watching import Judged, QueueLine

WAITING: Final = (State.PENDING, State.PLANNING, State.PARKED)


@dataclass(frozen=True, eq=False)
class _Record:
    transaction: Transaction
    outcome: Outcome


class JudgedLog:
    """The latest transactions and their outcomes."""

    def __init__(self) -> None:
        self._latest: deque[_Record] = deque(maxlen=LIMITS.judged_per_read_max + 1)
        self._recorded = 0

    def note(self, transaction: Transaction, outcome: Outcome) -> None:
        """Record a transaction that was judged."""
        self._latest.append(_Record(transaction, replace(outcome, fresh=MachineRows.none())))
        self._recorded += 1

    def since(self, mark: int) -> Judged:
        """Return what was recorded since a mark, at most what one read may return."""
        new = max(0, self._recorded - mark)
        kept: list[_Record] = []
        claims = 0
        for it in list(self._latest)[::-1][: min(new, LIMITS.judged_per_read_max)]:
            if kept and claims >= LIMITS.judged_claims_max:
                break
            kept.append(it)
            claims += len(it.outcome.verdicts)
        kept.reverse()
        return Judged(
            id=tuple(it.transaction.id for it in kept),
            scheduler=tuple(it.transaction.scheduler for it in kept),
            replica=tuple(it.transaction.replica for it in kept),
            ends=np.cumsum([len(it.outcome.verdicts) for it in kept]).astype(np.intp),
            machine=np.concatenate([integers(), *(it.outcome.machine for it in kept)]),
            verdict=np.concatenate([np.zeros(0, np.int8), *(it.outcome.verdicts for it in kept)]),
            mark=self._recorded,
            are_all=len(kept) == new,
        )


def queue_of(jobs: Sequence[JobRecord]) -> list[QueueLine]:
    """Return the jobs that wait, in sums."""
    lines: dict[tuple[str, str, State, ParkReason | None], list[JobRecord]] = defaultdict(list)
    for job in jobs:
        if job.state in WAITING and job.parent is None:
            lines[job.spec.scheduler, job.spec.tenant, job.state, job.park_reason].append(job)
    summed = [
        QueueLine(
            scheduler=scheduler,
            tenant=tenant,
            state=state,
            park_reason=reason,
            jobs=len(its),
            unplaced=sum(job.spec.tasks - job.placed for job in its),
            oldest_ms=round(min(job.submitted_s for job in its) * 1_000),
        )
        for (scheduler, tenant, state, reason), its in lines.items()
    ]
    summed.sort(key=lambda line: (-line.jobs, line.scheduler, line.tenant, line.state.value))
    return summed[: LIMITS.queue_lines_max]
