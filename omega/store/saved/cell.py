"""A cell as it was saved: what it held at one moment, and what it did in the time before.

Goal     One value for whatever copies a live cell: restore, and simulations of what has happened.
Promise  Frozen. All of it was read at one moment, `taken_ms`. Jobs and tasks are ascending by id.
         What follows from the rest (what is used, how many tasks are placed) is not held.
Source   docs/decisions/0055-snapshots-and-what-if.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from omega.lifecycle.states import FINAL, ParkReason, State
from omega.model.arrays import Amounts, Ids, Index, Sequences, States, freeze, positions
from omega.model.claims import ConflictRule
from omega.model.jobs import JobSpec
from omega.model.machines import Machines
from omega.model.quotas import Quota
from omega.ordering.tenants import Tenant

PARTS: Final = 10
"""Parts of the saved time for which conflicts are counted apart, to tell how much they vary."""
AT_WORK_MS: Final = 10_000
"""A process that has reported within this time is at work."""
ENDED: Final = "ended"
"""The cause of tasks that ended by themselves or were cancelled. Tasks with other causes lost their
places: they were evicted, lost with a machine, or no longer fitted a machine that shrank."""


@dataclass(frozen=True, eq=False)
class SavedMachines:
    """Machines with their ids, states and counts; ascending by id."""

    id: Ids
    machines: Machines
    state: States
    sequence: Sequences
    revision: Sequences
    address: tuple[str | None, ...]
    notice: Amounts
    """What may be used above the capacity until the notice ends: (machines, kinds)."""
    notice_ends_ms: tuple[int | None, ...]
    """None without a notice."""

    def __post_init__(self) -> None:
        columns = (self.machines, self.state, self.sequence, self.revision, self.notice)
        assert all(len(column) == len(self.id) for column in columns)
        assert len(self.address) == len(self.notice_ends_ms) == len(self.id)
        freeze(self.id, self.state, self.sequence, self.revision, self.notice)

    def __len__(self) -> int:
        return len(self.id)


@dataclass(frozen=True, kw_only=True)
class SavedJob:
    """A job: one that goes on, or one that ended in the time that was saved."""

    id: int
    spec: JobSpec
    state: State
    unplaced: tuple[tuple[int, int], ...]
    """Tasks without a place, as ascending ranges: (first, one beyond the last)."""
    failed: int
    attempts: int
    fruitless: int
    park_reason: ParkReason | None
    park_detail: str | None
    is_parked_for_now: bool
    """Whether the cell's machines are those of when it was parked."""
    submitted_ms: int
    first_leased_ms: int | None
    not_before_ms: int
    finished_ms: int | None
    evicted_by: int | None
    evicted_ms: int | None
    precedence_set_ms: int | None
    parent: int | None
    progress: tuple[int, int] | None
    """Of a job in steps: the steps made, and the milliseconds that it has run."""
    phases: tuple[tuple[int, int], ...]
    """Of a job with phases: for each, the activities done and the milliseconds they took."""

    @property
    def goes_on(self) -> bool:
        """Whether it has not ended."""
        return self.state not in FINAL

    @property
    def placed(self) -> int:
        """Tasks that run or have ended."""
        return self.spec.tasks - sum(stop - first for first, stop in self.unplaced)


@dataclass(frozen=True, eq=False)
class RunningTasks:
    """Tasks that run, ascending by job and task."""

    job: Ids
    task: Index
    machine: Ids
    started_ms: Ids
    amounts: Amounts

    def __post_init__(self) -> None:
        freeze(self.job, self.task, self.machine, self.started_ms, self.amounts)

    def __len__(self) -> int:
        return len(self.job)


@dataclass(frozen=True, eq=False)
class PastTasks:
    """Tasks that ended, or lost their places, in the time that was saved, in order of their end."""

    job: Ids
    task: Index
    machine: Ids
    started_ms: Ids
    ended_ms: Ids
    cause: tuple[str, ...]

    def __post_init__(self) -> None:
        freeze(self.job, self.task, self.machine, self.started_ms, self.ended_ms)

    def __len__(self) -> int:
        return len(self.job)


@dataclass(frozen=True, kw_only=True)
class SavedScheduler:
    """What one replica did under one conflict rule in the time that was saved."""

    kind: str
    replica: str
    rule: ConflictRule
    transactions: int
    job_transactions: int
    """Jobs in transactions ..."""
    job_transactions_conflicted: int
    """... and those of which a claim was refused for more than a quota."""
    claims: int
    claims_refused: int
    last_ms: int
    """When its last transaction was committed."""
    parts: tuple[tuple[int, int], ...] = ()
    """The job transactions, and how many of them conflicted, in each of PARTS equal parts of the
    time until the cell's last commit; empty if it is not known."""


@dataclass(frozen=True, kw_only=True)
class SavedProcess:
    """The last report of a process."""

    kind: str
    replica: str
    seen_ms_ago: int
    facts: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class SavedCell:
    """A whole cell, at one moment."""

    taken_ms: int
    """The moment, in milliseconds since the epoch by the store's clock."""
    begin_ms: int
    """From when on jobs, ends of tasks and commits are held."""
    precedence_gap: int
    machines: SavedMachines
    quotas: tuple[Quota, ...]
    tenants: tuple[Tenant, ...]
    """Those whose weights and parents were set, ascending by name."""
    jobs: tuple[SavedJob, ...]
    running: RunningTasks
    past: PastTasks
    schedulers: tuple[SavedScheduler, ...]
    processes: tuple[SavedProcess, ...]

    @property
    def used(self) -> Amounts:
        """What tasks take of each machine, as a new array (machines, kinds)."""
        used = np.zeros_like(self.machines.machines.capacity)
        np.add.at(used, positions(self.machines.id, self.running.machine), self.running.amounts)
        return used

    @property
    def is_at_work(self) -> bool:
        """Whether a scheduler was at work when it was saved."""
        kinds = {one.kind for one in self.schedulers}
        return any(
            process.seen_ms_ago < AT_WORK_MS and process.kind in kinds for process in self.processes
        )

    @property
    def until_ms(self) -> int:
        """When what was saved of the past ends.

        That is the moment itself or, if no scheduler was at work by then, the last thing that
        happened.
        """
        if self.is_at_work:
            return self.taken_ms
        happened = [one.last_ms for one in self.schedulers]
        if len(self.past):
            happened.append(int(self.past.ended_ms[-1]))
        return min(self.taken_ms, max([self.begin_ms, *happened]))
