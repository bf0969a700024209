"""Partitioned synchronisation: schedulers take turns at the parts of the cell.

Goal     Have each scheduler know another part of the cell best, so that those who place where they
         know best do not meet.
Promise  No part is older than the gap when a refresh ends, and what a refresh reads is what had its
         turn since the last one. As long as they go by one clock, the store's, no two of the
         schedulers that share out a cell read one part in the same round. New machines and
         attributes lead to a full read.
Source   ParSync (USENIX ATC 2021): every gap / N, scheduler i of N refreshes the parts p with
         p mod N = (i + round) mod N, each with a mark of its own.
"""

from dataclasses import dataclass
from math import floor, inf

import numpy as np

from omega.cell.partition import PARTS_MAX, Parts
from omega.cell.view import View
from omega.clock import Clock
from omega.events import Sink
from omega.store.protocols import ViewSource
from omega.sync.refresher import Stopwatch
from omega.workload.arrivals import MS_PER_S


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

    def round_at(self, time_s: float) -> int:
        """Return the number of the round at a time; each lasts gap / N."""
        return floor(time_s * self.of / self.gap_s)

    def parts_of(self, round_: int) -> range:
        """Return the parts that are read in a round: those p with p mod N = (i + round) mod N."""
        return range((self.number + round_) % self.of, self.parts, self.of)


class PartitionedRefresher:
    """Patches the view with what changed in the parts whose turn it is."""

    def __init__(self, store: ViewSource, clock: Clock, sink: Sink, turn: Turn) -> None:
        self._store = store
        self._turn = turn
        self._stopwatch = Stopwatch(clock, sink)
        self._ahead_s = 0.0
        """By how much the store's clock is ahead of ours."""
        self._round = 0
        """The last one in which we read."""
        self._marks = [0] * turn.parts
        self._read_at = np.zeros(turn.parts)

    def refresh(self, view: View | None) -> View:
        """Return the view with the parts that are due; as it is, within one round.

        A new one if there was none, or if the generation moved.
        """
        began = self._stopwatch.now()
        if view is None:
            return self._read_all(began)
        now = self._turn.round_at(began + self._ahead_s)
        rounds = self._since(now)
        due = tuple(sorted({part for one in rounds for part in self._turn.parts_of(one)}))
        if not due:
            return view
        mark = min(self._marks[part] for part in due)
        changes = self._store.changes_since(mark, Parts(due, self._turn.parts))
        if changes.generation != view.generation:
            return self._read_all(began)
        view.patch(changes.rows)
        age_s = float((began - self._read_at[list(due)]).mean())
        self._note(view, list(due), now, changes.mark, began)
        view.mark = min(self._marks)
        self._stopwatch.report(began, rows=len(changes.rows), full=False, age_s=age_s)
        return view

    def _since(self, now: int) -> range:
        """Return the rounds that have begun since we last read; the last N have all parts."""
        return range(max(self._round + 1, now - self._turn.of + 1), now + 1)

    def _read_all(self, began: float) -> View:
        self._ahead_s = self._store.now_ms() / MS_PER_S - self._stopwatch.now()
        view = View(self._store.snapshot())
        now = self._turn.round_at(began + self._ahead_s)
        self._note(view, list(range(self._turn.parts)), now, view.mark, began)
        self._stopwatch.report(began, rows=len(view), full=True)
        return view

    def _note(self, view: View, parts: list[int], now: int, mark: int, began: float) -> None:
        """Remember what was read, in which round, and when; tell the view when."""
        self._round = now
        self._read_at[parts] = began
        for part in parts:
            self._marks[part] = mark
        view.parts_read_s = self._read_at.copy()
