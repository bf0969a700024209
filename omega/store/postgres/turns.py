"""Turns of partitioned synchronisation, in Postgres.

Goal     Pass requests for turns to their function and return the answers; nothing is decided here.
Promise  All times that are compared are of the server's clock.
Source   docs/decisions/0032-turns-are-leased.md.
"""

from omega.store.postgres.connection import Link
from omega.store.turns import NoTurn, TurnGrant, TurnRequest


class PostgresTurns:
    """Leases of turns."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def take_turn(self, request: TurnRequest, *, lease_ms: int) -> TurnGrant | NoTurn | None:
        """Take a turn or renew it; None means that the holder's grant has not changed."""
        ((granted, number, of, held_by),) = self._link.call(
            "SELECT granted, number, schedulers, held_by"
            " FROM omega.take_turn(%s, %s, %s, %s, %s, %s, %s, %s, %s)",
            (
                request.holder,
                request.asked,
                request.kind,
                request.replica,
                request.gap_ms,
                request.parts,
                *(request.fixed or (None, None)),
                lease_ms,
            ),
        )
        if granted is None:
            return None
        return TurnGrant(number, of) if granted else NoTurn(held_by or None)
