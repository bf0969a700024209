"""What a store does for schedulers that share out their reading: it leases turns.

Goal     Let replicas come and go, and die, while no two of them read the same parts in one round.
Promise  At no time do two of a group hold one turn, or turns of different N, as long as each stops
         using its turn when its lease is over. Nobody waits longer for others than 60 ms.
Source   ParSync (USENIX ATC 2021): scheduler i of N; docs/decisions/0032-turns-are-leased.md.
"""

from dataclasses import dataclass
from typing import Protocol
from uuid import UUID


@dataclass(frozen=True)
class TurnRequest:
    """Who asks for which turn. Those with the same gap and parts are a group."""

    holder: UUID
    """One for each process, never used again."""
    asked: int
    """How many times this holder has asked, so that an earlier request that comes late is known."""
    kind: str
    replica: str
    gap_ms: int
    parts: int
    """Into how many the cell is divided at least; 0: one for each scheduler."""
    fixed: tuple[int, int] | None = None
    """The turn of scheduler i of N, as (i, N); None: one among all of the group."""


@dataclass(frozen=True)
class TurnGrant:
    """The turn of scheduler `number` of `of`, from 0, until the lease is over."""

    number: int
    of: int


@dataclass(frozen=True)
class NoTurn:
    """The asker holds no turn now: others have still to give up theirs."""

    held_by: str | None = None
    """Who holds the very turn that was asked for: kind/replica."""


class TurnStore(Protocol):
    """Leases of turns."""

    def take_turn(self, request: TurnRequest, *, lease_ms: int) -> TurnGrant | NoTurn | None:
        """Ask for a turn, or renew it; the last answer is what the holder holds.

        `lease_ms` is at most `LIMITS.lease_ms_max`; 0 gives the turn back. None: somebody else was
        asking at this moment, or this holder has asked something later whose lease goes on, and
        what the holder has is as it was. Of a group without given turns that asks again and again,
        and does not change, each of up to PARTS_MAX has a turn of its own in the end. Raises
        StoreUnavailable, and BadInput for more than `LIMITS.processes_per_login_max` holders of one
        login.
        """
        ...
