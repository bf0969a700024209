"""The commit of a plan in Postgres: one call of one function.

Goal     Pass a job and its places on, and return what came of it.
Promise  One transaction: all of it is there afterwards, or nothing.
Source   functions/planned.sql; docs/decisions/0053-plans-before-submission.md.
"""

import numpy as np
from psycopg.types.json import Jsonb

from omega.model.wire import spec_to_wire
from omega.store.planned import HOLDER, PlannedJob, PlannedOutcome
from omega.store.postgres.connection import Link
from omega.store.postgres.packing import Big, Int, unpack_machines


class PostgresPlans:
    """The commit of plans."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def submit_planned(self, planned: PlannedJob) -> PlannedOutcome:
        """Submit a job and commit its claims, all by the sequence rule, or change nothing."""
        claims, evictions = planned.claims, planned.claims.evictions
        ((job, verdicts, evicted_jobs, evicted_tasks, fresh),) = self._link.call(
            "SELECT job, verdicts, evicted_jobs, evicted_tasks, fresh FROM omega.submit_planned("
            "%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
            (
                Jsonb(spec_to_wire(planned.spec)),
                planned.id,
                HOLDER,
                Int(claims.task),
                Int(claims.machine),
                Big(claims.seen),
                Int(claims.shape + 1),
                Int(claims.shapes.ravel()),
                Int(evictions.claim + 1),
                Big(evictions.job),
                Int(evictions.task),
                Big([job for job, _ in planned.evicted]),
                Int([task for _, task in planned.evicted]),
            ),
        )
        evicted = zip(evicted_jobs.tolist(), evicted_tasks.tolist(), strict=True)
        return PlannedOutcome(
            None if job is None else int(job),
            verdicts.astype(np.int8),
            tuple(sorted(evicted)),
            unpack_machines(fresh),
        )
