"""The operations of a store for schedulers that divide their reading: leases of turns.

Goal     Replicas may start, stop and die, and no two of them read the same parts in one turn.
Promise  Two members of a group never hold the same turn at the same time, nor turns of different
         N, provided that each stops to use its turn when the lease ends. A call waits at most 60 ms
         for others.
Source   ParSync (USENIX ATC 2021): scheduler i of N; docs/decisions/0032-turns-are-leased.md.
"""

from dataclasses import dataclass
from typing import Protocol
from uuid import UUID


@dataclass(frozen=True)
class TurnRequest:
    """A request for a turn. Requests with the same gap and parts form a group."""

    holder: UUID
    """Unique for each process, and never used again."""
    asked: int
    """Numbers the holder's requests, so that a late earlier one is recognised."""
    kind: str
    replica: str
    gap_ms: int
    parts: int
    """Into how many parts the cell is divided at least; 0: one for each scheduler."""
    fixed: tuple[int, int] | None = None
    """The turn of scheduler i of N, as (i, N); None: any turn of the group."""


@dataclass(frozen=True)
class TurnGrant:
    """The turn of scheduler `number` of `of`, counted from 0, until the lease ends."""

    number: int
    of: int


@dataclass(frozen=True)
class NoTurn:
    """The caller holds no turn now, because others have not given up theirs yet."""

    held_by: str | None = None
    """The holder, as kind/replica, of the very turn that was asked for."""


class TurnStore(Protocol):
    """Leases of turns."""

    def take_turn(self, request: TurnRequest, *, lease_ms: int) -> TurnGrant | NoTurn | None:
        """Take a turn or renew it; the answer says what the holder has from now on.

        `lease_ms` is at most `LIMITS.lease_ms_max`; 0 gives the turn back. None means that nothing
        has changed: another call was running at this moment, or a later request of this holder was
        answered before and its lease goes on. In a group without fixed turns whose members do not
        change and ask repeatedly, up to PARTS_MAX members get a turn each after some time. Raises
        StoreUnavailable, and BadInput for more than `LIMITS.processes_per_login_max` holders of
        one login.
        """
        ...
