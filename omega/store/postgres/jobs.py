"""The job queue in Postgres: leases, hand-backs, parking, and the status of jobs.

Goal     Pass jobs to the queue's functions and return their answers; nothing is decided here.
Promise  All times that are compared are of the server's clock. A call under a lost lease changes
         nothing.
Source   docs/decisions/0004-the-job-queue.md.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any
from uuid import UUID

import numpy as np
from psycopg.types.json import Jsonb

from omega.errors import BadInput
from omega.lifecycle.states import ParkReason, State
from omega.limits import LIMITS
from omega.model.arrays import Index, integers
from omega.model.jobs import JobSpec, LeasedJob, checked_precedence
from omega.model.lanes import Lane
from omega.model.wire import spec_from_wire, spec_to_wire
from omega.store.leases import HandBack, ParkedJob, Parking
from omega.store.name_pattern import as_like
from omega.store.postgres.connection import Link
from omega.store.postgres.json_text import decoded
from omega.store.postgres.packing import Big
from omega.store.readable import readable_sentence
from omega.store.status import JobStatus

STATUS = """
    SELECT j.id, s.name, j.scheduler, s.tenant, j.precedence, j.state, j.tasks, j.placed, j.ended,
           j.failed, j.minimum, j.attempts, j.fruitless, j.park_reason, j.park_detail,
           (extract(epoch FROM j.submitted_at) * 1000)::bigint,
           (extract(epoch FROM j.first_leased_at) * 1000)::bigint,
           (extract(epoch FROM j.finished_at) * 1000)::bigint,
           CASE WHEN j.state = 'planning' THEN j.lease_holder END,
           j.preemptible, j.evicted_by, (extract(epoch FROM j.evicted_at) * 1000)::bigint,
           j.workers_max, j.parent
      FROM omega.job j JOIN omega.job_spec s ON s.job_id = j.id
