"""What a store returns about its jobs, its processes and the state of its cell.

Goal     One value type for each kind of answer, equal for every store.
Promise  Values are frozen. Every login that may read the store may see all of them.
Source   docs/decisions/0005-events.md, docs/decisions/0015-evictions-alternates-machines.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from omega.lifecycle.states import ParkReason, State
from omega.model.arrays import Amounts
from omega.model.machines import MachineState


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
    """Tasks that have a place or have ended."""
    ended: int
    failed: int
    """Tasks whose programs failed; they are among those that have ended."""
    minimum: int
    attempts: int
    fruitless: int
    park_reason: ParkReason | None
    park_detail: str | None
    submitted_ms: int
    first_leased_ms: int | None
    finished_ms: int | None
    lease_holder: str | None
    preemptible: bool
    evicted_by: int | None
    """The job for which a task of this one was evicted last, and when."""
    evicted_ms: int | None
    workers_max: int | None
    """The most workers that it may have; None if it is not elastic."""
    parent: int | None
    """The elastic job that its tasks help; None if it is a job of its own."""


@dataclass(frozen=True)
class ProcessReport:
    """The last report of a process."""

    kind: str
    replica: str
    pid: int
    started_ms: int
    seen_ms_ago: int
    facts: Mapping[str, object]


@dataclass(frozen=True)
class CellUse:
    """Sums over the cell."""

    machines_by_state: Mapping[MachineState, int]
    stranded: int
    """Machines that are down or gone and still used, so that `lose_tasks` should be called."""
    capacity: Mapping[str, int]
    """Of machines that are not gone; so is `used`."""
    used: Mapping[str, int]
    jobs_by_state: Mapping[State, int]
    """Without jobs of helpers."""
    parked_by_reason: Mapping[ParkReason, int]
    live_allocations: int

    @property
    def machines(self) -> int:
        """How many machines are not gone."""
        by_state = self.machines_by_state.items()
        return sum(number for state, number in by_state if state is not MachineState.GONE)

    @property
    def open(self) -> int:
        """How many machines take claims."""
        return self.machines_by_state.get(MachineState.OPEN, 0)

    @property
    def jobs_waiting(self) -> int:
        """How many jobs are pending or being planned."""
        return sum(self.jobs_by_state.get(state, 0) for state in (State.PENDING, State.PLANNING))


@dataclass(frozen=True, eq=False)
class Notice:
    """A machine that is used above its capacity, and for how much longer that is tolerated."""

    machine: int
    excess: Amounts
    """What is used above the capacity now: (kinds,)."""
    ends_in_ms: int
    """By the store's clock; negative once the notice has ended."""


@dataclass(frozen=True)
class Violation:
    """An invariant that is violated, and by what."""

    invariant: str
    subject: str
    detail: str
