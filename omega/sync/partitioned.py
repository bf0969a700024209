"""Partitioned synchronisation: schedulers take turns at the parts of the cell.

Goal     Have each scheduler know another part of the cell best, so that those who place where they
         know best do not meet.
Promise  No part is older than the gap when a refresh ends, and what a refresh reads is what had its
         turn since the last one. As long as they go by one clock, the store's, no two of the
         schedulers that share out a cell read one part in the same round. When the turn changes,
         all that has changed is read at once. New machines and attributes lead to a full read.
Source   ParSync (USENIX ATC 2021): every gap / N, scheduler i of N refreshes the parts p with
         p mod N = (i + round) mod N, each with a mark of its own.
"""

import numpy as np

from omega.cell.partition import Parts
from omega.cell.view import View
from omega.clock import Clock
from omega.events import Sink
from omega.store.protocols import ViewSource
from omega.sync.refresher import Stopwatch
from omega.sync.turns import Turn, Turns
from omega.workload.arrivals import MS_PER_S


class PartitionedRefresher:
    """Patches the view with what changed in the parts whose turn it is."""

    def __init__(self, store: ViewSource, clock: Clock, sink: Sink, turns: Turns) -> None:
        self._store = store
        self._turns = turns
        self._stopwatch = Stopwatch(clock, sink)
        self._ahead_s = 0.0
        """By how much the store's clock is ahead of ours."""
        self._round = 0
        """The last one in which we read."""
        self._has_read = False
        self._begin(Turn())

    def refresh(self, view: View | None) -> View:
        """Return the view with the parts that are due; as it is, within one round.

        A new one if there was none, or if the generation moved.
        """
        turn = self._turns.current()
        began = self._stopwatch.now()
        if view is None:
            return self._read_all(turn, began)
        now = turn.interval_at(began + self._ahead_s)
        due = self._due(turn, now)
        if not due:
            return view
        mark = min(self._marks[part] for part in due)
        changes = self._store.changes_since(mark, Parts(due, self._turn.parts))
        if changes.generation != view.generation:
            return self._read_all(turn, began)
        view.patch(changes.rows)
        age_s = began - float(self._read_at[list(due)].min())
        if turn != self._turn:
            self._begin(turn)
            due = tuple(range(turn.parts))
        self._note(view, list(due), now, changes.mark, began)
        view.mark = min(self._marks)
        self._stopwatch.report(began, rows=len(changes.rows), full=False, age_s=age_s)
        return view

    def close(self) -> None:
        """Give back the turn."""
        self._turns.close()

    def _due(self, turn: Turn, now: int) -> tuple[int, ...]:
        """Return the parts of all rounds since we last read, or every part if the turn is new."""
        if turn != self._turn:
            return tuple(range(self._turn.parts))
        # The last N rounds have all parts.
        rounds = range(max(self._round + 1, now - turn.of + 1), now + 1)
        return tuple(sorted({part for round_ in rounds for part in turn.parts_of(round_)}))

    def _begin(self, turn: Turn) -> None:
        self._turn = turn
        self._marks = [0] * turn.parts
        self._read_at = np.zeros(turn.parts)

    def _read_all(self, turn: Turn, began: float) -> View:
        ahead_s = self._store.now_ms() / MS_PER_S - self._stopwatch.now()
        view = View(self._store.snapshot())
        age_s = began - float(self._read_at.min()) if self._has_read else 0.0
        self._begin(turn)
        self._ahead_s = ahead_s
        now = self._turn.interval_at(began + self._ahead_s)
        self._note(view, list(range(self._turn.parts)), now, view.mark, began)
        self._stopwatch.report(began, rows=len(view), full=True, age_s=age_s)
        return view

    def _note(self, view: View, parts: list[int], now: int, mark: int, began: float) -> None:
        """Remember what was read, in which round, and when; tell the view when."""
        self._has_read = True
        self._round = now
        self._read_at[parts] = began
        for part in parts:
            self._marks[part] = mark
        view.parts_read_s = self._read_at.copy()