"""
_STATUS_FIELDS = tuple(field.name for field in fields(JobStatus))
"""The fields of JobStatus in the order of the columns of `STATUS`."""


class PostgresJobs:
    """Jobs from submission to their end."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def submit(self, specs: Sequence[JobSpec]) -> list[int]:
        """Add jobs, all or none; return their ids in order.

        Raises BadInput for more jobs than one submission may hold.
        """
        if len(specs) > LIMITS.jobs_per_submission_max:
            raise BadInput(
                f"{len(specs)} jobs in one submission; the limit is"
                f" {LIMITS.jobs_per_submission_max}: submit them in slices"
            )
        ((ids,),) = self._link.call(
            "SELECT omega.submit_jobs(%s)", (Jsonb([spec_to_wire(spec) for spec in specs]),)
        )
        return [int(job) for job in ids]

    def lease(
        self,
        scheduler: str,
        *,
        holder: str,
        jobs_max: int,
        lease_ms: int,
        lanes: Mapping[Lane, int] | None = None,
        by_key: bool = False,
    ) -> list[LeasedJob]:
        """Lease up to `jobs_max` pending jobs of a kind, highest precedence first, then oldest.

        A job whose row this program cannot read is parked, and not returned.
        """
        more: tuple[object, ...] = ()
        named = ""
        if by_key:
            named = ", _by_key => true"
        elif lanes is not None:
            named = ", %s::text[], %s::integer[], %s::integer[]"
            more = (
                [lane.tenant for lane in lanes],
                [lane.lane_class for lane in lanes],
                list(lanes.values()),
            )
        rows = self._link.call(
            "SELECT id, token, wire, starts, stops, placed, fruitless, waited_ms, age_ms,"
            " sibling_tasks, sibling_machines FROM omega.lease_jobs(%s, %s, %s, %s"
            f"{named})",
            (scheduler, holder, jobs_max, lease_ms, *more),
        )
        jobs, unreadable = leased_jobs(rows)
        if unreadable:  # otherwise it would stop every scheduler of its kind in turn
            self.park(unreadable)
        return jobs

    def renew(self, leases: Mapping[int, UUID], *, lease_ms: int) -> set[int]:
        """Prolong the leases (token by job); return the jobs whose lease is still held."""
        ((kept,),) = self._link.call(
            "SELECT omega.renew_leases(%s, %s, %s)",
            (Big(list(leases)), list(leases.values()), lease_ms),
        )
        return {int(job) for job in kept}

    def hand_back(self, jobs: Sequence[HandBack]) -> int:
        """Give jobs back; return how many. Jobs whose leases are no longer held are skipped."""
        return self._count(
            "SELECT omega.hand_back_jobs(%s, %s, %s, %s)",
            Big([it.job for it in jobs]),
            [it.token for it in jobs],
            Big([it.delay_ms for it in jobs]),
            [it.progressed for it in jobs],
        )

    def park(self, jobs: Sequence[Parking]) -> int:
        """Park jobs; return how many. Jobs whose leases are no longer held are skipped.

        A detail is stored as `readable_sentence` returns it.
        """
        return self._count(
            "SELECT omega.park_jobs(%s, %s, %s, %s)",
            Big([it.job for it in jobs]),
            [it.token for it in jobs],
            [it.reason.value for it in jobs],
            [readable_sentence(it.detail) for it in jobs],
        )

    def parked(self, scheduler: str, *, jobs_max: int, by_lane: bool = False) -> list[ParkedJob]:
        """Return parked jobs of a kind, highest precedence first, then oldest.

        A job whose row this program cannot read is left out; a later version may read it.
        """
        rows = self._link.call(
            "SELECT id, wire, reason, placed, running, generation, starts, stops,"
            " sibling_tasks, sibling_machines FROM omega.parked_jobs(%s, %s, %s)",
            (scheduler, jobs_max, by_lane),
        )
        return [parked for row in rows if (parked := _parked(row)) is not None]

    def wake(self, jobs: Sequence[int]) -> list[int]:
        """Move parked jobs back to pending; return these, ascending."""
        ((woken,),) = self._link.call("SELECT omega.wake_jobs(%s)", (Big(jobs),))
        return [int(job) for job in woken]

    def rescue(self) -> list[int]:
        """Move jobs whose leases have expired back to pending; return these jobs."""
        ((jobs,),) = self._link.call("SELECT omega.rescue_jobs()")
        return [int(job) for job in jobs]

    def cancel(self, job: int) -> bool:
        """Cancel a job and free its amounts; return False if it has ended or never existed."""
        ((cancelled,),) = self._link.call("SELECT omega.cancel_job(%s)", (job,))
        return bool(cancelled)

    def hold(self, job: int) -> bool:
        """Park a job until `release`; a lease on it is lost. Tasks that run go on."""
        return self._changed("SELECT omega.hold_job(%s)", job)

    def release(self, job: int) -> bool:
        """Move a held job back to pending."""
        return self._changed("SELECT omega.release_job(%s)", job)

    def requeue(self, job: int) -> bool:
        """Have a pending or parked job tried as soon as possible; not a held one."""
        return self._changed("SELECT omega.requeue_job(%s)", job)

    def set_precedence(self, job: int, precedence: int) -> bool:
        """Change the precedence of a pending or parked job that is not elastic, and requeue it."""
        checked = checked_precedence(precedence)
        return self._changed("SELECT omega.set_job_precedence(%s, %s::integer)", job, checked)

    def job(self, job: int) -> JobStatus | None:
        """Return one job's status."""
        rows = self._link.call(STATUS + " WHERE j.id = %s", (job,))
        return status_of(rows[0]) if rows else None

    def jobs(
        self,
        *,
        state: State | None = None,
        scheduler: str | None = None,
        tenant: str | None = None,
        name: str | None = None,
        jobs_max: int = 100,
    ) -> list[JobStatus]:
        """Return jobs, newest first."""
        rows = self._link.call(
            STATUS + " WHERE j.parent IS NULL AND (%(state)s::text IS NULL OR j.state = %(state)s)"
            " AND (%(scheduler)s::text IS NULL OR j.scheduler = %(scheduler)s)"
            " AND (%(tenant)s::text IS NULL OR s.tenant = %(tenant)s)"
            " AND (%(name)s::text IS NULL OR s.name LIKE %(name)s)"
            " ORDER BY j.id DESC LIMIT %(jobs_max)s",
            {
                "tenant": tenant,
                "name": None if name is None else as_like(name),
                "state": state.value if state else None,
                "scheduler": scheduler,
                "jobs_max": jobs_max,
            },
        )
        return [status_of(row) for row in rows]

    def jobs_named(self, name: str, *, jobs_max: int = 100) -> list[JobStatus]:
        """Return jobs of this name, newest first; without those of helpers."""
        rows = self._link.call(
            STATUS + " WHERE s.name = %s AND j.parent IS NULL ORDER BY s.job_id DESC LIMIT %s",
            (name, jobs_max),
        )
        return [status_of(row) for row in rows]

    def helpers(self, job: int, *, jobs_max: int = 100) -> list[JobStatus]:
        """Return the jobs of helpers of an elastic job, newest first."""
        rows = self._link.call(
            STATUS + " WHERE j.parent = %s ORDER BY j.id DESC LIMIT %s", (job, jobs_max)
        )
        return [status_of(row) for row in rows]

    def placements(self, job: int) -> Mapping[int, str]:
        """Return the machine name of each running task of a job."""
        rows = self._link.call(
            "SELECT a.task, p.name FROM omega.allocation a"
            " JOIN omega.machine_profile p ON p.id = a.machine_id"
            " WHERE a.job_id = %s ORDER BY a.task",
            (job,),
        )
        return {int(task): str(name) for task, name in rows}

    def _changed(self, query: str, *parameters: object) -> bool:
        ((changed,),) = self._link.call(query, parameters)
        return bool(changed)

    def _count(self, query: str, *parameters: object) -> int:
        ((count,),) = self._link.call(query, parameters)
        return int(count)


