"""Stories: what is on record of one job, or of one machine, over time.

Goal     Tell what happened to a job or on a machine, from records that are kept anyway.
Promise  Each read is bounded: commits by the newest `TRANSACTIONS_SEARCHED_MAX` records, by
         `CLAIMS_SEARCHED_MAX` claims in them and, of a job, by those around some earlier times;
         runs by the newest part of their history. What was searched is told with what was found.
Source   docs/decisions/0054-why-a-job-waits.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol
from uuid import UUID

from omega.model.outcomes import Verdict
from omega.store.inquiries import JobTransaction, JobTransactionReader

TRANSACTIONS_MAX: Final = 200
"""Transactions of one job that are told ..."""
VISITS_MAX: Final = 200
"""... transactions that named one machine ..."""
VISIT_CLAIMS_MAX: Final = 10_000
"""... none that is older than the one with the last of so many claims on it ..."""
EVICTIONS_MAX: Final = 200
"""... tasks of a job, or on a machine, that commits evicted ..."""
RUNS_MAX: Final = 10_000
"""... and runs. The newest are told."""


class RunEnd(Enum):
    """How a run ended."""

    ENDED = "ended"  # by itself, or with its job
    EVICTED = "evicted"  # by a commit: for another task, or to move this one
    LOST = "lost"  # its machine failed, left or shrank


@dataclass(frozen=True)
class PastRun:
    """A time for which one task had one place."""

    job: int
    task: int
    machine: int
    started_ms: int
    ended_ms: int | None
    """None if it goes on."""
    end: RunEnd | None

    def __post_init__(self) -> None:
        assert (self.ended_ms is None) == (self.end is None)


@dataclass(frozen=True)
class RecordedEviction:
    """A task that a commit evicted."""

    transaction: UUID
    scheduler: str
    replica: str
    committed_ms: int
    job: int
    task: int
    machine: int
    """Where it ran ..."""
    moved_to: int | None
    """... and where the same commit placed it; None if nowhere."""
    for_jobs: tuple[int, ...]
    """The jobs, ascending, that the commit granted claims on the machine."""


@dataclass(frozen=True)
class RecordedVisit:
    """A transaction's claims on one machine, in order."""

    transaction: UUID
    scheduler: str
    replica: str
    committed_ms: int
    jobs: tuple[int, ...]
    tasks: tuple[int, ...]
    verdicts: tuple[Verdict, ...]

    def __post_init__(self) -> None:
        assert len(self.jobs) == len(self.tasks) == len(self.verdicts)


@dataclass(frozen=True)
class Searched:
    """Which records of commits were searched."""

    transactions: int
    oldest_ms: int | None
    """When the oldest of them was committed; None without any."""
    are_all: bool
    """Whether these are all that are on record."""
    near: int = 0
    """Around how many earlier times records were searched, too: those of a job's first lease, and
    of the begins and evictions of its tasks."""


@dataclass(frozen=True, kw_only=True)
class JobRecords:
    """What is on record of a job."""

    transactions: tuple[JobTransaction, ...]
    """Newest first, as all of these."""
    evictions: tuple[RecordedEviction, ...]
    runs: tuple[PastRun, ...]
    are_all_runs: bool
    """Whether no run that is on record was left out."""
    searched: Searched
    names: Mapping[int, str]
    """The names of the machines in all of these that still have one."""


@dataclass(frozen=True, kw_only=True)
class MachineRecords:
    """What is on record of a machine."""

    visits: tuple[RecordedVisit, ...]
    """Newest first, as all of these."""
    evictions: tuple[RecordedEviction, ...]
    runs: tuple[PastRun, ...]
    are_all_runs: bool
    searched: Searched


class StoryReader(JobTransactionReader, Protocol):
    """What is on record of one job or of one machine."""

    def job_records(self, job: int) -> JobRecords:
        """Return what is on record of a job; nothing of one that never was."""
        ...

    def machine_records(self, machine: int) -> MachineRecords:
        """Return what is on record of a machine; nothing of one that never was."""
        ...


def machines_of(
    transactions: Sequence[JobTransaction],
    evictions: Sequence[RecordedEviction],
    runs: Sequence[PastRun],
) -> set[int]:
    """Return every machine that these records name."""
    named = {claim.machine for it in transactions for claim in it.claims}
    named |= {it.machine for it in runs} | {it.machine for it in evictions}
    return named | {it.moved_to for it in evictions if it.moved_to is not None}
