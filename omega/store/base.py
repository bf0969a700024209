"""What a store must do: the cell's state, the job queue, and what processes say of themselves.

Goal     One set of protocols that the loop, the nodes and the command line are written against.
Promise  Every implementation passes the contracts in `omega.testing.contracts`.
Source   docs/decisions/0002-one-store-protocol.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from omega.cell.partition import WHOLE, Parts
from omega.lifecycle.states import ParkReason, State
from omega.model.allocations import Allocations
from omega.model.arrays import Amounts, Ids, Index
from omega.model.claims import Transaction
from omega.model.jobs import JobSpec, LeasedJob
from omega.model.machines import Changes, Machines, MachineState, Snapshot
from omega.model.outcomes import Outcome
from omega.model.quotas import Quota, QuotaScope, QuotaUse
from omega.model.training import TrainingProgress
from omega.store.rounds import RoundBook


@dataclass(frozen=True, eq=False)
class Notice:
    """A machine on which more is used than counts, and how much longer that is tolerated."""

    machine: int
    excess: Amounts
    """What is used above the capacity, now."""
    ends_in_ms: int
    """By the store's clock; below 0 once it is over."""


@dataclass(frozen=True)
class HandBack:
    """A job given back to the queue with tasks left."""

    job: int
    token: UUID
    delay_ms: int
    """How long nobody should take it."""
    progressed: bool
    """Whether the attempt placed anything; resets the count of fruitless attempts."""


@dataclass(frozen=True)
class Parking:
    """A job set aside until something changes that could help."""

    job: int
    token: UUID
    reason: ParkReason
    detail: str
    """One sentence for the user that names what is missing."""


@dataclass(frozen=True, eq=False)
class ParkedJob:
    """A parked job, with enough of it to tell whether it would fit now."""

    id: int
    spec: JobSpec
    reason: ParkReason
    unplaced: Index
    placed_task: Index
    """Tasks that run now, where placement must know it, as in a lease ..."""
    placed_machine: Ids
    """... and the id of the machine of each."""
    placed: int
    running: int
    """Of those, how many are not over."""
    generation: int
    """The cell's generation when it was parked: permanent reasons hold until it moves."""


@dataclass(frozen=True)
class JobStatus:
    """What a user may know about a job."""

    id: int
    name: str
    scheduler: str
    tenant: str
    precedence: int
    state: State
    tasks: int
    placed: int
    """Tasks that have a place or are over."""
    ended: int
    minimum: int
    attempts: int
    fruitless: int
    park_reason: ParkReason | None
    park_detail: str | None
    submitted_ms: int
    first_leased_ms: int | None
    finished_ms: int | None
    lease_holder: str | None


@dataclass(frozen=True)
class ProcessReport:
    """What a process last said of itself."""

    kind: str
    replica: str
    pid: int
    started_ms: int
    seen_ms_ago: int
    facts: Mapping[str, object]


@dataclass(frozen=True)
class CellUse:
    """The cell in sums."""

    machines_by_state: Mapping[MachineState, int]
    stranded: int
    """Machines that are down or gone and still in use: `lose_tasks` is due."""
    capacity: Mapping[str, int]
    """Of machines that have not left, as is `used`."""
    used: Mapping[str, int]
    jobs_by_state: Mapping[State, int]
    parked_by_reason: Mapping[ParkReason, int]
    live_allocations: int

    @property
    def machines(self) -> int:
        """Machines that have not left."""
        by_state = self.machines_by_state.items()
        return sum(number for state, number in by_state if state is not MachineState.GONE)

    @property
    def open(self) -> int:
        """Machines that take claims."""
        return self.machines_by_state.get(MachineState.OPEN, 0)

    @property
    def jobs_waiting(self) -> int:
        """Jobs that a scheduler has still to decide on, or decides on now."""
        return sum(self.jobs_by_state.get(state, 0) for state in (State.PENDING, State.PLANNING))


@dataclass(frozen=True)
class Violation:
    """An invariant that does not hold, and where."""

    invariant: str
    subject: str
    detail: str


