"""How many jobs a process leases at a time in an order of start deadlines.

Goal     Give room that comes free to the job with the smallest key, whichever replica sees it.
Promise  No I/O: a driver answers its effects. While the view has no room for a task of the size of
         the smallest one seen lately, nothing is leased, so that no job is held that cannot be
         placed. The view is read once a gap (`share_gap_ms`), or less often where that takes long
         (`read_pause.py`).
Source   Xu et al., Cameo (NSDI 2021): workers take the message with the smallest key;
         docs/decisions/0059-start-deadlines.md.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from omega.cell.open_room import OpenRoom
from omega.clock import Clock
from omega.framework.disposition import Dispose, Disposition
from omega.framework.effects import Effects, refreshed
from omega.framework.job_attempt import AttemptEnd, JobResult
from omega.framework.read_pause import next_read_s
from omega.model.arrays import Amounts
from omega.model.jobs import LeasedJob
from omega.model.lanes import task_demand
from omega.ordering.fair import by_resource
from omega.store.leases import HandBack

SIZES_KEPT: Final = 64
"""Of how many jobs, the last that were leased, the smallest task is known."""
JOBS_AT_FIRST: Final = 8
"""How many jobs are leased before the size of any is known."""


class DeadlineQueue:
    """Decides how many jobs a process leases by their keys."""

    def __init__(self, clock: Clock, gap_ms: int, *, evicts: bool = False) -> None:
        """`gap_ms` is how old the view may be; `evicts`: jobs may find room where none is free."""
        self._clock = clock
        self._gap_s = gap_ms / 1_000
        self._evicts = evicts
        self._sizes: deque[Amounts] = deque(maxlen=SIZES_KEPT)
        self._due_s = 0.0
        """When the view is to be read again."""
        self._left = 0
        """How many tasks the view that was read last has room for, less those placed since."""

    def jobs_max(self, wanted: int) -> Effects[int]:
        """Return how many jobs to lease now, `wanted` or fewer."""
        if self._evicts:
            return wanted
        if self._clock.now() >= self._due_s:
            began_s = self._clock.now()
            view = yield from refreshed()
            self._due_s = next_read_s(began_s, self._clock.now(), self._gap_s)
            self._left = self._tasks_with_room(view.open_room())
        return min(wanted, self._left)

    def took(self, jobs: Sequence[LeasedJob]) -> None:
        """Note the sizes of jobs that were leased, and that they may take room."""
        for job in jobs:
            sizes = [task_demand(group) for group in job.spec.groups]
            self._sizes.append(np.min(np.array(sizes), axis=0))
        self._left = max(0, self._left - len(jobs))

    def disposed(self, dispose: Dispose) -> Dispose:
        """Return `dispose`, but for this: on a full cell, jobs without room keep their place."""

        def keep_place(result: JobResult) -> Disposition:
            end = dispose(result)
            if not isinstance(end, HandBack) or not self._finds_a_full_cell(result):
                return end
            self._left = 0
            return replace(end, delay_ms=0)

        return keep_place

    def _finds_a_full_cell(self, result: JobResult) -> bool:
        """Return whether a job found no room, and others as small as any would find none."""
        if result.ending is not AttemptEnd.NO_ROOM or result.room is None:
            return False
        return not self._tasks_with_room(result.room)

    def _tasks_with_room(self, room: OpenRoom) -> int:
        """Return for how many tasks of the smallest size there is room."""
        if not self._sizes:
            return JOBS_AT_FIRST
        smallest = np.min(np.array(self._sizes), axis=0)
        needs = smallest > 0
        if not needs.any():
            return JOBS_AT_FIRST
        free = by_resource(room.free)[:, needs]
        return int((free // smallest[needs]).min(axis=1).clip(min=0).sum())
