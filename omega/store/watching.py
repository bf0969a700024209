"""What those who watch a cell read again and again: what was judged lately, and the queue in sums.

Goal     Let a page be drawn each second from what is new, however long the history is.
Promise  Each read is bounded, whatever the rate of commits and the length of the queue.
Source   docs/decisions/0052-the-page.md.
"""

from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from omega.lifecycle.states import ParkReason, State
from omega.model.arrays import Ids, Index, Verdicts, freeze


@dataclass(frozen=True, eq=False)
class Judged:
    """Transactions that were judged, in the order of their records.

    On any one machine that is the order in which its row was locked, so that a refused claim comes
    after all claims that were granted there before it.
    """

    id: tuple[UUID, ...]
    scheduler: tuple[str, ...]
    replica: tuple[str, ...]
    ends: Index
    """Where the claims of each transaction end: (transactions,)."""
    machine: Ids
    """Where each claim was granted; if it was refused, the machine that it names first."""
    verdict: Verdicts
    mark: int
    """For the next read."""
    are_all: bool
    """Whether older ones since the mark were all returned."""

    def __post_init__(self) -> None:
        assert len(self.id) == len(self.scheduler) == len(self.replica) == len(self.ends)
        assert len(self.machine) == len(self.verdict)
        freeze(self.ends, self.machine, self.verdict)

    def __len__(self) -> int:
        return len(self.id)


@dataclass(frozen=True)
class QueueLine:
    """Jobs of one kind of scheduler and one tenant that wait for the same thing."""

    scheduler: str
    tenant: str
    state: State
    """Pending, planning or parked."""
    park_reason: ParkReason | None
    jobs: int
    unplaced: int
    """Tasks of theirs that have no place."""
    oldest_ms: int
    """When the oldest of them was submitted."""


class CellWatching(Protocol):
    """The calls of those who watch a cell."""

    def judged_since(self, mark: int) -> Judged:
        """Return the transactions recorded since a mark: that of the last call, or 0.

        At most `LIMITS.judged_per_read_max`, and no more after `LIMITS.judged_claims_max` claims:
        the latest. Two calls may return the same transaction.
        """
        ...


class QueueReader(Protocol):
    """The queue in sums, for all who may read jobs."""

    def queue(self) -> list[QueueLine]:
        """Return the queue in sums, most jobs first, at most `LIMITS.queue_lines_max` lines.

        Without jobs of helpers.
        """
        ...
