"""Turns: which parts of the cell one of several schedulers reads in which round.

Goal     Let schedulers share out their reading, whether somebody counts them or they find each
         other by themselves.
Promise  The turns of N schedulers are disjoint in every round. A turn that is leased is used until
         its lease is over by our own clock, counted from before it was asked for, and no longer.
Source   ParSync (USENIX ATC 2021): every gap / N, scheduler i of N refreshes the parts p with
         p mod N = (i + round) mod N; docs/decisions/0032-turns-are-leased.md.
"""

from dataclasses import dataclass, field
from math import ceil, floor, inf
from typing import Final, Protocol, Self
from uuid import UUID, uuid4

from omega.cell.partition import PARTS_MAX
from omega.clock import Clock
from omega.errors import BadInput
from omega.events import Sink, TurnChanged
from omega.store.turns import NoTurn, TurnBook, TurnGrant, TurnRequest
from omega.workload.arrivals import MS_PER_S

RENEWALS: Final = 4
"""How many times a turn is renewed in the length of a lease."""
TRIES: Final = 40
"""How many times in the length of a lease a process without a turn asks for one."""


@dataclass(frozen=True)
class Turn:
    """Which of several schedulers this is that share out their reading.

    One by itself reads everything once a gap: the paper's baseline, StateSync.
    """

    number: int = 0
    of: int = 1
    gap_s: float = 1.0
    """In so long each of them has read everything once."""
    parts: int = 0
    """Into how many the cell is divided, a multiple of `of`; 0: one for each scheduler."""

    def __post_init__(self) -> None:
        if not self.parts:
            object.__setattr__(self, "parts", self.of)
        assert 0 <= self.number < self.of <= self.parts <= PARTS_MAX
        assert self.parts % self.of == 0, "every round reads as many parts as any other"
        assert 0 < self.gap_s < inf

    def current(self) -> Self:
        """Return this turn: one that is given never changes."""
        return self

    def round_at(self, time_s: float) -> int:
        """Return the number of the round at a time; each lasts gap / N."""
        return floor(time_s * self.of / self.gap_s)

    def parts_of(self, round_: int) -> range:
        """Return the parts that are read in a round: those p with p mod N = (i + round) mod N."""
        return range((self.number + round_) % self.of, self.parts, self.of)


class Turns(Protocol):
    """Says whose turn it is."""

    def current(self) -> Turn:
        """Return the turn to read by now. May raise StoreUnavailable."""
        ...


@dataclass(frozen=True)
class Sharing:
    """One of several processes that lease their turns from the store."""

    kind: str
    replica: str
    gap_s: float
    lease_ms: int
    parts: int = 0
    """Into how many the cell is divided at least; 0: one for each scheduler."""
    fixed: Turn | None = None
    """The turn to lease; None: whichever is free, of as many as there are processes."""
    holder: UUID = field(default_factory=uuid4)

    def turns(self, store: TurnBook, clock: Clock, sink: Sink) -> Turns:
        """Return the turns of this process; that of one by itself is nobody else's, and its own."""
        if self.fixed is not None and self.fixed.of == 1:
            return self.fixed
        return LeasedTurns(self, store, clock, sink)

    def request(self, asked: int) -> TurnRequest:
        """Return the request to make the how manieth time."""
        return TurnRequest(
            self.holder,
            asked,
            self.kind,
            self.replica,
            gap_ms=max(1, round(self.gap_s * MS_PER_S)),
            parts=self.parts,
            fixed=None if self.fixed is None else (self.fixed.number, self.fixed.of),
        )

    def turn(self, grant: TurnGrant | None) -> Turn:
        """Return the turn that was granted; without one, everything is read once a gap."""
        number, of = (0, 1) if grant is None else (grant.number, grant.of)
        multiple = min(max(1, ceil(self.parts / of)), PARTS_MAX // of)
        return Turn(number, of, self.gap_s, multiple * of)


class LeasedTurns:
    """The turn of a process that leases it; asks for it when it is read by."""

    def __init__(self, sharing: Sharing, store: TurnBook, clock: Clock, sink: Sink) -> None:
        self._sharing = sharing
        self._store = store
        self._clock = clock
        self._sink = sink
        self._asked = 0
        self._held: TurnGrant | None = None
        self._until_s = -inf
        """When the lease of the turn that is held is over."""
        self._ask_at_s = -inf
        self._told: TurnGrant | None = None
        """The turn that was last told of."""

    def current(self) -> Turn:
        """Return the turn that is held now, or else the one that is nobody's: everything.

        Raises BadInput if the turn that was asked for is another's, and was never ours.
        """
        now_s = self._clock.now()
        if now_s >= self._ask_at_s:
            self._ask(now_s)
        return self._sharing.turn(self.held())

    def held(self) -> TurnGrant | None:
        """Return the turn that is leased at this moment, as far as this process knows."""
        return self._held if self._clock.now() < self._until_s else None

    def _ask(self, now_s: float) -> None:
        lease_s = self._sharing.lease_ms / MS_PER_S
        held, self._held = self._held, None  # whoever gets no answer does not know what it holds
        self._asked += 1
        answer = self._store.take_turn(
            self._sharing.request(self._asked), lease_ms=self._sharing.lease_ms
        )
        match answer:
            case None:
                self._held = held
            case TurnGrant():
                self._held, self._until_s = answer, now_s + lease_s
                self._ask_at_s = now_s + lease_s / RENEWALS
            case NoTurn():
                self._refuse(answer)
        if not isinstance(answer, TurnGrant):
            self._ask_at_s = now_s + lease_s / TRIES
        if self._held is not None and self._held != self._told:
            self._told = self._held
            self._sink(TurnChanged(self._held.number, self._held.of))

    def _refuse(self, answer: NoTurn) -> None:
        """Raise BadInput if waiting is of no use: another replica goes by this very turn."""
        sharing = self._sharing
        if sharing.fixed is None or self._told is not None or answer.held_by is None:
            return
        if answer.held_by != f"{sharing.kind}/{sharing.replica}":
            raise BadInput(
                f"{sharing.fixed.number + 1}/{sharing.fixed.of} is the turn of {answer.held_by}:"
                " give each replica its own, or `auto`",
                field="--turn",
            )
