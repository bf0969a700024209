"""What those who watch a cell read from a memory store.

Goal     The memory store's record of what was judged, and its queue in sums.
Promise  The record keeps the latest transactions. A mark is how many were recorded before.
Source   omega/store/watching.py.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import islice
from typing import Final
from uuid import UUID

import numpy as np

from omega.lifecycle.states import ParkReason, State
from omega.limits import LIMITS
from omega.model.arrays import integers
from omega.store.memory.inquiries import RecordedTransaction
from omega.store.memory.job_records import JobRecord
from omega.store.watching import Judged, QueueLine

WAITING: Final = (State.PENDING, State.PLANNING, State.PARKED)


def judged_since(mark: int, recorded: dict[UUID, RecordedTransaction], before: int) -> Judged:
    """Return the transactions since a mark, at most what one read may return.

    `recorded` are those that are kept, oldest first; so many more were recorded `before` them.
    """
    count = before + len(recorded)
    new = max(0, count - mark)
    kept: list[RecordedTransaction] = []
    ids: list[UUID] = []
    claims = 0
    for number, it in islice(reversed(recorded.items()), min(new, LIMITS.judged_per_read_max)):
        if kept and claims >= LIMITS.judged_claims_max:
            break
        ids.append(number)
        kept.append(it)
        claims += len(it.outcome.verdicts)
    kept.reverse()
    return Judged(
        id=tuple(reversed(ids)),
        scheduler=tuple(it.scheduler for it in kept),
        replica=tuple(it.replica for it in kept),
        ends=np.cumsum([len(it.outcome.verdicts) for it in kept]).astype(np.intp),
        machine=np.concatenate([integers(), *(it.outcome.machine for it in kept)]),
        verdict=np.concatenate([np.zeros(0, np.int8), *(it.outcome.verdicts for it in kept)]),
        mark=count,
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
