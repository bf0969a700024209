"""The operations of a store for schedulers that plan all their jobs at once, round by round.

Goal     Rounds survive their scheduler: the next replica continues from what is stored here.
Promise  A round has one holder, on the store's clock. A memo is stored only for the last round
         begun. The tasks of a recalled job run while it is planned, and only a commit evicts them.
Source   Gavel (OSDI 2020), section 5; docs/decisions/0028-rounds-on-the-shared-cell.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from omega.model.jobs import LeasedJob
from omega.model.round_summary import RoundSummary


@dataclass(frozen=True)
class Round:
    """A round that the caller has just begun."""

    number: int
    """Counts the rounds of the kind, from 1."""
    began_ms: int
    """By the store's clock, in milliseconds since the epoch."""
    memo: Mapping[str, object]
    """The memo of the last round; empty if none was kept yet."""


@dataclass(frozen=True)
class NotYet:
    """The last round is not over yet."""

    due_in_ms: int


@dataclass(frozen=True)
class LastRound:
    """The last round of a kind of scheduler, as anybody may read it."""

    scheduler: str
    number: int
    began_ms: int
    """By the store's clock, in milliseconds since the epoch."""
    length_ms: int
    """The next one begins so long after it, or earlier if its scheduler wants shorter ones."""
    summary: RoundSummary | None
    """None until the round is planned, and of schedulers that tell nothing."""


class RoundReader(Protocol):
    """What rounds tell people."""

    def last_rounds(self) -> list[LastRound]:
        """Return the last round of each kind of scheduler that has had one, by kind."""
        ...


class RoundStore(Protocol):
    """Rounds, and the running jobs that they plan."""

    def begin_round(self, scheduler: str, *, holder: str, length_ms: int) -> Round | NotYet:
        """Begin the next round of a kind of scheduler if the last one is over; otherwise NotYet.

        The last round is over after its own length, or after `length_ms` if that is shorter. If
        several callers ask at once, one of them begins the round.
        """
        ...

    def note_round(self, scheduler: str, number: int, memo: Mapping[str, object]) -> bool:
        """Keep the memo for the next round; return False if that has begun already.

        Raises BadInput for a memo of more than `LIMITS.memo_bytes_max` bytes, of more than
        `LIMITS.json_depth_max` levels, or with a number that is more than a double holds.
        """
        ...

    def recall(
        self, scheduler: str, number: int, jobs: Sequence[int] | None, *, lease_ms: int
    ) -> list[LeasedJob]:
        """Lease to a round's holder those of the jobs that run, ascending by id; tasks go on.

        Only jobs of the round's kind are leased. Each has the machines of all its running tasks.
        When a job is handed back or its lease expires, it runs as before unless a commit has
        evicted tasks meanwhile. None stands for all jobs that run, and needs a scan of all jobs.

        Jobs that the holder of the round before still has leased are included, running or not: that
        round is over, and its holder has died or is late. A round that is not the last one begun,
        or that another login began, returns nothing.
        """
        ...

    def unfinished(self, jobs: Sequence[int]) -> set[int]:
        """Return those of the jobs that exist and have not ended, in any state."""
        ...
