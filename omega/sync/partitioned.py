"""Partitioned synchronisation: schedulers read the parts of the cell in turns.

Goal     Let the freshest part of the view differ between schedulers, so that schedulers that place
         where their views are fresh do not conflict.
Promise  A refresh reads the parts that were due since the last one, and when it ends no part is
         older than the gap. All schedulers count rounds by the store's clock, so no two of a group
         read the same part in the same round. When the turn changes, the changes of all parts are
         read at once. New machines and attributes lead to a full read.
Source   ParSync (USENIX ATC 2021): every gap / N, scheduler i of N refreshes the parts p with
         p mod N = (i + round) mod N, each with a mark of its own.
"""

import numpy as np

from omega.cell.partition import Parts
from omega.cell.view import View
from omega.clock import Clock
from omega.events import Sink
from omega.store.protocols import ViewSource
from omega.sync.refresher import RefreshTimer
from omega.sync.turns import Turn, Turns
from omega.workload.arrivals import MS_PER_S


class PartitionedRefresher:
    """Patches the view with the rows that changed in the parts that are due."""

    def __init__(self, store: ViewSource, clock: Clock, sink: Sink, turns: Turns) -> None:
        self._store = store
        self._turns = turns
        self._timer = RefreshTimer(clock, sink)
        self._ahead_s = 0.0
        """By how much the store's clock is ahead of this process's clock."""
        self._round = 0
        """The last round in which this process read."""
        self._has_read = False
        self._begin(Turn())

    def refresh(self, view: View | None) -> View:
        """Return the view, patched in the parts that are due.

        Within one round the view is returned unchanged. It is a new view if there was none, or if
        the generation changed.
        """
        turn = self._turns.current()
        began = self._timer.now()
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
        self._timer.report(began, rows=len(changes.rows), full=False, age_s=age_s)
        return view

    def close(self) -> None:
        """Give back the turn, if it is leased. Raises StoreUnavailable."""
        self._turns.close()

    def _due(self, turn: Turn, now: int) -> tuple[int, ...]:
        """Return the parts due in all rounds since the last read; every part if the turn is new."""
        if turn != self._turn:
            return tuple(range(self._turn.parts))
        # N rounds in a row have all parts.
        rounds = range(max(self._round + 1, now - turn.of + 1), now + 1)
        return tuple(sorted({part for round_ in rounds for part in turn.parts_of(round_)}))

    def _begin(self, turn: Turn) -> None:
        self._turn = turn
        self._marks = [0] * turn.parts
        self._read_at = np.zeros(turn.parts)

    def _read_all(self, turn: Turn, began: float) -> View:
        ahead_s = self._store.now_ms() / MS_PER_S - self._timer.now()
        view = View(self._store.snapshot())
        age_s = began - float(self._read_at.min()) if self._has_read else 0.0
        self._begin(turn)
        self._ahead_s = ahead_s
        now = self._turn.interval_at(began + self._ahead_s)
        self._note(view, list(range(self._turn.parts)), now, view.mark, began)
        self._timer.report(began, rows=len(view), full=True, age_s=age_s)
        return view

    def _note(self, view: View, parts: list[int], now: int, mark: int, began: float) -> None:
        """Record what was read, in which round and when; set the times in the view."""
        self._has_read = True
        self._round = now
        self._read_at[parts] = began
        for part in parts:
            self._marks[part] = mark
        view.parts_read_s = self._read_at.copy()
