"""Events: the only telemetry. Frozen facts that are passed to a sink.

Goal     One stream of facts from which every measure is a fold, live and in the simulator.
Promise  Emitting an event never makes the work that it reports fail. No event holds a secret.
Source   Omega (EuroSys 2013), section 4 (metrics); docs/decisions/0005-events.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class JobsLeased:
    """A scheduler took jobs from the queue."""

    jobs: int
    first_waits_s: tuple[float, ...]
    """Wait time of those leased for the first time: submission to this lease."""


@dataclass(frozen=True)
class JobsRecalled:
    """A round leased jobs that run, or that the holder of the previous round still had leased."""

    jobs: int


@dataclass(frozen=True)
class ViewRefreshed:
    """A view was brought up to date."""

    rows: int
    age_s: float
    """Age of the view when it was refreshed; the age of its oldest part if it has several."""
    took_s: float
    full: bool


@dataclass(frozen=True)
class TransactionJudged:
    """The store has returned the outcome of a transaction."""

    scheduler: str
    jobs: int
    jobs_conflicted: int
    """Jobs of the transaction with a claim refused for another reason than a quota, or than a gang
    broken by a quota."""
    accepted: int
    refused: Mapping[str, int]
    """Refused claims by verdict."""
    thought_s: float
    """Decision time spent on the transaction."""
    took_s: float
    evicted: int = 0
    """Tasks that the transaction evicted, whole gangs included."""

    @property
    def conflicted(self) -> bool:
        """Whether at least one claim was refused because of other schedulers' changes."""
        return bool(self.jobs_conflicted)


@dataclass(frozen=True)
class JobAttempted:
    """One job's attempt ended."""

    job: int
    tries: int
    placed: int
    left: int
    thought_s: float


@dataclass(frozen=True)
class JobParked:
    """A job was set aside."""

    job: int
    reason: str


@dataclass(frozen=True)
class JobsWoken:
    """Parked jobs were moved back to the queue."""

    jobs: int


@dataclass(frozen=True)
class JobsRescued:
    """Jobs whose lease ran out were moved back to the queue."""

    jobs: int


@dataclass(frozen=True)
class MachinesExpired:
    """Machines were taken down because their agents had not renewed their leases."""

    machines: int


@dataclass(frozen=True)
class TasksLost:
    """Machines failed, left or shrank; their tasks lost their places and are unplaced again."""

    tasks: int
    why: str


@dataclass(frozen=True)
class TasksEvicted:
    """A commit evicted tasks of one job for claims of others."""

    job: int
    tasks: int
    """The tasks that claims of other jobs named, and the rest of a gang that broke."""
    evictor: int
    """The job for whose claims they had to go; of several, the one with the highest id."""


@dataclass(frozen=True)
class StoreCallFailed:
    """The store did not answer; the call will be repeated."""

    what: str
    why: str


@dataclass(frozen=True)
class RecordingStopped:
    """The file into which transactions are recorded cannot be written any more."""

    why: str


@dataclass(frozen=True)
class MemoRefused:
    """The store refused the memo of a round, so the next round gets a smaller one."""

    why: str


@dataclass(frozen=True)
class TasksEnded:
    """Tasks ended and their room was freed."""

    tasks: int


@dataclass(frozen=True)
class TurnChanged:
    """A process that reads the cell by turns has another turn from now on."""

    turn: tuple[int, int] | None
    """(i, N) of scheduler i of N, i from 0. None: the process has had no turn for a whole lease and
    reads every part."""


@dataclass(frozen=True)
class RateUnknown:
    """Jobs of some kind of work make no steps, because no rate is known for it."""

    why: str


@dataclass(frozen=True)
class HelpersPlaced:
    """Helpers were made for an elastic job, and placed as far as there was room."""

    placed: int
    left: int
    """Those that found no room; they are over."""


@dataclass(frozen=True)
class HelpersEnded:
    """A scheduler ended helpers, because too much of the cell is in use."""

    tasks: int


@dataclass(frozen=True)
class ProgramEnded:
    """An agent saw a task's program end for good, after its restarts, or not start at all."""

    job: int
    task: int
    how: str
    """In words: exited with 1, was killed by signal 9."""
    is_success: bool


@dataclass(frozen=True)
class AgentWarned:
    """An agent cannot do all that it should for its tasks, such as write to a full disk."""

    why: str


@dataclass(frozen=True)
class ProcessReported:
    """A process has reported to the store, which it does at regular times, also when it is idle."""


Event = (
    JobsLeased
    | JobsRecalled
    | ViewRefreshed
    | TransactionJudged
    | JobAttempted
    | JobParked
    | JobsWoken
    | JobsRescued
    | MachinesExpired
    | TasksLost
    | TasksEvicted
    | StoreCallFailed
    | MemoRefused
    | RecordingStopped
    | TasksEnded
    | RateUnknown
    | TurnChanged
    | HelpersPlaced
    | HelpersEnded
    | ProgramEnded
    | AgentWarned
    | ProcessReported
)


class Sink(Protocol):
    """A receiver of events: a fold, a log, a metric exporter or a test."""

    def __call__(self, event: Event, /) -> None:
        """Receive one event; must not raise and must not block."""
        ...


def ignore(event: Event) -> None:
    """Receive an event and do nothing."""


def fan_out(*sinks: Sink) -> Sink:
    """Return a sink that passes each event to all of these, in order."""

    def emit(event: Event) -> None:
        for sink in sinks:
            sink(event)

    return emit
