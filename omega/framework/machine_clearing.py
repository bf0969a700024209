"""Clearing machines: forced evictions on machines that failed, left or shrank.

Goal     Let any scheduler complete a change of a machine. The process that marked the machine as
         failed, gone or smaller may have died before its tasks were evicted.
Promise  Costs two comparisons of arrays when there is nothing to do. A call is harmless when
         repeated, also by several processes at once. The view is not changed: the next refresh
         brings the changes.
Source   docs/decisions/0015-evictions-alternates-machines.md.
"""

import numpy as np

from omega.cell.view import View
from omega.events import Sink, TasksLost
from omega.framework.effects import Effects, called
from omega.model.arrays import any_kind, integers
from omega.model.machines import DEAD

FAILED, SHRANK = "failed", "shrank"
"""Why tasks lose their places: their machine is down or gone, or has become too small for them."""


class MachineClearing:
    """Evicts tasks from machines that a view shows as dead, or as used above their capacity."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._cleared = integers()
        """Ids of dead machines that have been cleared once. Each is cleared at least once, because
        tasks without any demand do not show in the machine's use."""

    def check(self, view: View) -> Effects[int]:
        """Clear the machines that need it by this view; return how many tasks were evicted."""
        failed = yield from self._clear_dead(view)
        shrank = yield from self._enforce_notices(view)
        return failed + shrank

    def _clear_dead(self, view: View) -> Effects[int]:
        is_dead = np.isin(view.state, DEAD)
        in_use = any_kind(view.free != view.capacity)
        # One that was open meanwhile is cleared again: tasks may have been placed there.
        self._cleared = np.intersect1d(self._cleared, view.id[is_dead])
        due = view.id[is_dead & (in_use | ~np.isin(view.id, self._cleared))]
        if not len(due):
            return 0
        lost = yield from called("lose_tasks", lambda store: store.lose_tasks(due))
        self._cleared = view.id[is_dead]
        return self._told(lost, FAILED)

    def _enforce_notices(self, view: View) -> Effects[int]:
        if not (view.free < 0).any():
            return 0
        lost = yield from called("enforce_notices", lambda store: store.enforce_notices())
        return self._told(lost, SHRANK)

    def _told(self, tasks: int, why: str) -> int:
        if tasks:
            self._sink(TasksLost(tasks, why))
        return tasks
