"""The job queue of a memory store: submission, leases, parking and waking.

Goal     The job queue of a memory store, on plain records.
Promise  A job has one lease at a time. An expired lease is held until `rescue` ends it, as in
         Postgres.
Source   docs/decisions/0004-the-job-queue.md.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

import numpy as np

from omega.clock import Clock
from omega.errors import BadInput
from omega.lifecycle.states import FINAL, MOVES, OF_SCHEDULERS, ParkReason, State, Trigger
from omega.model.arrays import Ids, Index
from omega.model.jobs import JobSpec, LeasedJob, checked_precedence
from omega.model.lanes import Lane
from omega.store.leases import HandBack, ParkedJob, Parking
from omega.store.memory.allocations import AllocationTable
from omega.store.memory.ended_tasks import EndedTasks
from omega.store.memory.job_records import UNPLACED, JobRecord
from omega.store.memory.machines import MachineTable
from omega.store.memory.pending_queue import PendingQueue
from omega.store.name_pattern import matches
from omega.store.readable import readable_sentence
from omega.store.status import JobStatus


def milliseconds(seconds: float) -> int:
    """Return whole milliseconds."""
    return round(seconds * 1_000)


class MemoryJobs:
    """Jobs from submission to their end; job ids count up from 1 in order of submission."""

    def __init__(
        self,
        clock: Clock,
        machines: MachineTable,
        allocations: AllocationTable,
        new_token: Callable[[], UUID],
    ) -> None:
        self._clock = clock
        self._machines = machines
        self._allocations = allocations
        self._ended = EndedTasks()
        self._new_token = new_token
        self._jobs: dict[int, JobRecord] = {}
        self._queues: dict[str, PendingQueue] = defaultdict(PendingQueue)
        self._leased: dict[int, JobRecord] = {}
        self._parked: dict[int, JobRecord] = {}
        self._helpers: dict[int, list[int]] = {}
        """By elastic job, all jobs that were made to help it; ascending."""

    def submit(self, specs: Sequence[JobSpec]) -> list[int]:
        """Add jobs, all or none; return their ids in order."""
        first, now_s = len(self._jobs) + 1, self._clock.now()
        for number, spec in enumerate(specs, start=first):
            self._jobs[number] = job = JobRecord.submitted(number, spec, now_s)
            self._queue(job)
        return list(range(first, first + len(specs)))

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
        """Lease up to `jobs_max` pending jobs of a kind, highest precedence first, then oldest."""
        if lanes is not None and min(lanes.values(), default=0) < 0:
            raise BadInput("bad lease: a negative number of jobs of a lane")
        now_s = self._clock.now()
        queue = self._queues[scheduler]
        if by_key:
            jobs = queue.take_by_key(jobs_max, now_s)
        elif lanes is None:
            jobs = queue.take(jobs_max, now_s)
        else:
            jobs = queue.take_from(lanes, jobs_max, now_s)
        return [self._leased_to(holder, job, now_s + lease_ms / 1_000) for job in jobs]

    def renew(self, leases: Mapping[int, UUID], *, lease_ms: int) -> set[int]:
        """Prolong the leases (token by job); return the jobs whose lease is still held."""
        held = {number for number, token in leases.items() if self._holds(number, token)}
        for number in held:
            self._jobs[number].lease_ends_s = self._clock.now() + lease_ms / 1_000
        return held

    def hand_back(self, jobs: Sequence[HandBack]) -> int:
        """Give jobs back; return how many. Jobs whose leases are no longer held are skipped."""
        held = [back for back in jobs if self._holds(back.job, back.token)]
        for back in held:
            job = self._end_lease(back.job, Trigger.HAND_BACK)
            job.fruitless = 0 if back.progressed else job.fruitless + 1
            if job.state is State.PENDING:
                self._queue(job, delay_ms=back.delay_ms)
        return len(held)

    def park(self, jobs: Sequence[Parking]) -> int:
        """Park jobs; return how many. Jobs whose leases are no longer held are skipped."""
        if any(parking.reason not in OF_SCHEDULERS for parking in jobs):
            raise BadInput("bad reason: only a user holds a job")
        held = [parking for parking in jobs if self._holds(parking.job, parking.token)]
        for parking in held:
            job = self._end_lease(parking.job, Trigger.PARK)
            if job.state is not State.PARKED:
                continue
            job.park_reason = parking.reason
            job.park_detail = readable_sentence(parking.detail)
            job.parked_at = self._machines.generation
            self._parked[job.id] = job
        return len(held)

    def parked(self, scheduler: str, *, jobs_max: int, by_lane: bool = False) -> list[ParkedJob]:
        """Return parked jobs of a kind, highest precedence first, then oldest."""
        of_kind = [job for job in self._parked.values() if job.spec.scheduler == scheduler]
        not_held = [job for job in of_kind if job.park_reason is not ParkReason.HELD]
        not_held.sort(key=lambda job: (-job.spec.precedence, job.id))
        if by_lane:
            lanes = len({Lane.of(job.spec) for job in not_held})
            not_held = _first_of_each_lane(not_held, max(1, jobs_max // max(1, lanes)))
        return [self._as_parked(job) for job in not_held[:jobs_max]]

    def wake(self, jobs: Sequence[int]) -> list[int]:
        """Move parked jobs back to pending; return these, ascending."""
        woken = [
            self._parked.pop(number)
            for number in dict.fromkeys(jobs)
            if number in self._parked and self._parked[number].park_reason is not ParkReason.HELD
        ]
        for job in woken:
            job.move(Trigger.WAKE)
            self._queue(job)
        return sorted(job.id for job in woken)

    def hold(self, job: int) -> bool:
        """Park a job until `release`; a lease on it is lost. Tasks that run go on."""
        record = self._jobs.get(job)
        if (
            record is None
            or record.parent is not None
            or (record.state, Trigger.HOLD) not in MOVES
            or record.placed == record.spec.tasks
            or record.park_reason is ParkReason.HELD
        ):
            return False
        self._leased.pop(job, None)
        record.move(Trigger.HOLD)
        record.park_reason, record.park_detail = ParkReason.HELD, "a user holds it"
        record.parked_at = self._machines.generation
        self._parked[job] = record
        return True

    def release(self, job: int) -> bool:
        """Move a held job back to pending."""
        record = self._jobs.get(job)
        if record is None or record.park_reason is not ParkReason.HELD:
            return False
        self._back_in_line(record, Trigger.RELEASE)
        return True

    def requeue(self, job: int) -> bool:
        """Have a pending or parked job tried as soon as possible; not a held one."""
        record = self._jobs.get(job)
        if record is None or not _can_requeue(record):
            return False
        self._back_in_line(record, Trigger.REQUEUE)
        return True

    def set_precedence(self, job: int, precedence: int) -> bool:
        """Change the precedence of a pending or parked job that is not elastic, and requeue it."""
        checked = checked_precedence(precedence)
        record = self._jobs.get(job)
        is_held = record is not None and record.park_reason is ParkReason.HELD
        if record is None or record.spec.workers is not None:
            return False
        if not is_held and not _can_requeue(record):
            return False
        record.spec = replace(record.spec, precedence=checked)
        record.precedence_set_s, record.fruitless = self._clock.now(), 0
        if not is_held:
            self._back_in_line(record, Trigger.REQUEUE)
        return True

    def _back_in_line(self, job: JobRecord, trigger: Trigger) -> None:
        self._parked.pop(job.id, None)
        job.move(trigger)
        job.fruitless = 0
        self._queue(job)

    def rescue(self) -> list[int]:
        """Move jobs whose leases have expired back to pending; return these jobs."""
        now_s = self._clock.now()
        lost = sorted(job.id for job in self._leased.values() if job.lease_ends_s <= now_s)
        for number in lost:
            job = self._end_lease(number, Trigger.LEASE_EXPIRED)
            if job.state is State.PENDING:
                self._queue(job)
        return lost

    def _recall(
        self, scheduler: str, jobs: Sequence[int] | None, *, holder: str, before: str, lease_ms: int
    ) -> list[LeasedJob]:
        """Lease the running jobs of a kind among these, ascending by id; their tasks go on."""
        until_s = self._clock.now() + lease_ms / 1_000
        named = self._jobs if jobs is None else sorted(set(jobs))
        known = [self._jobs[number] for number in named if number in self._jobs]
        return [
            self._leased_to(holder, job, until_s, Trigger.RECALL)
            for job in known
            if job.spec.scheduler == scheduler
            and job.parent is None
            and (job.state is State.RUNNING or (job.token is not None and job.holder == before))
        ]

    def job(self, job: int) -> JobStatus | None:
        """Return one job's status."""
        return status_of(self._jobs[job]) if job in self._jobs else None

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
        wanted = (
            job
            for job in reversed(self._jobs.values())
            if job.parent is None
            and state in (None, job.state)
            and scheduler in (None, job.spec.scheduler)
            and tenant in (None, job.spec.tenant)
            and (name is None or matches(job.spec.name, name))
        )
        return [status_of(job) for job, _ in zip(wanted, range(jobs_max), strict=False)]

    def jobs_named(self, name: str, *, jobs_max: int = 100) -> list[JobStatus]:
        """Return jobs of this name, newest first; without those of helpers."""
        newest = reversed(self._jobs.values())
        wanted = (job for job in newest if job.parent is None and job.spec.name == name)
        return [status_of(job) for job, _ in zip(wanted, range(jobs_max), strict=False)]

    def helpers(self, job: int, *, jobs_max: int = 100) -> list[JobStatus]:
        """Return the jobs of helpers of an elastic job, newest first."""
        newest = list(reversed(self._helpers.get(job, [])))
        return [status_of(self._jobs[number]) for number in newest[:jobs_max]]

    def placements(self, job: int) -> Mapping[int, str]:
        """Return the machine name of each running task of a job."""
        if job not in self._jobs:
            return {}
        record = self._jobs[job]
        machines = self._allocations.machines(record.slot[record.running])
        return {
            task: self._machines.names[machine - 1]
            for task, machine in zip(record.running.tolist(), machines.tolist(), strict=True)
        }

    def _queue(self, job: JobRecord, *, delay_ms: int = 0) -> None:
        now_s = self._clock.now()
        job.not_before_s = now_s + delay_ms / 1_000
        self._queues[job.spec.scheduler].join(job, job.not_before_s, now_s)

    def _holds(self, number: int, token: UUID) -> bool:
        return number in self._leased and self._leased[number].token == token

    def _end_lease(self, number: int, trigger: Trigger) -> JobRecord:
        job = self._leased.pop(number)
        if job.parent is not None:
            job.give_up(np.flatnonzero(job.slot == UNPLACED), self._clock.now())
            if job.state in FINAL:
                return job
        job.move(Trigger.GO_ON if job.placed == job.spec.tasks else trigger)
        return job

    def _live_helpers(self, parent: int) -> list[JobRecord]:
        """Return the jobs of helpers of a job that have not ended."""
        jobs = (self._jobs[number] for number in self._helpers.get(parent, ()))
        return [job for job in jobs if job.state not in FINAL]

    def _leased_to(
        self, holder: str, job: JobRecord, until_s: float, trigger: Trigger = Trigger.TAKE
    ) -> LeasedJob:
        now_s = self._clock.now()
        first, age_ms = job.first_leased_s is None, milliseconds(now_s - job.submitted_s)
        job.move(trigger)
        job.token, job.holder, job.lease_ends_s = self._new_token(), holder, until_s
        job.attempts += trigger is Trigger.TAKE
        if first:
            job.first_leased_s = now_s
        self._leased[job.id] = job
        placed_task, placed_machine = self._places(job, everywhere=trigger is Trigger.RECALL)
        return LeasedJob(
            id=job.id,
            token=job.token,
            spec=job.spec,
            unplaced=np.flatnonzero(job.slot == UNPLACED),
            placed_task=placed_task,
            placed_machine=placed_machine,
            placed=job.placed,
            fruitless=job.fruitless,
            waited_ms=age_ms if first else None,
            age_ms=age_ms,
        )

    def _as_parked(self, job: JobRecord) -> ParkedJob:
        assert job.park_reason is not None
        placed_task, placed_machine = self._places(job)
        return ParkedJob(
            id=job.id,
            spec=job.spec,
            reason=job.park_reason,
            unplaced=np.flatnonzero(job.slot == UNPLACED),
            placed_task=placed_task,
            placed_machine=placed_machine,
            placed=job.placed,
            running=job.placed - job.ended,
            generation=job.parked_at,
        )

    def _places(self, job: JobRecord, *, everywhere: bool = False) -> tuple[Index, Ids]:
        """Return which tasks run on which machines, where placing the rest depends on it."""
        groups = job.spec.groups
        needs_siblings = any(group.spread_over or group.different_machines for group in groups)
        tasks = job.running if needs_siblings or everywhere else job.running[:0]
        return tasks, self._allocations.machines(job.slot[tasks])


