"""Turns of partitioned synchronisation, kept in memory.

Goal     A memory store leases turns.
Promise  Grants are those of Postgres, for any number of holders. Calls come one after the other, so
         nothing is locked.
Source   docs/decisions/0032-turns-are-leased.md; functions/turns.sql.
"""

from dataclasses import dataclass
from uuid import UUID

from omega.cell.partition import PARTS_MAX
from omega.clock import Clock
from omega.store.turns import NoTurn, TurnGrant, TurnRequest


@dataclass(frozen=True)
class _Held:
    request: TurnRequest
    grant: TurnGrant | None
    joined: int
    expires_s: float

    @property
    def group(self) -> tuple[int, int]:
        return self.request.gap_ms, self.request.parts


class MemoryTurns:
    """The leased turns, and the replicas that have asked for one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._turns: dict[UUID, _Held] = {}
        self._joined = 0

    def take_turn(self, request: TurnRequest, *, lease_ms: int) -> TurnGrant | NoTurn | None:
        """Take a turn or renew it; None means that the holder's grant has not changed."""
        now_s = self._clock.now()
        if not lease_ms:
            before = self._turns.get(request.holder)
            if before is not None and before.request.asked < request.asked:
                del self._turns[request.holder]
            return NoTurn()
        self._turns = {id_: it for id_, it in self._turns.items() if it.expires_s > now_s}
        before = self._turns.get(request.holder)
        if before is not None and before.request.asked >= request.asked:
            return None
        if before is None:
            self._joined += 1
        joined = before.joined if before is not None else self._joined
        group = request.gap_ms, request.parts
        others = [it for it in self._turns.values() if it.group == group and it is not before]
        wanted = _wanted(request, joined, others)
        held = [it.grant for it in others if it.grant is not None]
        is_free = all(it.of == wanted.of and it != wanted for it in held)
        grant = wanted if is_free and wanted.number < wanted.of else None
        expires_s = now_s + lease_ms / 1_000
        self._turns[request.holder] = _Held(request, grant, joined, expires_s)
        holder = next((it.request for it in others if it.grant == wanted), None)
        return grant or NoTurn(None if holder is None else f"{holder.kind}/{holder.replica}")


def _wanted(request: TurnRequest, joined: int, others: list[_Held]) -> TurnGrant:
    if request.fixed is not None:
        return TurnGrant(*request.fixed)
    return TurnGrant(sum(it.joined < joined for it in others), min(len(others) + 1, PARTS_MAX))