class CellStore(Protocol):
    """The cell's machines and allocations."""

    def add_machines(self, machines: Machines) -> Ids:
        """Add machines; return their ids in order. Raises BadInput for a name that is taken."""
        ...

    def snapshot(self) -> Snapshot:
        """Read the whole cell."""
        ...

    def changes_since(self, mark: int, parts: Parts = WHOLE) -> Changes:
        """Read the rows changed by transactions that were not over at `mark`, in these parts."""
        ...

    def commit(self, transaction: Transaction) -> Outcome:
        """Judge the claims against the cell as it is now and apply those that stand, atomically.

        The same id again gives the recorded outcome, but with rows as they are now, and applies
        nothing. Raises
        StoreUnavailable if no answer came: the transaction may or may not have been applied, and
        committing the same one again tells.
        """
        ...

    def end_tasks(self, job: Ids, task: Index, started_ms: Ids | None = None) -> int:
        """End the live ones among these tasks, free their room; return how many were live.

        `started_ms` tells which allocation of the task is meant, as it was read: one that has
        been evicted and placed anew since is left alone.
        """
        ...

    def report_progress(self, job: Ids, steps: Ids, run_ms: Ids) -> None:
        """Note how far training jobs have come since they were submitted.

        Less than is on record changes nothing. Jobs that are over, or train nothing, are passed
        over.
        """
        ...

    def training(self, job: Ids) -> TrainingProgress:
        """Read of those of these jobs that train how far they have come."""
        ...

    def set_state(self, machine: Ids, state: MachineState) -> int:
        """Open, drain, take down or remove machines; return how many changed.

        What runs on a machine that is down or gone is still counted until `lose_tasks`. Gone is
        for good. Raises BadInput for a machine that never was.
        """
        ...

    def lose_tasks(self, machine: Ids) -> int:
        """End by force what runs on those of the machines that are down or gone; return how many.

        The tasks are unplaced again, and with them the gangs that fall below their minimum.
        """
        ...

    def resize(self, machine: int, capacity: Amounts, *, notice_ms: int) -> None:
        """Change a machine's capacity, for claims at once.

        Use above the new capacity is tolerated for `notice_ms`, and longer until somebody calls
        `enforce_notices`. Raises BadInput for a machine that never was or is gone.
        """
        ...

    def enforce_notices(self) -> int:
        """End by force what no longer fits where a notice has run out; return how many tasks.

        Lowest precedence first, then those started last. Notices that are no longer needed end.
        """
        ...

    def set_quota(self, quota: Quota) -> None:
        """Limit what the jobs of a tenant or of a kind of scheduler hold, or change the limits.

        Judged with every commit from now on. What is held above a limit goes on; nothing is added.
        """
        ...

    def remove_quota(self, scope: QuotaScope, name: str) -> bool:
        """Lift a quota; False if there was none."""
        ...

    def quotas(self) -> list[QuotaUse]:
        """Return all quotas with what is left of each, by scope and name."""
        ...

    def notices(self) -> list[Notice]:
        """Return the notices of machines that are used above their capacity, ascending by id."""
        ...

    def allocations(self) -> Allocations:
        """Read all live allocations."""
        ...

    def allocations_on(self, machine: Ids) -> Allocations:
        """Read the live allocations on these machines."""
        ...

    def allocations_since(self, mark: int) -> tuple[Allocations, int]:
        """Read live allocations granted by transactions not over at `mark`, and the next mark."""
        ...

    def now_ms(self) -> int:
        """Return the time by the store's clock, in milliseconds since the epoch."""
        ...

    def verify(self) -> Sequence[Violation]:
        """Check every invariant; return those that are broken."""
        ...


class JobQueue(Protocol):
    """Jobs from submission to their end."""

    def submit(self, specs: Sequence[JobSpec]) -> list[int]:
        """Add jobs, all or none; return their ids in order."""
        ...

    def lease(
        self, scheduler: str, *, holder: str, jobs_max: int, lease_ms: int
    ) -> list[LeasedJob]:
        """Take up to `jobs_max` pending jobs of a kind, highest precedence first, then oldest.

        A job has one lease at a time; its expiry is on the store's clock.
        """
        ...

    def renew(self, leases: Mapping[int, UUID], *, lease_ms: int) -> set[int]:
        """Prolong the leases (token by job); return the jobs whose lease is still held."""
        ...

    def hand_back(self, jobs: Sequence[HandBack]) -> int:
        """Give jobs back; those whose lease is no longer held are passed over. Returns a count."""
        ...

    def park(self, jobs: Sequence[Parking]) -> int:
        """Set jobs aside; those whose lease is no longer held are passed over."""
        ...

    def parked(self, scheduler: str, *, jobs_max: int) -> list[ParkedJob]:
        """Return parked jobs of a kind, highest precedence first, then oldest."""
        ...

    def wake(self, jobs: Sequence[int]) -> int:
        """Move parked jobs back to pending; return how many were parked."""
        ...

    def rescue(self) -> list[int]:
        """Move jobs whose lease has run out back to pending; return them."""
        ...

    def cancel(self, job: int) -> bool:
        """End a job and free its room; False if it was over already or never was."""
        ...

    def job(self, job: int) -> JobStatus | None:
        """Return one job's status."""
        ...

    def jobs(
        self, *, state: State | None = None, scheduler: str | None = None, jobs_max: int = 100
    ) -> list[JobStatus]:
        """Return jobs, newest first."""
        ...

    def placements(self, job: int) -> Mapping[int, str]:
        """Return the machine name of each running task of a job."""
        ...


class Registry(Protocol):
    """What the processes on one store say of themselves, and the cell in sums."""

    def report(self, kind: str, replica: str, *, pid: int, facts: Mapping[str, object]) -> None:
        """Replace what this process said of itself."""
        ...

    def reports(self) -> list[ProcessReport]:
        """Return the last report of each process, oldest start first."""
        ...

    def forget(self, kind: str, replica: str) -> None:
        """Remove a process that has ended cleanly."""
        ...

    def use(self) -> CellUse:
        """Sum up the cell and its queue."""
        ...


class Store(CellStore, JobQueue, RoundBook, Registry, Protocol):
    """All of a store; one object, one connection at a time."""

    def close(self) -> None:
        """Let go of connections; harmless when repeated."""
        ...
