"""A recorder: the calls of one process on a cell, with their answers and times.

Goal     Give the checker of omega.testing.serial a history that it can try to explain.
Promise  Every answered commit and end of tasks is recorded, with times of a clock that all
         processes of a machine share. A commit that is repeated after a lost answer is one event,
         because its calls have the same id. An end of tasks has no id: without an answer it is an
         event of unknown effect and time, and a repetition is another event.
Source   histories of operations with their real time: Herlihy and Wing, Linearizability (1990).
"""

import math
import os
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from uuid import UUID

from omega.clock import Clock
from omega.model.allocations import Allocations
from omega.model.arrays import Ids, Index
from omega.model.claims import Transaction
from omega.model.jobs import PRECEDENCE_GAP, LeasedJob
from omega.model.machines import MachineRows
from omega.model.outcomes import Outcome
from omega.store.protocols import Store
from omega.testing.pass_through import PassThrough

_T = TypeVar("_T")

NEVER = math.inf
"""The time of an answer that never came."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Judged:
    """A transaction and its outcome."""

    worker: str
    started: float
    """In seconds of a clock common to all workers; nothing was applied before this time ..."""
    answered: float
    """... and nothing after this time."""
    transaction: Transaction
    outcome: Outcome
    asked_again: bool = False
    """Whether an earlier answer was lost, so that rows may be later than verdicts."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Ended:
    """A report that tasks have ended."""

    worker: str
    started: float
    answered: float
    """NEVER if there was no answer: the report takes effect at any later time, or not at all."""
    job: Ids
    task: Index
    ended: int | None
    """How many of the tasks ran; None if there was no answer."""

    def __post_init__(self) -> None:
        assert (self.ended is None) == (self.answered == NEVER)


Event = Judged | Ended


@dataclass(frozen=True, eq=False)
class Moment:
    """A cell while nobody works on it."""

    rows: MachineRows
    allocations: Allocations
    precedence_gap: int = PRECEDENCE_GAP

    @classmethod
    def of(cls, store: Store) -> "Moment":
        """Read a store while nobody works on it."""
        return cls(store.snapshot().rows, store.allocations(), store.precedence_gap())


@dataclass(frozen=True, eq=False)
class History:
    """All changes of a cell between two moments at which nobody worked on it."""

    before: Moment
    jobs: tuple[LeasedJob, ...]
    """Every job that is named, as leased at the start; no lease is taken after that."""
    workers: tuple[tuple[Event, ...], ...]
    """Each worker's events in their order; a worker makes one call at a time."""
    after: Moment

    def __len__(self) -> int:
        return sum(map(len, self.workers))


class Recorder(PassThrough):
    """A store that passes calls on, and records those that change the cell with their answers.

    `keep` is called with each event when it is answered.
    """

    def __init__(
        self, store: Store, worker: str, clock: Clock, keep: Callable[[Event], object]
    ) -> None:
        super().__init__(store)
        self._worker = worker
        self._clock = clock
        self._keep = keep
        self._asked: dict[UUID, float] = {}
        """By transaction that was not answered yet, when it was first committed."""

    def commit(self, transaction: Transaction) -> Outcome:
        """Commit; record the event when it is answered."""
        asked_again = transaction.id in self._asked
        started = self._asked.setdefault(transaction.id, self._clock.now())
        outcome = super().commit(transaction)
        del self._asked[transaction.id]
        self._keep(
            Judged(
                worker=self._worker,
                started=started,
                answered=self._clock.now(),
                transaction=transaction,
                outcome=outcome,
                asked_again=asked_again,
            )
        )
        return outcome

    def end_tasks(self, job: Ids, task: Index, started_ms: Ids | None = None) -> int:
        """End tasks; record the event. `started_ms` is not supported: it could not be explained."""
        assert started_ms is None, "answers to commits do not tell when an allocation began"
        started, ended = self._clock.now(), None
        try:
            ended = super().end_tasks(job, task)
        finally:
            self._keep(
                Ended(
                    worker=self._worker,
                    started=started,
                    answered=NEVER if ended is None else self._clock.now(),
                    job=job,
                    task=task,
                    ended=ended,
                )
            )
        return ended


@contextmanager
def keeping_in(path: Path) -> Iterator[Callable[[Event], None]]:
    """Yield a `keep` that appends to a file at once, so that events survive a kill."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        yield lambda event: _write(file, pickle.dumps(event))
    finally:
        os.close(file)


def kept_in(path: Path) -> list[Event]:
    """Return the events in a file, in order; a last one that was cut off by a kill is skipped."""
    events: list[Event] = []
    if not path.exists():
        return events
    with path.open("rb") as file:
        while True:
            try:
                events.append(pickle.load(file))
            except (EOFError, pickle.UnpicklingError):
                return events


def places(allocations: Allocations) -> dict[tuple[int, int], int]:
    """Return the machine of each running task, by job and task."""
    columns = (allocations.job, allocations.task, allocations.machine)
    job, task, machine = (column.tolist() for column in columns)
    return dict(zip(zip(job, task, strict=True), machine, strict=True))


def grants(event: Judged) -> dict[tuple[int, int], int]:
    """Return the machine of each task that an outcome grants, by job and task."""
    claims, outcome = event.transaction.claims, event.outcome
    return {
        (part.job, int(claims.task[at])): int(outcome.machine[at])
        for part in event.transaction.jobs
        for at in range(part.claims.start, part.claims.stop)
        if outcome.accepted[at]
    }


def lost_grants(events: Sequence[Event], allocations: Allocations) -> list[str]:
    """Return the reported grants that are missing, given that no task has ended or been evicted."""
    there = places(allocations)
    return [
        f"job {job} task {task}: granted on machine {machine}, is on {there.get((job, task))}"
        for event in events
        if isinstance(event, Judged)
        for (job, task), machine in grants(event).items()
        if there.get((job, task)) != machine
    ]


def _write(file: int, data: bytes) -> None:
    while data:
        data = data[os.write(file, data) :]
