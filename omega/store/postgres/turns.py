"""Turns of partitioned synchronisation, in Postgres.

Goal     Carry requests for turns to their function and back; decide nothing here.
Promise  Every time that is compared comes from the server's clock.
Source   docs/decisions/0032-turns-are-leased.md.
"""

from omega.store.postgres.connection import Link
from omega.store.turns import NoTurn, TurnGrant, TurnRequest


class PostgresTurns:
    """Leases of turns."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def take_turn(self, request: TurnRequest, *, lease_ms: int) -> TurnGrant | NoTurn | None:
        """Ask for a turn, or renew it; None: what the holder has is as it was."""
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
