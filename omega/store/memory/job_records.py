"""One job as a memory store knows it, and the line in which jobs wait for a scheduler.

Goal     Take a job through its life by the one table of moves.
Promise  No state is written but by a move that the table holds; a job stands in line at most once.
Source   docs/decisions/0004-the-job-queue.md.
"""

from dataclasses import dataclass, field
from heapq import heappop, heappush
from uuid import UUID

import numpy as np

from omega.lifecycle.states import MOVES, ParkReason, State, Trigger
from omega.model.arrays import Ids, Index, Mask, integers
from omega.model.jobs import JobSpec

UNPLACED = -1
OVER = -2


@dataclass(eq=False, slots=True)
class JobRecord:
    """One job. Times are seconds of the store's clock."""

    id: int
    spec: JobSpec
    submitted_s: float
    slot: Index
    """For each task the slot of its live allocation, or UNPLACED, or OVER."""
    state: State = State.PENDING
    placed: int = 0
    """Tasks that have a place or are over."""
    ended: int = 0
    attempts: int = 0
    fruitless: int = 0
    token: UUID | None = None
    holder: str | None = None
    lease_ends_s: float = 0.0
    first_leased_s: float | None = None
    finished_s: float | None = None
    park_reason: ParkReason | None = None
    park_detail: str | None = None
    parked_at: int = 0
    """The cell's generation when the job was parked."""
    steps: int = 0
    """Made by a job in steps, as far as was reported ..."""
    run_ms: int = 0
    """... and the time for which it has run."""

    @classmethod
    def submitted(cls, number: int, spec: JobSpec, now_s: float) -> "JobRecord":
        """Return a job as it is when it enters the queue."""
        return cls(number, spec, now_s, np.full(spec.tasks, UNPLACED, dtype=np.intp))

    @property
    def lacking(self) -> int:
        """Grants that the gang still needs to stand."""
        return max(0, self.spec.minimum - self.placed)

    @property
    def running(self) -> Index:
        """The tasks that run now."""
        return np.flatnonzero(self.slot >= 0)

    def move(self, trigger: Trigger) -> None:
        """Change the state as the table says; lease and parking reason end with the old state."""
        assert (self.state, trigger) in MOVES, f"job {self.id}: {trigger} while {self.state}"
        before, self.state = self.state, MOVES[self.state, trigger]
        if self.state is before:
            return
        self.token = self.holder = None
        self.park_reason = self.park_detail = None

    def finish(self, trigger: Trigger, now_s: float) -> None:
        """Move to a final state, where single tasks are of no interest any more."""
        self.move(trigger)
        self.finished_s = now_s
        self.slot = self.slot[:0]

    def unplaced(self, task: Index) -> Mask:
        """Say for each task whether the job has it and it has no place yet."""
        known = (task >= 0) & (task < len(self.slot))
        known[known] = self.slot[task[known]] == UNPLACED
        return known

    def durations_ms(self, task: Index) -> Ids:
        """Return how long each task is to run; -1 for until cancelled."""
        groups = self.spec.groups
        edges = np.cumsum([group.tasks for group in groups])
        lasts = integers([-1 if g.duration_ms is None else g.duration_ms for g in groups])
        return lasts[np.searchsorted(edges, task, side="right")]

    def place(self, task: Index, slot: Index) -> None:
        """Note where tasks run; with the last of them placed, the job runs."""
        self.slot[task] = slot
        self.placed += len(task)
        if self.placed == self.spec.tasks:
            self.move(Trigger.PLACE_ALL)

    def unplace(self, task: Index) -> None:
        """Note that running tasks have lost their places."""
        assert (self.slot[task] >= 0).all()
        self.slot[task] = UNPLACED
        self.placed -= len(task)
        self.move(Trigger.EVICT)

    def end(self, task: int, now_s: float) -> int | None:
        """Note that a task is over; return the slot it had, or None if it was not running.

        With the last of them over, the job is.
        """
        if not 0 <= task < len(self.slot) or self.slot[task] < 0:
            return None
        slot = int(self.slot[task])
        self.slot[task] = OVER
        self.ended += 1
        if self.ended == self.spec.tasks:
            self.finish(Trigger.END_ALL, now_s)
        return slot


@dataclass(eq=False)
class PendingQueue:
    """The pending jobs of one kind of scheduler: highest precedence first, then oldest.

    A job that was cancelled in line stays there until it is passed over.
    """

    ready: list[tuple[int, int, JobRecord]] = field(default_factory=list)
    delayed: list[tuple[float, int, JobRecord]] = field(default_factory=list)

    def join(self, job: JobRecord, not_before_s: float, now_s: float) -> None:
        """Put a job in line; nobody takes it before its time."""
        assert job.state is State.PENDING
        if not_before_s > now_s:
            heappush(self.delayed, (not_before_s, job.id, job))
        else:
            heappush(self.ready, (-job.spec.precedence, job.id, job))

    def take(self, jobs_max: int, now_s: float) -> list[JobRecord]:
        """Take the jobs whose turn it is out of the line."""
        while self.delayed and self.delayed[0][0] <= now_s:
            job = heappop(self.delayed)[-1]
            heappush(self.ready, (-job.spec.precedence, job.id, job))
        taken: list[JobRecord] = []
        while self.ready and len(taken) < jobs_max:
            job = heappop(self.ready)[-1]
            if job.state is State.PENDING:
                taken.append(job)
        return taken
