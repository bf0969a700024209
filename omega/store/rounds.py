"""What a store does for schedulers that plan all their jobs at once, round by round.

Goal     Let rounds survive their scheduler: whoever comes next goes on from what is kept here.
Promise  A round has one holder, on the store's clock; what it notes is kept only while it is the
         last one begun. A recalled job runs on while it is planned, and is never without its place
         unless a commit takes it.
Source   Gavel (OSDI 2020), section 5; docs/decisions/0028-rounds-on-the-shared-cell.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from omega.model.jobs import LeasedJob


@dataclass(frozen=True)
class Round:
    """A round that has just begun, for whoever began it."""

    number: int
    """From 1, one more with every round of the kind."""
    began_ms: int
    """By the store's clock, in milliseconds since the epoch."""
    memo: Mapping[str, object]
    """What the last round noted; empty before the first note."""


@dataclass(frozen=True)
class NotYet:
    """The last round is not over."""

    due_in_ms: int


class RoundStore(Protocol):
    """Rounds, and the running jobs that they are about."""

    def begin_round(self, scheduler: str, *, holder: str, length_ms: int) -> Round | NotYet:
        """Begin the next round of a kind of scheduler, if the last one is over.

        It is after the length that it was begun with, or after this one if that is shorter.
        Of several that ask at once one begins it.
        """
        ...

    def note_round(self, scheduler: str, number: int, memo: Mapping[str, object]) -> bool:
        """Keep what the next round is to know; False, and nothing kept, if it has begun already.

        Raises BadInput for a memo of more than `LIMITS.memo_bytes_max` bytes, of more than
        `LIMITS.json_depth_max` levels, or with a number that is more than a double holds.
        """
        ...

    def recall(
        self, scheduler: str, number: int, jobs: Sequence[int] | None, *, lease_ms: int
    ) -> list[LeasedJob]:
        """Lease to a round's holder those of the jobs that run, ascending by id; they run on.

        They are jobs of the round's kind. Each tells of all its running tasks where they are. Given
        back, or its lease run out, a job runs as before, unless a commit has evicted some of it
        meanwhile. None stands for all that run, which takes a look at every job there is.

        Taken too, whether they run or wait, are those of the jobs that whoever held the round
        before has under a lease still: it is over, and its holder has died or comes too late. A
        round that is not the last one begun, or that another login began, recalls nothing.
        """
        ...

    def unfinished(self, jobs: Sequence[int]) -> set[int]:
        """Return those of the jobs that are there and not over, wherever they stand."""
        ...
