"""Clearing machines of what they cannot keep: those that failed or left, and those that shrank.

Goal     Have the second step of a machine's end, and of a notice, taken by whichever scheduler
         looks next: who took the first may be dead, or may never have known that there is one.
Promise  Costs two comparisons of arrays where there is nothing to do. Each step is one transaction
         or several, and harmless when repeated, also by many at once. The view is left as it is:
         the next refresh shows what came of it.
Source   docs/decisions/0015-evictions-alternates-machines.md.
"""

import numpy as np

from omega.cell.view import View
from omega.events import Sink, TasksLost
from omega.framework.effects import Steps, asked
from omega.model.arrays import integers, some_kind
from omega.model.machines import DEAD

FAILED, SHRANK = "failed", "shrank"
"""Why tasks lose their places: their machine is down or gone, or has become too small for them."""


class Clearing:
    """Ends by force what runs on machines that a view shows as dead, or as used beyond measure."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._cleared = integers()
        """Dead machines that have been cleared: tasks that ask for nothing show in no sum."""

    def check(self, view: View) -> Steps[int]:
        """Do what is due by this view; return how many tasks lost their places."""
        failed = yield from self._clear_dead(view)
        shrank = yield from self._enforce_notices(view)
        return failed + shrank

    def _clear_dead(self, view: View) -> Steps[int]:
        is_dead = np.isin(view.state, DEAD)
        in_use = some_kind(view.free != view.capacity)
        due = view.id[is_dead & (in_use | ~np.isin(view.id, self._cleared))]
        if not len(due):
            return 0
        lost = yield from asked("lose_tasks", lambda store: store.lose_tasks(due))
        self._cleared = view.id[is_dead]
        return self._told(lost, FAILED)

    def _enforce_notices(self, view: View) -> Steps[int]:
        if not (view.free < 0).any():
            return 0
        lost = yield from asked("enforce_notices", lambda store: store.enforce_notices())
        return self._told(lost, SHRANK)

    def _told(self, tasks: int, why: str) -> int:
        if tasks:
            self._sink(TasksLost(tasks, why))
        return tasks
