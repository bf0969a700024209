"""What those who watch a cell read from Postgres.

Goal     Pass the answers on; nothing is decided here.
Promise  A read of transactions uses the index of what is new; one of the queue, the indexes of jobs
         that wait. Neither reads the history.
Source   functions/watching.sql; docs/decisions/0052-the-page.md.
"""

from typing import Final

import numpy as np

from omega.lifecycle.states import ParkReason, State
from omega.limits import LIMITS
from omega.store.postgres.connection import Link
from omega.store.watching import Judged, QueueLine

# One part for each partial index: of a list of states the planner may make a scan of all jobs.
_WAITING: Final = " UNION ALL ".join(
    "SELECT id, scheduler, state, park_reason, tasks - placed AS unplaced, submitted_at"
    f" FROM omega.job WHERE state = '{state.value}' AND parent IS NULL"
    for state in (State.PENDING, State.PLANNING, State.PARKED)
)
_QUEUE: Final = f"""
    SELECT j.scheduler, s.tenant, j.state::text, j.park_reason::text, count(*),
           sum(j.unplaced)::bigint, (extract(epoch FROM min(j.submitted_at)) * 1000)::bigint
      FROM ({_WAITING}) AS j JOIN omega.job_spec s ON s.job_id = j.id
     GROUP BY j.scheduler, s.tenant, j.state, j.park_reason
     ORDER BY count(*) DESC, j.scheduler, s.tenant, j.state, j.park_reason
     LIMIT %s
"""


class PostgresWatching:
    """The calls of those who watch a cell."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def judged_since(self, mark: int) -> Judged:
        """Return the transactions recorded since a mark: that of the last call, or 0."""
        ((next_mark, are_all, ids, schedulers, replicas, ends, machines, verdicts),) = (
            self._link.call(
                "SELECT mark, are_all, ids, schedulers, replicas, ends, machines, verdicts"
                " FROM omega.read_judged(%s)",
                (mark,),
            )
        )
        return Judged(
            id=tuple(ids),
            scheduler=tuple(schedulers),
            replica=tuple(replicas),
            ends=ends.astype(np.intp),
            machine=machines,
            verdict=verdicts.astype(np.int8),
            mark=next_mark,
            are_all=are_all,
        )

    def queue(self) -> list[QueueLine]:
        """Return the queue in sums, most jobs first."""
        rows = self._link.call(_QUEUE, (LIMITS.queue_lines_max,))
        return [
            QueueLine(
                scheduler=scheduler,
                tenant=tenant,
                state=State(state),
                park_reason=None if reason is None else ParkReason(reason),
                jobs=jobs,
                unplaced=unplaced,
                oldest_ms=oldest_ms,
            )
            for scheduler, tenant, state, reason, jobs, unplaced, oldest_ms in rows
        ]
