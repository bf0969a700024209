"""One job's record in a memory store.

Goal     Every change of a job's state goes through the one table of moves.
Promise  A state changes only by a move of the table.
Source   docs/decisions/0004-the-job-queue.md.
"""

from dataclasses import dataclass, field
from uuid import UUID

import numpy as np

from omega.lifecycle.states import MOVES, ParkReason, State, Trigger
from omega.model.arrays import Ids, Index, Mask, integers
from omega.model.elastic import Phase
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
    """For each task the slot of its allocation, or UNPLACED, or OVER: (tasks,)."""
    state: State = State.PENDING
    placed: int = 0
    """How many tasks have a place or have ended."""
    ended: int = 0
    failed: int = 0
    """Tasks that have ended because their programs failed."""
    attempts: int = 0
    fruitless: int = 0
    token: UUID | None = None
    holder: str | None = None
    lease_ends_s: float = 0.0
    not_before_s: float = 0.0
    """While it is pending: when it may be leased."""
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
    evicted_by: int | None = None
    """The job for which a task of this one was evicted last ..."""
    evicted_s: float | None = None
    """... and when."""
    parent: int | None = None
    """The elastic job that its tasks help."""
    of_phases: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By phase, the activities done and the time that they took, as far as was reported."""
    joined: int = 0
    """How often it joined the queue of its kind."""
    precedence_set_s: float | None = None
    """When a user changed its precedence last."""
    lost_s: float | None = None
    """When a task last lost its place, for whatever reason."""
    order_key: int = 0
    """By which it is leased in an order of start deadlines ..."""
    pipeline: int | None = None
    """... and the pipeline of which it is a stage."""

    @classmethod
    def submitted(
        cls, number: int, spec: JobSpec, now_s: float, *, parent: int | None = None
    ) -> "JobRecord":
        """Return the record of a job that was submitted now."""
        slots = np.full(spec.tasks, UNPLACED, dtype=np.intp)
        return cls(number, spec, now_s, slots, parent=parent, order_key=round(now_s * 1_000))

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The phases of an elastic job; none of another one."""
        return () if self.spec.workers is None else self.spec.workers.phases

    @property
    def lacking(self) -> int:
        """How many more tasks must be placed to reach the gang's minimum."""
        return max(0, self.spec.minimum - self.placed)

    @property
    def running(self) -> Index:
        """The indexes of the running tasks."""
        return np.flatnonzero(self.slot >= 0)

    def move(self, trigger: Trigger) -> None:
        """Change the state by the table of moves; lease and park reason end with the old state."""
        assert (self.state, trigger) in MOVES, f"job {self.id}: {trigger} while {self.state}"
        before, self.state = self.state, MOVES[self.state, trigger]
        if self.state is before:
            return
        self.token = self.holder = None
        self.park_reason = self.park_detail = None

    def finish(self, trigger: Trigger, now_s: float) -> None:
        """Move to a final state; the slots of the tasks are dropped.

        A job of which a task has failed does not succeed.
        """
        self.move(Trigger.FAIL if trigger is Trigger.END_ALL and self.failed else trigger)
        self.finished_s = now_s
        self.slot = self.slot[:0]

    def unplaced(self, task: Index) -> Mask:
        """Return for each index whether the job has such a task and it has no place."""
        known = (task >= 0) & (task < len(self.slot))
        known[known] = self.slot[task[known]] == UNPLACED
        return known

    def durations_ms(self, task: Index) -> Ids:
        """Return the duration of each task; -1 if it runs until it is cancelled."""
        groups = self.spec.groups
        edges = np.cumsum([group.tasks for group in groups])
        lasts = integers([-1 if g.duration_ms is None else g.duration_ms for g in groups])
        return lasts[np.searchsorted(edges, task, side="right")]

    def place(self, task: Index, slot: Index) -> None:
        """Record the slots of newly placed tasks; move the job to running when all are placed."""
        self.slot[task] = slot
        self.placed += len(task)
        if self.placed == self.spec.tasks:
            self.move(Trigger.PLACE_ALL)

    def unplace(self, task: Index) -> None:
        """Record that running tasks have lost their places.

        Those of helpers that get no other place are to be ended by `give_up`.
        """
        assert (self.slot[task] >= 0).all()
        self.slot[task] = UNPLACED
        self.placed -= len(task)
        if self.parent is None:
            self.move(Trigger.EVICT)

    def give_up(self, task: Index, now_s: float) -> None:
        """Record that those of these tasks that have no place are over, as helpers' tasks are."""
        assert self.parent is not None
        lost = task[self.slot[task] == UNPLACED]
        self.slot[lost] = OVER
        self.placed += len(lost)
        self.ended += len(lost)
        if self.ended == self.spec.tasks:
            self.finish(Trigger.END_ALL, now_s)

    def end(self, task: int, now_s: float) -> int | None:
        """Record that a task has ended; return its slot, or None if it was not running.

        The job ends with its last task.
        """
        if not 0 <= task < len(self.slot) or self.slot[task] < 0:
            return None
        slot = int(self.slot[task])
        self.slot[task] = OVER
        self.ended += 1
        if self.ended == self.spec.tasks:
            self.finish(Trigger.END_ALL, now_s)
        return slot
