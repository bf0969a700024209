"""The pending jobs of one kind of scheduler, in a memory store, lane by lane.

Goal     Take the first jobs of a queue, or of some of its lanes, without a look at the others.
Promise  A job is taken once each time it joins. Jobs are taken by precedence, then age; in an order
         of start deadlines by precedence, then by their keys.
Source   docs/decisions/0004-the-job-queue.md, 0058-the-order-of-the-queue.md,
         0059-start-deadlines.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush, heapreplace

from omega.lifecycle.states import State
from omega.model.lanes import Lane
from omega.store.memory.job_records import JobRecord


@dataclass(eq=False)
class LaneQueue:
    """The pending jobs of one lane; or those of all lanes, by their keys.

    A job that is cancelled or held while queued stays in the queue until `first` removes it. A job
    that joins again has several entries, of which the last counts.
    """

    by_key: bool = False
    ready: list[tuple[int, int, int, int, JobRecord]] = field(default_factory=list)
    """A heap of (-precedence, key or 0, id, how often the job had joined, job)."""
    delayed: list[tuple[float, int, int, JobRecord]] = field(default_factory=list)
    """A heap of (when the job can be taken, in seconds; id; how often it had joined; job)."""

    def join(self, job: JobRecord, not_before_s: float, now_s: float) -> None:
        """Queue a job; it can be taken from `not_before_s` on."""
        assert job.state is State.PENDING
        job.joined += 1
        if not_before_s > now_s:
            heappush(self.delayed, (not_before_s, job.id, job.joined, job))
        else:
            heappush(self.ready, self._entry(job, job.joined))

    def first(self, now_s: float) -> JobRecord | None:
        """Return the job that would be taken next; None if there is none."""
        while self.delayed and self.delayed[0][0] <= now_s:
            _, _, joined, job = heappop(self.delayed)
            heappush(self.ready, self._entry(job, joined))
        while self.ready:
            _, _, _, joined, job = self.ready[0]
            if job.state is State.PENDING and joined == job.joined:
                return job
            heappop(self.ready)
        return None

    def take(self, jobs_max: int, now_s: float) -> list[JobRecord]:
        """Remove and return up to `jobs_max` jobs that can be taken now."""
        taken: list[JobRecord] = []
        while len(taken) < jobs_max and (job := self.first(now_s)) is not None:
            heappop(self.ready)
            taken.append(job)
        return taken

    def waiting(self) -> list[JobRecord]:
        """Return the jobs that wait, each once, in no order."""
        entries = [(joined, job) for _, _, _, joined, job in self.ready]
        entries += [(joined, job) for _, _, joined, job in self.delayed]
        return [
            job for joined, job in entries if job.state is State.PENDING and joined == job.joined
        ]

    def _entry(self, job: JobRecord, joined: int) -> tuple[int, int, int, int, JobRecord]:
        return -job.spec.precedence, job.order_key if self.by_key else 0, job.id, joined, job


class PendingQueue:
    """The pending jobs of one kind of scheduler."""

    def __init__(self) -> None:
        self._lanes: dict[Lane, LaneQueue] = {}
        self._by_key: LaneQueue | None = None
        """All jobs, once they are taken by their keys; there are no lanes then."""

    def join(self, job: JobRecord, not_before_s: float, now_s: float) -> None:
        """Queue a job; it can be taken from `not_before_s` on."""
        if self._by_key is not None:
            self._by_key.join(job, not_before_s, now_s)
            return
        lane = Lane.of(job.spec)
        if lane not in self._lanes:
            self._lanes[lane] = LaneQueue()
        self._lanes[lane].join(job, not_before_s, now_s)

    def take(self, jobs_max: int, now_s: float) -> list[JobRecord]:
        """Remove and return up to `jobs_max` jobs: the highest precedence, then the oldest."""
        self._into_lanes(now_s)
        if len(self._lanes) == 1:
            (only,) = self._lanes.values()
            return only.take(jobs_max, now_s)
        heads = [
            (*_key(job), queue)
            for queue in self._lanes.values()
            if (job := queue.first(now_s)) is not None
        ]
        heapify(heads)
        taken: list[JobRecord] = []
        while heads and len(taken) < jobs_max:
            queue = heads[0][2]
            taken += queue.take(1, now_s)
            job = queue.first(now_s)
            if job is None:
                heappop(heads)
            else:
                heapreplace(heads, (*_key(job), queue))
        return taken

    def take_from(self, lanes: Mapping[Lane, int], jobs_max: int, now_s: float) -> list[JobRecord]:
        """Remove and return up to as many jobs of each lane as `lanes` says, `jobs_max` in all."""
        self._into_lanes(now_s)
        taken: list[JobRecord] = []
        for lane, jobs in lanes.items():
            if lane in self._lanes:
                taken += self._lanes[lane].take(min(jobs, jobs_max - len(taken)), now_s)
        return sorted(taken, key=_key)

    def heads(self, now_s: float) -> list[tuple[Lane, JobRecord]]:
        """Return the first job of each lane that has one that can be taken now, by lane.

        Lanes without jobs are dropped.
        """
        self._into_lanes(now_s)
        for lane in [lane for lane, queue in self._lanes.items() if not _has_jobs(queue, now_s)]:
            del self._lanes[lane]
        heads = ((lane, queue.first(now_s)) for lane, queue in sorted(self._lanes.items()))
        return [(lane, job) for lane, job in heads if job is not None]

    def take_by_key(self, jobs_max: int, now_s: float) -> list[JobRecord]:
        """Remove and return up to `jobs_max` jobs: the highest precedence, then smallest keys."""
        if self._by_key is None:
            jobs = [job for lane in self._lanes.values() for job in lane.waiting()]
            self._lanes.clear()
            self._by_key = LaneQueue(by_key=True)
            for job in jobs:
                self._by_key.join(job, job.not_before_s, now_s)
        return self._by_key.take(jobs_max, now_s)

    def sort_anew(self, now_s: float) -> None:
        """Note that keys of jobs that wait have changed."""
        self._into_lanes(now_s)

    def _into_lanes(self, now_s: float) -> None:
        if self._by_key is not None:
            jobs, self._by_key = self._by_key.waiting(), None
            for job in jobs:
                self.join(job, job.not_before_s, now_s)


def _key(job: JobRecord) -> tuple[int, int]:
    return -job.spec.precedence, job.id


def _has_jobs(queue: LaneQueue, now_s: float) -> bool:
    return queue.first(now_s) is not None or bool(queue.delayed)
