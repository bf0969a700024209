"""The jobs that a process has leased, and the calls that lease, hand back and park them.

Goal     Record in one place which leases a process holds, so that every one is ended.
Promise  A lease ends in one of four ways: the job is placed, handed back or parked, or the lease is
         lost. Each of them removes the record.
Source   docs/decisions/0004-the-job-queue.md.
"""

import threading
from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

from omega.cell.open_room import OpenRoom
from omega.events import JobParked, JobsLeased, JobsRecalled, Sink
from omega.framework.deadline_queue import DeadlineQueue
from omega.framework.effects import Effects, called
from omega.framework.fair_queue import FairQueue
from omega.framework.job_attempt import JobResult
from omega.framework.waking import Waker
from omega.model.jobs import LeasedJob
from omega.model.lanes import Lane
from omega.store.leases import HandBack, Parking


class Leases:
    """The leases that a process holds. Its main loop and its heartbeat share this record."""

    def __init__(self) -> None:
        self._tokens: dict[int, UUID] = {}
        self._lock = threading.Lock()

    def take(self, jobs: Sequence[LeasedJob]) -> None:
        """Record these jobs' leases."""
        with self._lock:
            self._tokens.update((job.id, job.token) for job in jobs)

    def drop(self, jobs: Iterable[int]) -> None:
        """Remove the records of these jobs' leases; jobs without one are ignored."""
        with self._lock:
            for job in jobs:
                self._tokens.pop(job, None)

    def lose(self, leases: Mapping[int, UUID]) -> None:
        """Remove the records of these leases, but not of newer leases of the same jobs."""
        with self._lock:
            for job, token in leases.items():
                if self._tokens.get(job) == token:
                    del self._tokens[job]

    def holds(self, job: LeasedJob) -> bool:
        """Return whether the job's lease is held, by this record."""
        with self._lock:
            return self._tokens.get(job.id) == job.token

    def held(self) -> dict[int, UUID]:
        """Return the tokens of all leases held, by job id."""
        with self._lock:
            return dict(self._tokens)


class Leasing:
    """Leases jobs of one kind of scheduler, hands them back and parks them."""

    def __init__(
        self,
        kind: str,
        holder: str,
        lease_ms: int,
        sink: Sink,
        waker: Waker,
        fair: FairQueue | None = None,
        deadlines: DeadlineQueue | None = None,
    ) -> None:
        """Without `fair` and `deadlines`, jobs are leased by precedence, then age."""
        self.leases = Leases()
        self.kind = kind
        self.holder = holder
        self.lease_ms = lease_ms
        self._sink = sink
        self._waker = waker
        self._fair = fair
        self._deadlines = deadlines

    def lease(self, jobs_max: int) -> Effects[Sequence[LeasedJob]]:
        """Lease up to `jobs_max` jobs: the next ones of the order, in this order."""
        lanes: dict[Lane, int] | None = None
        if self._fair is not None:
            lanes = yield from self._fair.lanes(jobs_max)
            if not lanes:
                return []
        if self._deadlines is not None:
            jobs_max = yield from self._deadlines.jobs_max(jobs_max)
            if not jobs_max:
                return []
        jobs: Sequence[LeasedJob] = yield from called(
            "lease",
            lambda store: store.lease(
                self.kind,
                holder=self.holder,
                jobs_max=jobs_max,
                lease_ms=self.lease_ms,
                lanes=lanes,
                by_key=self._deadlines is not None,
            ),
        )
        if self._deadlines is not None:
            self._deadlines.took(jobs)
        if self._fair is not None and lanes is not None:
            jobs = self._fair.took(lanes, jobs)
        if jobs:
            self.leases.take(jobs)
            waits_s = tuple(job.waited_ms / 1_000 for job in jobs if job.waited_ms is not None)
            self._sink(JobsLeased(len(jobs), waits_s))
        return jobs

    def note(self, results: Sequence[JobResult]) -> None:
        """Tell the fair order, if there is one, what became of leased jobs."""
        if self._fair is not None:
            self._fair.note(results)

    def recall(self, round_: int, known: Sequence[int] | None) -> Effects[Sequence[LeasedJob]]:
        """Lease those of the `known` jobs that run, for a round that this process has begun.

        If `known` is None, all running jobs are leased. See `RoundStore.recall`.
        """
        jobs = yield from called(
            "recall",
            lambda store: store.recall(self.kind, round_, known, lease_ms=self.lease_ms),
        )
        self.leases.take(jobs)
        if jobs:
            self._sink(JobsRecalled(len(jobs)))
        return jobs

    def hand_back(self, backs: Sequence[HandBack]) -> Effects[None]:
        """Hand jobs back to the queue."""
        if backs:
            yield from called("hand_back", lambda store: store.hand_back(backs))
            self.leases.drop(back.job for back in backs)

    def park(self, parkings: Sequence[Parking], rooms: Sequence[OpenRoom] = ()) -> Effects[None]:
        """Park jobs; pass the reasons, and the rooms in which they found no place, to the waker."""
        if not parkings:
            return
        yield from called("park", lambda store: store.park(parkings))
        self._waker.note([parking.reason for parking in parkings], rooms)
        for parking in parkings:
            self._sink(JobParked(parking.job, parking.reason.value))
        self.leases.drop(parking.job for parking in parkings)