def leased_jobs(rows: Iterable[tuple[Any, ...]]) -> tuple[list[LeasedJob], list[Parking]]:
    """Return leased jobs from their rows, and a Parking for each row that cannot be read."""
    jobs: list[LeasedJob] = []
    unreadable: list[Parking] = []
    for row in rows:
        try:
            jobs.append(_leased(row))
        except BadInput as error:
            job, token = row[:2]
            unreadable.append(Parking(job, token, ParkReason.UNREADABLE, str(error)))
    return jobs, unreadable


def _leased(row: tuple[Any, ...]) -> LeasedJob:
    """Return a job from one row of omega.lease_jobs; raise BadInput if it cannot be read."""
    job, token, wire, starts, stops, placed, fruitless, waited_ms, age_ms, tasks, machines = row
    spec = spec_from_wire(decoded(wire))
    return LeasedJob(
        id=job,
        token=token,
        spec=spec,
        unplaced=tasks_in(starts, stops, spec.tasks),
        placed_task=integers() if tasks is None else tasks,
        placed_machine=integers() if machines is None else machines,
        placed=placed,
        fruitless=fruitless,
        waited_ms=waited_ms,
        age_ms=age_ms,
    )


def _parked(row: tuple[Any, ...]) -> ParkedJob | None:
    """Return a parked job from its row; None if it cannot be read."""
    job, wire, reason, placed, running, generation, starts, stops, tasks, machines = row
    try:
        spec = spec_from_wire(decoded(wire))
        unplaced = tasks_in(starts, stops, spec.tasks)
    except BadInput:
        return None
    return ParkedJob(
        id=job,
        spec=spec,
        reason=ParkReason(reason),
        unplaced=unplaced,
        placed_task=integers() if tasks is None else tasks,
        placed_machine=integers() if machines is None else machines,
        placed=placed,
        running=running,
        generation=generation,
    )


def tasks_in(starts: Index | None, stops: Index | None, tasks: int) -> Index:
    """Return the tasks in a multirange, ascending; `starts` and `stops` bound its ranges.

    None stands for no ranges. Raises BadInput, before memory is allocated, if the job has more
    tasks than the limit, or if a range lies outside its tasks.
    """
    if tasks > LIMITS.tasks_per_job_max:
        raise BadInput(f"the job has {tasks} tasks, more than {LIMITS.tasks_per_job_max}")
    if starts is None or stops is None:
        return np.zeros(0, dtype=np.intp)
    if starts.min() < 0 or stops.max() > tasks:
        raise BadInput(f"the job has {tasks} tasks, and its row names others")
    ranges = zip(starts.tolist(), stops.tolist(), strict=True)
    return np.concatenate([np.arange(start, stop, dtype=np.intp) for start, stop in ranges])


def status_of(row: tuple[Any, ...]) -> JobStatus:
    """Return a job's status from a row of `STATUS`."""
    told = dict(zip(_STATUS_FIELDS, row, strict=True))
    reason = told["park_reason"]
    told["park_reason"] = None if reason is None else ParkReason(reason)
    told["state"] = State(told["state"])
    return JobStatus(**told)
