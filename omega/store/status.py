"""What a store says of its jobs, its processes and the state of its cell.

Goal     One value for each kind of answer, the same from every store.
Promise  Frozen; whoever reads the store may see all of it.
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


@dataclass(frozen=True, eq=False)
class Notice:
    """A machine on which more is used than counts, and how much longer that is tolerated."""

    machine: int
    excess: Amounts
    """What is used above the capacity, now."""
    ends_in_ms: int
    """By the store's clock; below 0 once it is over."""


@dataclass(frozen=True)
class Violation:
    """An invariant that does not hold, and where."""

    invariant: str
    subject: str
    detail: str
