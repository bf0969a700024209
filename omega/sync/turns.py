"""Turns: which parts of the cell one of several schedulers reads in which round.

Goal     Let schedulers divide the reading of the cell, with turns given by an operator or leased
         from the store.
Promise  In every round the parts of N schedulers' turns are disjoint. A leased turn is used until
         its lease ends by this process's clock, counted from before the request, and no longer.
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
from omega.store.turns import NoTurn, TurnGrant, TurnRequest, TurnStore
from omega.workload.arrivals import MS_PER_S

RENEWALS: Final = 4
"""How many times a turn is renewed in the length of a lease."""
ALONE: Final = (0, 1)
"""(number, of) of a scheduler that reads the whole cell by itself."""
TRIES: Final = 40
"""How many times in the length of a lease a process without a turn requests one ..."""
TRIES_WHILE_BUSY: Final = 16
"""... and how many times if the store is always busy with requests of other processes."""


@dataclass(frozen=True)
class Turn:
    """The turn of scheduler `number` of `of` that divide the reading of the cell.

    A single scheduler reads every part once in each gap: the paper's baseline, StateSync.
    """

    number: int = 0
    of: int = 1
    gap_s: float = 1.0
    """The time in which each scheduler reads every part once."""
    parts: int = 0
    """The number of parts of the cell, a multiple of `of`; 0: as many as schedulers."""

    def __post_init__(self) -> None:
        if not self.parts:
            object.__setattr__(self, "parts", self.of)
        assert 0 <= self.number < self.of <= self.parts <= PARTS_MAX
        assert self.parts % self.of == 0, "every round reads as many parts as any other"
        assert 0 < self.gap_s < inf

    def current(self) -> Self:
        """Return this turn, which never changes."""
        return self

    def close(self) -> None:
        """Do nothing: this turn is not leased."""

    def interval_at(self, time_s: float) -> int:
        """Return the number of the interval at a time in seconds; each round lasts gap / N."""
        return floor(time_s * self.of / self.gap_s)

    def parts_of(self, interval: int) -> range:
        """Return the parts p that are read in a round: p mod N = (i + round) mod N."""
        return range((self.number + interval) % self.of, self.parts, self.of)


class Turns(Protocol):
    """A source of turns: one that never changes, or leases."""

    def current(self) -> Turn:
        """Return the turn to use now.

        Raises StoreUnavailable, and BadInput if another replica holds the turn requested.
        """
        ...

    def close(self) -> None:
        """Give back a leased turn; harmless when repeated. Raises StoreUnavailable."""
        ...


@dataclass(frozen=True)
class TurnSettings:
    """How one process, of several that divide the reading of the cell, leases its turn."""

    kind: str
    replica: str
    gap_s: float
    lease_ms: int
    parts: int = 0
    """The least number of parts of the cell; 0: as many as schedulers."""
    fixed: tuple[int, int] | None = None
    """The turn (i, N) to lease, of scheduler i of N; None: any, with N processes in the group."""
    holder: UUID = field(default_factory=uuid4)

    @property
    def gap_ms(self) -> int:
        """The gap in whole milliseconds, at least 1; processes with equal gaps form a group."""
        return max(1, round(self.gap_s * MS_PER_S))

    def turns(self, store: TurnStore, clock: Clock, sink: Sink) -> Turns:
        """Return turns leased from the store, or an unleased turn if `fixed` is 1/1."""
        if self.fixed == ALONE:
            return self.turn(None)
        return LeasedTurns(self, store, clock, sink)

    def request(self, asked: int) -> TurnRequest:
        """Return this holder's request number `asked`."""
        is_one_each = self.fixed is not None and self.parts == self.fixed[1]
        return TurnRequest(
            self.holder,
            asked,
            self.kind,
            self.replica,
            gap_ms=self.gap_ms,
            parts=0 if is_one_each else self.parts,
            fixed=self.fixed,
        )

    def turn(self, grant: TurnGrant | None) -> Turn:
        """Return the turn that was granted; without a grant 1/1, which reads every part."""
        number, of = ALONE if grant is None else (grant.number, grant.of)
        multiple = min(max(1, ceil(self.parts / of)), PARTS_MAX // of)
        return Turn(number, of, self.gap_ms / MS_PER_S, multiple * of)


class LeasedTurns:
    """Leases the turn of one process; `current` requests or renews it when that is due."""

    def __init__(self, sharing: TurnSettings, store: TurnStore, clock: Clock, sink: Sink) -> None:
        self._sharing = sharing
        self._store = store
        self._clock = clock
        self._sink = sink
        self._asked = 0
        self._held: TurnGrant | None = None
        self._until_s = -inf
        """When the lease of the turn that is held ends."""
        self._ask_at_s = -inf
        self._held_s = clock.now()
        """When a turn was last held; if never, when this process began."""
        self._told: TurnGrant | None = None
        """The turn of the last `TurnChanged` that was emitted ..."""
        self._has_told = False
        """... and whether one was emitted at all."""
        self._has_held = False

    def current(self) -> Turn:
        """Return the turn held now; without one 1/1, which reads every part once in each gap.

        Raises StoreUnavailable, and BadInput if another replica holds the turn requested and this
        process never held one.
        """
        now_s = self._clock.now()
        if now_s >= self._ask_at_s:
            self._ask(now_s)
        held = self.held()
        self._tell(held, now_s)
        return self._sharing.turn(held)

    def close(self) -> None:
        """Give the turn back, so that other processes need not wait for the end of its lease."""
        if self._asked:
            self._held, self._asked = None, self._asked + 1
            self._store.take_turn(self._sharing.request(self._asked), lease_ms=0)

    def held(self) -> TurnGrant | None:
        """Return the turn that is leased at this moment, as far as this process knows."""
        return self._held if self._clock.now() < self._until_s else None

    def _ask(self, now_s: float) -> None:
        lease_s = self._sharing.lease_ms / MS_PER_S
        held, self._held = self._held, None  # whoever gets no answer cannot know what it holds
        self._asked += 1
        answer = self._store.take_turn(
            self._sharing.request(self._asked), lease_ms=self._sharing.lease_ms
        )
        match answer:
            case None:
                self._held = held
                self._ask_at_s = now_s + lease_s / TRIES_WHILE_BUSY
            case TurnGrant():
                self._held, self._until_s = answer, now_s + lease_s
                self._ask_at_s = now_s + lease_s / RENEWALS
            case NoTurn():
                self._ask_at_s = now_s + lease_s / TRIES
                self._refuse(answer)

    def _tell(self, held: TurnGrant | None, now_s: float) -> None:
        """Emit `TurnChanged` if the turn is another one, or if there was none for a whole lease."""
        if held is not None:
            self._held_s, self._has_held = now_s, True
        elif now_s - self._held_s <= self._sharing.lease_ms / MS_PER_S:
            return  # a short time without a turn is usual when replicas start and stop
        if held != self._told or (held is None and not self._has_told):
            self._told, self._has_told = held, True
            self._sink(TurnChanged(None if held is None else (held.number, held.of)))

    def _refuse(self, answer: NoTurn) -> None:
        """Raise BadInput if waiting is useless because another replica holds the fixed turn.

        A holder of the same name may be an earlier process of this replica. It is waited for until
        that process's lease is over.
        """
        sharing = self._sharing
        if sharing.fixed is None or self._has_held or answer.held_by is None:
            return
        is_over = self._clock.now() - self._held_s > sharing.lease_ms / MS_PER_S
        if is_over or answer.held_by != f"{sharing.kind}/{sharing.replica}":
            number, of = sharing.fixed
            raise BadInput(
                f"{number + 1}/{of} is the turn of {answer.held_by}: give each replica its own,"
                " or `auto`",
                field="--turn",
            )
