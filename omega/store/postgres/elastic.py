"""Elastic jobs in Postgres: their helpers, and the activities that they have done.

Goal     Pass calls to `elastic.sql` and return the answers; nothing is decided here.
Promise  A job whose row this program cannot read is left out.
Source   docs/decisions/0043-elastic-jobs.md.
"""

from collections.abc import Iterator
from typing import Any

from omega.errors import BadInput
from omega.model.arrays import Ids, Index
from omega.model.elastic import PhaseProgress
from omega.model.elastic_jobs import ElasticJob
from omega.model.jobs import LeasedJob
from omega.model.wire import phase_from_wire, spec_from_wire
from omega.store.postgres.connection import Link
from omega.store.postgres.jobs import leased_jobs
from omega.store.postgres.json_text import decoded
from omega.store.postgres.packing import Big, Int


class PostgresElasticJobs:
    """Helpers of elastic jobs, and the progress of their phases."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def add_helpers(
        self,
        scheduler: str,
        parent: int,
        tasks: int,
        *,
        precedence: int,
        holder: str,
        lease_ms: int,
    ) -> LeasedJob | None:
        """Make a job of up to so many helpers, of the shape of the parent's tasks, and lease it."""
        rows = self._link.call(
            "SELECT id, token, wire, starts, stops, placed, fruitless, waited_ms, age_ms,"
            " sibling_tasks, sibling_machines FROM omega.add_helpers(%s, %s, %s, %s, %s, %s)",
            (scheduler, holder, parent, tasks, precedence, lease_ms),
        )
        jobs, unreadable = leased_jobs(rows)
        for it in unreadable:  # they are over once they are handed back
            self._link.call(
                "SELECT omega.hand_back_jobs(%s, %s, %s, %s)",
                (Big([it.job]), [it.token], Big([0]), [False]),
            )
        return jobs[0] if jobs else None

    def end_helpers(self, scheduler: str, job: Ids, task: Index) -> int:
        """End those of these tasks that run and help jobs of this kind; return how many."""
        ((ended,),) = self._link.call(
            "SELECT omega.end_helpers(%s, %s, %s)", (scheduler, Big(job), Int(task))
        )
        return int(ended)

    def elastic_jobs(self, scheduler: str, *, jobs_max: int) -> list[ElasticJob]:
        """Return the elastic jobs of a kind that go on, oldest first."""
        rows = self._link.call(
            "SELECT id, wire, runs, helpers, helping, done, busy_ms"
            " FROM omega.elastic_jobs(%s, %s)",
            (scheduler, jobs_max),
        )
        return list(_elastic_jobs(rows))

    def report_phases(self, job: Ids, phase: Index, done: Ids, busy_ms: Ids) -> None:
        """Note the activities that elastic jobs have done, and the time that they took."""
        self._link.call(
            "SELECT omega.report_phases(%s, %s, %s, %s)",
            (Big(job), Int(phase), Big(done), Big(busy_ms)),
        )

    def phases(self, job: Ids) -> list[PhaseProgress]:
        """Return the progress of those of these jobs that have phases or help such a job."""
        rows = self._link.call(
            "SELECT id, elastic, phases, done, busy_ms, helpers FROM omega.read_phases(%s)",
            (Big(job),),
        )
        return [
            PhaseProgress(
                job=number,
                elastic=elastic,
                phases=tuple(map(phase_from_wire, decoded(phases))),
                done=tuple(map(int, done)),
                busy_ms=tuple(map(int, busy_ms)),
                helper_jobs=tuple(map(int, helpers)),
            )
            for number, elastic, phases, done, busy_ms, helpers in rows
        ]


def _elastic_jobs(rows: list[tuple[Any, ...]]) -> Iterator[ElasticJob]:
    for job, wire, runs, helper_jobs, helpers, done, busy_ms in rows:
        try:
            spec = spec_from_wire(decoded(wire))
        except BadInput:
            continue
        if spec.workers is not None and len(spec.workers.phases) == len(done):
            numbers = (tuple(map(int, its)) for its in (helper_jobs, done, busy_ms))
            its_helpers, its_done, its_busy_ms = numbers
            yield ElasticJob(job, spec, runs, its_helpers, helpers, its_done, its_busy_ms)
