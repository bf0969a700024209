"""A recorded transaction: what was claimed, what it was judged against, and what came of it.

Goal     Have all that is needed to judge a transaction again, without the cell.
Promise  Frozen. Tokens of leases are left out: whether each was held is told instead.
Source   docs/decisions/0057-replay.md; omega.cell.judge.
"""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from omega.cell.commit_context import CommitContext
from omega.model.arrays import Ids, Verdicts
from omega.model.claims import Transaction
from omega.model.machines import MachineRows

NO_TOKEN: Final = UUID(int=0)
"""In place of the token of every lease."""


@dataclass(frozen=True, eq=False)
class Against:
    """What a transaction was judged against."""

    rows: MachineRows
    """Every existing machine that it names or changed, as it was before."""
    context: CommitContext


@dataclass(frozen=True, eq=False)
class RecordedCommit:
    """A transaction with its outcome."""

    at_ms: int
    """When it was answered."""
    transaction: Transaction
    verdicts: Verdicts
    machine: Ids
    """Where each claim was granted; its own machine if it was refused."""
    evicted: tuple[tuple[int, int], ...]
    """Job and task of each evicted task, in order."""
    against: Against | None
    """None if that is not known exactly."""

    def __post_init__(self) -> None:
        assert len(self.verdicts) == len(self.machine) == len(self.transaction.claims)
        assert all(part.token == NO_TOKEN for part in self.transaction.jobs)
