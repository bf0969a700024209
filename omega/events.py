"""Events: the only telemetry. Frozen facts, handed to a sink.

Goal     One stream of facts from which every measure is a fold, live and in the simulator.
Promise  Emitting never fails the work it reports on; no event holds a secret.
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
    """A scheduler leased jobs that run, or that its last round left waiting, to plan them anew."""

    jobs: int


@dataclass(frozen=True)
class ViewRefreshed:
    """A view was brought up to date."""

    rows: int
    age_s: float
    """Age that the view had reached when it was refreshed; of several parts, the oldest's."""
    took_s: float
    full: bool


@dataclass(frozen=True)
class TransactionJudged:
    """A transaction came back."""

    scheduler: str
    jobs: int
    jobs_conflicted: int
    """Jobs of the transaction with a claim refused for more than a quota and its gang."""
    accepted: int
    refused: Mapping[str, int]
    """Refused claims by verdict."""
    thought_s: float
    """Decision time that went into it."""
    took_s: float
    evicted: int = 0
    """Tasks that lost their places to it, whole gangs included."""

    @property
    def conflicted(self) -> bool:
        """Whether at least one claim was refused for what others did."""
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
class TasksLost:
    """Tasks lost their places with machines that failed, left or shrank, and wait again."""

    tasks: int
    why: str


@dataclass(frozen=True)
class StoreFaltered:
    """The store did not answer, and is tried again."""

    what: str
    why: str


@dataclass(frozen=True)
class MemoRefused:
    """A round left less for the next one than it wanted to: the store refused its memo."""

    why: str


@dataclass(frozen=True)
class TasksEnded:
    """Tasks were over and their room was freed."""

    tasks: int


@dataclass(frozen=True)
class TurnChanged:
    """A process that shares out its reading goes by another turn from now on."""

    turn: tuple[int, int] | None
    """Of scheduler i of N, i from 0; None: it has had none for long, and reads everything."""


@dataclass(frozen=True)
class RateUnknown:
    """Jobs of some kind of work make no steps, for nobody has said how fast they are."""

    why: str


Event = (
    JobsLeased
    | JobsRecalled
    | ViewRefreshed
    | TransactionJudged
    | JobAttempted
    | JobParked
    | JobsWoken
    | JobsRescued
    | TasksLost
    | StoreFaltered
    | MemoRefused
    | TasksEnded
    | RateUnknown
    | TurnChanged
)


class Sink(Protocol):
    """Takes events. A fold, a log, a metric exporter or a test is a sink."""

    def __call__(self, event: Event, /) -> None:
        """Take one event; must not raise and must not block."""
        ...


def ignore(event: Event) -> None:
    """Take an event and do nothing."""


def fan_out(*sinks: Sink) -> Sink:
    """Return a sink that hands each event to all of these, in order."""

    def emit(event: Event) -> None:
        for sink in sinks:
            sink(event)

    return emit
