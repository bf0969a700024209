"""Clearing machines: forced evictions on machines that failed, left or shrank.

Goal     Let any scheduler complete a change of a machine. The process that marked the machine as
         failed, gone or smaller may have died before its tasks were evicted.
Promise  Costs two comparisons of arrays when there is nothing to do. A call is harmless when
         repeated, also by several processes at once. Tasks of jobs that a transaction has locked
         are left for a later check. A call that fails, perhaps because a transaction that was left
         open has locked what it needs, is not repeated at once: failures take a twentieth of a
         process's time at most. The view is not changed: the next refresh brings the changes.
Source   docs/decisions/0015-evictions-alternates-machines.md.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

import numpy as np

from omega.cell.view import View
from omega.clock import Clock
from omega.errors import StoreUnavailable
from omega.events import Sink, StoreCallFailed, TasksLost
from omega.framework.effects import Effects, called
from omega.limits import LIMITS
from omega.model.arrays import Ids, any_kind, integers
from omega.model.machines import DEAD
from omega.model.occupants import Occupants
from omega.store.protocols import SchedulerStore

REST: Final = 19
"""How many times as long as a failure took nothing is cleared after it."""
_T = TypeVar("_T")

FAILED, SHRANK = "failed", "shrank"
"""Why tasks lose their places: their machine is down or gone, or has become too small for them."""


class MachineClearing:
    """Evicts tasks from machines that a view shows as dead, or as used above their capacity."""

    def __init__(self, clock: Clock, sink: Sink) -> None:
        self._clock = clock
        self._sink = sink
        self._rests_until_s = clock.now()
        self._cleared = integers()
        """Ids of dead machines on which nothing is left. Each is asked for what is left, because
        tasks without any demand do not show in the machine's use."""

    def check(self, view: View) -> Effects[int]:
        """Clear the machines that need it by this view; return how many tasks were evicted."""
        began_s = self._clock.now()
        if began_s < self._rests_until_s:
            return 0
        evicted = 0
        for clear in (self._clear_dead, self._enforce_notices):
            try:
                evicted += yield from clear(view)
            except StoreUnavailable as error:
                now_s = self._clock.now()
                self._rests_until_s = now_s + REST * (now_s - began_s)
                self._sink(StoreCallFailed("clear machines", str(error)))
        return evicted

    def _clear_dead(self, view: View) -> Effects[int]:
        is_dead = np.isin(view.state, DEAD)
        in_use = any_kind(view.free != view.capacity)
        # One that was open meanwhile is cleared again: tasks may have been placed there.
        self._cleared = np.intersect1d(self._cleared, view.id[is_dead])
        due = view.id[is_dead & (in_use | ~np.isin(view.id, self._cleared))]
        if not len(due):
            return 0
        lost = yield from _called_once("lose_tasks", lambda store: store.lose_tasks(due))
        self._tell(lost, FAILED)
        still_used = yield from self._still_used(due)
        self._cleared = np.setdiff1d(view.id[is_dead], still_used)
        return lost

    def _still_used(self, machine: Ids) -> Effects[Ids]:
        """Return those of these machines that have tasks, ascending."""
        used = [integers()]
        for first in range(0, len(machine), LIMITS.occupied_machines_max):
            part = machine[first : first + LIMITS.occupied_machines_max]
            occupants = yield from _called_once("occupants", partial(_occupants, part))
            used.append(occupants.machine)
        return np.unique(np.concatenate(used))

    def _enforce_notices(self, view: View) -> Effects[int]:
        if not (view.free < 0).any():
            return 0
        lost = yield from _called_once("enforce_notices", lambda store: store.enforce_notices())
        self._tell(lost, SHRANK)
        return lost

    def _tell(self, tasks: int, why: str) -> None:
        if tasks:
            self._sink(TasksLost(tasks, why))


def _called_once(operation: str, make: Callable[[SchedulerStore], _T]) -> Effects[_T]:
    """Call the store, without repeats; raise StoreUnavailable if it does not answer."""

    def once(store: SchedulerStore) -> _T | StoreUnavailable:
        try:
            return make(store)
        except StoreUnavailable as error:
            return error

    answer = yield from called(operation, once)
    if isinstance(answer, StoreUnavailable):
        raise answer
    return answer


def _occupants(machine: Ids, store: SchedulerStore) -> Occupants:
    return store.occupants(machine)
