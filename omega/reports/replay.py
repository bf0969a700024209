"""Recorded transactions, judged again: by another rule, or by another version of the rule.

Goal     Say which verdicts would have been others, transaction by transaction.
Promise  Each transaction is judged by `omega.cell.judge` against what it was judged against then,
         so that no difference leads to another. Nothing is read but the recordings.
Source   docs/decisions/0057-replay.md.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from omega.cell.judge import judge
from omega.model.claims import ConflictRule
from omega.model.outcomes import Outcome, Verdict
from omega.reports.processes import name_of
from omega.store.saved.recorded import RecordedCommit

COMMITS_TOLD_MAX: Final = 10_000
"""Transactions with other verdicts that are told ..."""
NAMES_TOLD_MAX: Final = 100_000
"""... and, of all these together, claims and evicted tasks; all are counted."""


@dataclass(frozen=True)
class ClaimDiffers:
    """A claim that is judged otherwise: its verdict, and where it was granted, then and now."""

    job: int
    task: int
    was: str
    was_on: int
    now: str
    now_on: int


@dataclass(frozen=True)
class CommitDiffers:
    """A transaction that is judged otherwise."""

    transaction: str
    by: str
    at_ms: int
    claims: tuple[ClaimDiffers, ...]
    evicted_was: tuple[tuple[int, int], ...]
    """Job and task of each evicted task, then ..."""
    evicted_now: tuple[tuple[int, int], ...]

    def row(self) -> dict[str, object]:
        """Return the difference as JSON types."""
        return {
            "transaction": self.transaction,
            "by": self.by,
            "at_ms": self.at_ms,
            "claims": [vars(claim) for claim in self.claims],
            "evicted_was": [list(name) for name in self.evicted_was],
            "evicted_now": [list(name) for name in self.evicted_now],
        }


@dataclass
class ReplayReport:
    """What judging again came to."""

    commits: int = 0
    claims: int = 0
    differ: int = 0
    """Transactions that are judged otherwise."""
    without_facts: int = 0
    """Transactions of which it is not on record what they were judged against."""
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Claims that are judged otherwise, by their verdicts then and now."""
    told: list[CommitDiffers] = field(default_factory=list)
    """The first of these transactions."""

    def summary(self) -> dict[str, object]:
        """Return the sums as JSON types."""
        return {
            "commits": self.commits,
            "claims": self.claims,
            "differ": self.differ,
            "without_facts": self.without_facts,
            "verdicts": [
                {"was": was, "now": now, "claims": claims}
                for (was, now), claims in self.verdicts.most_common()
            ],
            "told": len(self.told),
        }


def replay(recorded: Iterable[RecordedCommit], rule: ConflictRule | None = None) -> ReplayReport:
    """Judge all transactions again, by this rule, or each by its own."""
    report = ReplayReport()
    names = 0
    for commit in recorded:
        if commit.against is None:
            report.without_facts += 1
            continue
        report.commits += 1
        report.claims += len(commit.verdicts)
        transaction = replace(commit.transaction, rule=rule or commit.transaction.rule)
        again = judge(commit.against.rows, transaction, commit.against.context)
        differs = _difference(commit, again)
        if differs is None:
            continue
        report.differ += 1
        report.verdicts.update((claim.was, claim.now) for claim in differs.claims)
        names += len(differs.claims) + len(differs.evicted_was) + len(differs.evicted_now)
        if len(report.told) < COMMITS_TOLD_MAX and names <= NAMES_TOLD_MAX:
            report.told.append(differs)
    return report


def _difference(commit: RecordedCommit, again: Outcome) -> CommitDiffers | None:
    """Return what is judged otherwise; None if nothing is."""
    evicted = tuple(zip(again.evicted_job.tolist(), again.evicted_task.tolist(), strict=True))
    others = (again.verdicts != commit.verdicts) | (again.machine != commit.machine)
    if not others.any() and evicted == commit.evicted:
        return None
    transaction = commit.transaction
    job = np.repeat(
        [part.job for part in transaction.jobs],
        [part.claims.stop - part.claims.start for part in transaction.jobs],
    )
    return CommitDiffers(
        transaction=str(transaction.id),
        by=name_of(transaction.scheduler, transaction.replica),
        at_ms=commit.at_ms,
        claims=tuple(
            ClaimDiffers(
                int(job[at]),
                int(transaction.claims.task[at]),
                _word(int(commit.verdicts[at])),
                int(commit.machine[at]),
                _word(int(again.verdicts[at])),
                int(again.machine[at]),
            )
            for at in np.flatnonzero(others).tolist()
        ),
        evicted_was=commit.evicted,
        evicted_now=evicted,
    )


def _word(verdict: int) -> str:
    return Verdict(verdict).name.lower()
