"""Inquiries: what is read to explain one job: the job as placement sees it, its line, its story.

Goal     Answer "why is it not placed?" from what is stored, without slowing the cell.
Promise  Each read is bounded: the job by its keys, the line by an index and a limit, the story by
         the newest `TRANSACTIONS_SEARCHED_MAX` records and by `CLAIMS_SEARCHED_MAX` claims in
         them. What is older is not searched, and so nothing is said of it.
Source   docs/decisions/0054-why-a-job-waits.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol
from uuid import UUID

from omega.model.arrays import Ids, Index
from omega.model.jobs import JobSpec
from omega.model.outcomes import Verdict
from omega.store.status import JobStatus

TRANSACTIONS_SEARCHED_MAX: Final = 10_000
"""The newest records of commits that are searched for a job: in some fifty milliseconds ..."""
CLAIMS_SEARCHED_MAX: Final = 1_000_000
"""... unless they hold so many claims: then none that is older than the one with the last."""
LINE_MAX: Final = 1_000
"""Jobs ahead that are counted, for precedence and for age; so many stand for so many or more."""
CLAIMS_TOLD_MAX: Final = 100
"""Claims of one transaction that are told; refused ones come first."""
REFUSALS_TRACED_MAX: Final = 50
"""Refused claims, over all transactions told, for which it is searched who took the machine."""


@dataclass(frozen=True, eq=False)
class WaitingJob:
    """A job that has not ended, as placement needs it."""

    id: int
    spec: JobSpec
    unplaced: Index
    """Tasks without a place, ascending."""
    placed_task: Index
    """Running tasks, where placement needs to know them, as in a lease ..."""
    placed_machine: Ids
    """... and the id of the machine of each."""
    placed: int
    """Tasks that run or have ended."""
    running: int
    waits_ms: int
    """For how much longer it may not be leased, by the store's clock; 0 if it may be."""
    age_ms: int
    """Time since it was submitted, by the store's clock."""


@dataclass(frozen=True)
class Line:
    """The pending jobs of one kind that may be leased now and come before a given one.

    They do by precedence and age. Orders by start deadlines lease jobs of equal precedence by their
    keys instead.
    """

    higher: int
    """Jobs of higher precedence, counted up to LINE_MAX."""
    older: int
    """Jobs of equal precedence that were submitted earlier, counted up to LINE_MAX."""
    first: tuple[JobStatus, ...]
    """The first few of all of them, in the order in which they are leased."""

    @property
    def ahead(self) -> int:
        """How many are ahead."""
        return self.higher + self.older

    def above(self, precedence: int) -> "Line":
        """Return those of a higher precedence than this one, the given job's."""
        return Line(self.higher, 0, tuple(it for it in self.first if it.precedence > precedence))


@dataclass(frozen=True)
class Rival:
    """The last other transaction that was granted a machine before a claim on it was refused."""

    transaction: UUID
    scheduler: str
    replica: str
    job: int
    """The job whose claim on the machine was granted."""
    committed_ms: int


@dataclass(frozen=True)
class RecordedClaim:
    """One claim of a job, as it was judged."""

    task: int
    machine: int
    verdict: Verdict
    taken_by: Rival | None = None
    """Of a refused claim: who had taken the machine, if that is among the records searched."""


@dataclass(frozen=True)
class JobTransaction:
    """A job's part of a recorded transaction."""

    transaction: UUID
    scheduler: str
    replica: str
    committed_ms: int
    granted: int
    refused: int
    claims: tuple[RecordedClaim, ...]
    """At most CLAIMS_TOLD_MAX, refused ones first."""


class LineReader(Protocol):
    """What whoever may submit jobs may know of a job and of those before it."""

    def waiting_job(self, job: int) -> WaitingJob | None:
        """Return a job as placement sees it; None if it has ended, or cannot be read."""
        ...

    def line_before(self, scheduler: str, precedence: int, job: int, *, jobs_max: int) -> Line:
        """Return who is leased before a job of this kind, precedence and number.

        The first `jobs_max` are told.
        """
        ...


class JobTransactionReader(Protocol):
    """What is on record of the commits for a job."""

    def transactions_of(self, job: int, *, transactions_max: int) -> list[JobTransaction]:
        """Return the newest recorded transactions that claimed for a job, newest first."""
        ...


def traced(
    transactions: Sequence[JobTransaction], rivals: Mapping[tuple[UUID, int], Rival]
) -> list[JobTransaction]:
    """Return transactions with the rivals of refused claims, by transaction and machine."""
    return [
        JobTransaction(
            it.transaction,
            it.scheduler,
            it.replica,
            it.committed_ms,
            it.granted,
            it.refused,
            tuple(
                claim
                if claim.verdict is Verdict.ACCEPTED
                else RecordedClaim(
                    claim.task,
                    claim.machine,
                    claim.verdict,
                    rivals.get((it.transaction, claim.machine)),
                )
                for claim in it.claims
            ),
        )
        for it in transactions
    ]


def refusals_of(transactions: Sequence[JobTransaction]) -> list[tuple[JobTransaction, int]]:
    """Return the transaction and machine of the refused claims to trace, at most so many."""
    found = {
        (it.transaction, claim.machine): (it, claim.machine)
        for it in transactions
        for claim in it.claims
        if claim.verdict is not Verdict.ACCEPTED
    }
    return list(found.values())[:REFUSALS_TRACED_MAX]