def _first_of_each_lane(jobs: Sequence[JobRecord], lane_max: int) -> list[JobRecord]:
    """Return the first `lane_max` jobs of each lane, in the order in which they were given."""
    taken: Counter[Lane] = Counter()
    first: list[JobRecord] = []
    for job in jobs:
        lane = Lane.of(job.spec)
        taken[lane] += 1
        if taken[lane] <= lane_max:
            first.append(job)
    return first


def _can_requeue(job: JobRecord) -> bool:
    """Return whether a job is pending or parked, is not held, and is nobody's helper."""
    is_waiting = (job.state, Trigger.REQUEUE) in MOVES
    return is_waiting and job.park_reason is not ParkReason.HELD and job.parent is None


def status_of(job: JobRecord) -> JobStatus:
    """Return what a user may know about a job."""
    return JobStatus(
        id=job.id,
        name=job.spec.name,
        scheduler=job.spec.scheduler,
        tenant=job.spec.tenant,
        precedence=job.spec.precedence,
        state=job.state,
        tasks=job.spec.tasks,
        placed=job.placed,
        ended=job.ended,
        failed=job.failed,
        minimum=job.spec.minimum,
        attempts=job.attempts,
        fruitless=job.fruitless,
        park_reason=job.park_reason,
        park_detail=job.park_detail,
        submitted_ms=milliseconds(job.submitted_s),
        first_leased_ms=None if job.first_leased_s is None else milliseconds(job.first_leased_s),
        finished_ms=None if job.finished_s is None else milliseconds(job.finished_s),
        lease_holder=job.holder,
        preemptible=job.spec.preemptible,
        evicted_by=job.evicted_by,
        evicted_ms=None if job.evicted_s is None else milliseconds(job.evicted_s),
        workers_max=None if job.spec.workers is None else job.spec.workers.at_most,
        parent=job.parent,
    )
