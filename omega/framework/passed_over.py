"""Lanes that are passed over, because a job of theirs or of their tenant has found no room.

Goal     Try one of ten thousand equal jobs on a full cell, and not all of them.
Promise  Each key, a tenant or a lane, has a record of jobs that found no room since the view last
         gained room. The head of a lane is passed over only in two cases: its key's record has 64
         jobs; or for some job in the record, a task of the head needs at least as much of each
         resource as a task of that job, and all tasks of the head need at least as much as that job
         needs to start. The jobs behind the head in its lane are passed over with it. After a pause
         one job of each lane is tried all the same. The first job that finds no room after the
         pause clears its key's record but for itself, and doubles the pause. When all tasks of a
         job have been placed, the jobs that need no more than it did are removed from its key's
         record: there was room for as much, so they probably found none for another reason, such as
         their constraints. If the groups of a job differ, each of its tasks counts as the average
         of all.
Source   Choosy (EuroSys 2013): who cannot use what is free is passed over;
         docs/decisions/0058-the-order-of-the-queue.md.
"""

from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

import numpy as np

from omega.clock import Clock
from omega.model.arrays import Amounts
from omega.model.jobs import LeasedJob
from omega.model.lanes import demand_left, job_demand
from omega.store.lanes import LaneHead

_Key = TypeVar("_Key")
SIZES_MAX: Final = 64
"""Once so many jobs are in the record of a key, every head with this key is passed over."""
PAUSE_S: Final = 0.1
PAUSE_S_MAX: Final = 10.0


@dataclass(eq=False)
class _Failures:
    """What found no room."""

    until_s: float
    """When a job of each lane is tried all the same."""
    pause_s: float = PAUSE_S
    needs: list[tuple[Amounts, Amounts]] = field(default_factory=list)
    """A task's average need, and what the job needs to get any task placed: (resources,) each."""

    def as_large(self, task: Amounts, whole: Amounts) -> list[bool]:
        """Return for each of the needs whether a job needs at least as much.

        `task` and `whole` (resources,) are what one of its tasks needs, and all of them.
        """
        return [
            bool((task >= of_task).all() and (whole >= at_least).all())
            for of_task, at_least in self.needs
        ]


class PassedOver(Generic[_Key]):
    """What found no room, by key.

    Under `drf` a key is a tenant; under `choosy` a lane, or all of a tenant's lanes without
    constraints.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: dict[_Key, _Failures] = {}

    def clear(self) -> None:
        """Forget everything: the view has gained room."""
        self._failures.clear()

    def note(self, key: _Key, job: LeasedJob) -> None:
        """Note that the unplaced tasks of a job found no room."""
        now_s = self._clock.now()
        known = self._failures.get(key)
        if known is None:
            known = self._failures[key] = _Failures(now_s + PAUSE_S)
        elif now_s >= known.until_s:
            known.pause_s = min(2 * known.pause_s, PAUSE_S_MAX)
            known.until_s = now_s + known.pause_s
            known.needs.clear()
        tasks = len(job.unplaced)
        task = demand_left(job) // tasks
        known.needs.append((task, task * max(1, min(job.lacking, tasks))))

    def note_placed(self, key: _Key, job: LeasedJob, tasks: int) -> None:
        """Note that so many tasks of a job were placed, all that it had left."""
        known = self._failures.get(key)
        if known is None:
            return
        task = job_demand(job.spec) // job.spec.tasks
        as_large = known.as_large(task, task * tasks)
        known.needs = [
            need for need, is_no_more in zip(known.needs, as_large, strict=True) if not is_no_more
        ]
        if not known.needs:
            del self._failures[key]

    def jobs_max(self, key: _Key, head: LaneHead, wanted: int, viewed_s: float) -> int:
        """Return how many jobs of a lane, at most `wanted`, may find room, as far as is known.

        It is one after a pause. The caller decides by a view that was read at `viewed_s`, and the
        pause is over only if it was over then. If room came free after `viewed_s`, the next read of
        the view clears the records, and the order by shares decides who gets that room. A pause
        that was judged by the present time could end before that read, and one job of each lane
        would take the room, whatever its tenant's share.
        """
        known = self._failures.get(key)
        if known is None:
            return wanted
        if viewed_s >= known.until_s:
            return min(1, wanted)
        whole = np.array(head.demand)
        as_large = known.as_large(whole // head.tasks, whole)
        is_smaller = len(as_large) < SIZES_MAX and not any(as_large)
        return wanted if is_smaller else 0
