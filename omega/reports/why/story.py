"""A job's transactions: what each was granted, and who had taken what it was refused.

Goal     Show with whom a job competes, from the commits on record.
Promise  What is on record is told as it was judged. Who took a machine is told only if the record
         of that commit is among those searched; what was free at the time is not on record.
Source   omega.store.inquiries; docs/decisions/0019-history.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from omega.model.outcomes import Verdict
from omega.reports.processes import name_of
from omega.reports.wording import UNKNOWN_MACHINE
from omega.store.inquiries import JobTransaction, RecordedClaim


@dataclass(frozen=True)
class ClaimTold:
    """One claim, with names."""

    task: int
    machine: str
    verdict: str
    taken_by: str | None
    """The scheduler that was granted the machine last before, if known ..."""
    taken_for: int | None
    """... and for which job."""
    taken_ms: int | None


@dataclass(frozen=True)
class TransactionTold:
    """One transaction's part about the job."""

    transaction: str
    by: str
    committed_ms: int
    granted: int
    refused: int
    claims: tuple[ClaimTold, ...]
    """Refused ones first; at most CLAIMS_TOLD_MAX."""

    def of_verdict(self, *, granted: bool) -> list[ClaimTold]:
        """Return the claims that were granted, or the others."""
        return [it for it in self.claims if (it.verdict == _word(Verdict.ACCEPTED)) is granted]


def told_transactions(
    transactions: Sequence[JobTransaction], names: Mapping[int, str]
) -> list[TransactionTold]:
    """Return transactions with the names of machines and schedulers."""
    return [
        TransactionTold(
            str(it.transaction),
            name_of(it.scheduler, it.replica),
            it.committed_ms,
            it.granted,
            it.refused,
            tuple(_told(claim, names) for claim in it.claims),
        )
        for it in transactions
    ]


def _told(claim: RecordedClaim, names: Mapping[int, str]) -> ClaimTold:
    rival = claim.taken_by
    return ClaimTold(
        claim.task,
        names.get(claim.machine, UNKNOWN_MACHINE),
        _word(claim.verdict),
        None if rival is None else name_of(rival.scheduler, rival.replica),
        None if rival is None else rival.job,
        None if rival is None else rival.committed_ms,
    )


def _word(verdict: Verdict) -> str:
    return verdict.name.lower()
