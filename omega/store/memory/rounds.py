"""Rounds, kept in memory.

Goal     A memory store records who plans a round, and the memo of the last one.
Promise  A memo is converted to JSON and back, as in Postgres.
Source   docs/decisions/0028-rounds-on-the-shared-cell.md.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from omega.clock import Clock
from omega.limits import LIMITS
from omega.model.round_summary import RoundSummary
from omega.store.memory.jobs import milliseconds
from omega.store.readable import readable_text
from omega.store.rounds import LastRound, NotYet, Round


@dataclass
class KeptRound:
    """The last round of a kind of scheduler, and its memo."""

    number: int
    began_s: float
    ends_s: float
    memo: str
    holder: str
    before: str
    """The holder of the round before."""


class MemoryRounds:
    """The last round of each kind of scheduler."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rounds: dict[str, KeptRound] = {}

    def begin_round(self, scheduler: str, *, holder: str, length_ms: int) -> Round | NotYet:
        """Begin the next round of a kind of scheduler if the last one is over; otherwise NotYet."""
        now_s = self._clock.now()
        kept = self._rounds.setdefault(scheduler, KeptRound(0, now_s, now_s, "{}", "", ""))
        ends_s = min(kept.ends_s, kept.began_s + length_ms / 1_000)
        if ends_s > now_s:
            return NotYet(milliseconds(ends_s - now_s))
        kept.number += 1
        kept.before, kept.holder = kept.holder, holder
        kept.began_s, kept.ends_s = now_s, now_s + length_ms / 1_000
        return Round(kept.number, milliseconds(now_s), json.loads(kept.memo))

    def last_round(self, scheduler: str) -> KeptRound | None:
        """Return the last round of a kind of scheduler; None if there was none."""
        return self._rounds.get(scheduler)

    def last_rounds(self) -> list[LastRound]:
        """Return the last round of each kind of scheduler that has had one, by kind."""
        return [
            LastRound(
                scheduler=kind,
                number=kept.number,
                began_ms=milliseconds(kept.began_s),
                length_ms=milliseconds(kept.ends_s - kept.began_s),
                summary=RoundSummary.of(json.loads(kept.memo).get("told")),
            )
            for kind, kept in sorted(self._rounds.items())
        ]

    def note_round(self, scheduler: str, number: int, memo: Mapping[str, object]) -> bool:
        """Keep the memo for the next round; return False if that has begun already."""
        text = readable_text(memo, bytes_max=LIMITS.memo_bytes_max)
        kept = self._rounds.get(scheduler)
        if kept is None or kept.number != number:
            return False
        kept.memo = text
        return True
