"""How many jobs a process leases at a time in an order of start deadlines.

Goal     Give room that comes free to the job with the smallest key, whichever replica sees it.
Promise  No I/O: a driver answers its effects. While the view has no room for a task of the smallest
         size that is known, nothing is leased, so that no job is held that cannot be placed. As
         long as something is free, and jobs find no room, now and then more of the queue is looked
         at, since smaller ones may be behind them. On a full cell all keep their place. The view is
         read once a gap (`share_gap_ms`), or less often where that takes long (`read_pause.py`). A
         scheduler that preempts leases as under any order.
Source   Xu et al., Cameo (NSDI 2021): workers take the message with the smallest key;
         docs/decisions/0059-start-deadlines.md.
"""

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
"""Of how many jobs, the last that were leased, the smallest task is known; at most so many are
looked at where none of these has room."""
LOOK_S_MIN: Final = 1.0
"""The pause after the first look at jobs although none of a known size has room ..."""
LOOK_S_MAX: Final = 8.0
"""... which doubles with each look, up to this."""
JOBS_AT_FIRST: Final = 8
"""How many jobs are leased before the size of any is known, and at the first look."""


class DeadlineQueue:
    """Decides how many jobs a process leases by their keys."""

    def __init__(self, clock: Clock, gap_ms: int, *, preempts: bool = False) -> None:
        """`gap_ms` is how old the view may be; `preempts`: whether the scheduler preempts."""
        self._clock = clock
        self._gap_s = gap_ms / 1_000
        self._preempts = preempts
        self._sizes: dict[int, Amounts] = {}
        """By job, in the order in which they were leased last; a job that is tried again counts
        once."""
        self._due_s = 0.0
        """When the view is to be read again."""
        self._left = 0
        """How many tasks the view that was read last has room for, less those placed since."""
        self._is_full = False
        """Whether that view had room for none of a known size ..."""
        self._is_some_free = False
        """... and something free all the same."""
        self._is_blocked = False
        """Whether, since the last look, a job has found no room although smaller ones have some."""
        self._look_at = JOBS_AT_FIRST
        """How many jobs are looked at next, if none of a known size has room."""
        self._looks_due_s = 0.0
        self._look_gap_s = LOOK_S_MIN

    def jobs_max(self, wanted: int) -> Effects[int]:
        """Return how many jobs to lease now, `wanted` or fewer."""
        if self._preempts:
            return wanted
        if self._clock.now() >= self._due_s:
            began_s = self._clock.now()
            view = yield from refreshed()
            self._due_s = next_read_s(began_s, self._clock.now(), self._gap_s)
            room = view.open_room()
            self._left = self._tasks_with_room(room)
            self._is_full, self._is_some_free = not self._left, self._has_some(room)
            if self._left and not self._is_blocked:
                self._look_at, self._look_gap_s = JOBS_AT_FIRST, LOOK_S_MIN
        looks = self._is_full or self._is_blocked
        return min(wanted, max(self._left, self._looked_at()) if looks else self._left)

    def took(self, jobs: Sequence[LeasedJob]) -> None:
        """Note the sizes of jobs that were leased, and that they may take room."""
        before = self._smallest
        for job in jobs:
            sizes = [task_demand(group) for group in job.spec.groups]
            self._sizes.pop(job.id, None)
            self._sizes[job.id] = np.min(np.array(sizes), axis=0)
        for oldest in list(self._sizes)[: max(0, len(self._sizes) - SIZES_KEPT)]:
            del self._sizes[oldest]
        self._left = max(0, self._left - len(jobs))
        if before is None or (np.asarray(self._smallest) < before).any():
            self._look_at, self._look_gap_s = JOBS_AT_FIRST, LOOK_S_MIN

    def disposed(self, dispose: Dispose) -> Dispose:
        """Return `dispose`, but for this: on a full cell, jobs without room keep their place.

        A scheduler that preempts leases on a full cell, too, so its jobs keep the delay that they
        are given: without one it would try the same jobs again and again.
        """

        def keep_place(result: JobResult) -> Disposition:
            end = dispose(result)
            if self._preempts or not isinstance(end, HandBack):
                return end
            if not self._finds_a_full_cell(result):
                is_full = result.ending is AttemptEnd.NO_ROOM and not result.patience_ms
                self._is_blocked |= is_full
                return end
            self._left, self._is_full = 0, True
            return replace(end, delay_ms=0)

        return keep_place

    def _finds_a_full_cell(self, result: JobResult) -> bool:
        """Return whether a job found no room, and others as small as any would find none."""
        if result.ending is not AttemptEnd.NO_ROOM or result.room is None:
            return False
        self._is_some_free = self._has_some(result.room)
        return not self._tasks_with_room(result.room)

    def _looked_at(self) -> int:
        """Return how many jobs to lease, room or not: smaller ones may be behind the first.

        More are looked at the next time, later.
        """
        now_s = self._clock.now()
        if not self._is_some_free or now_s < self._looks_due_s:
            return 0
        self._is_blocked = False
        look_at, self._looks_due_s = self._look_at, now_s + self._look_gap_s
        self._look_at = min(2 * look_at, SIZES_KEPT)
        self._look_gap_s = min(2 * self._look_gap_s, LOOK_S_MAX)
        return look_at

    @property
    def _smallest(self) -> Amounts | None:
        """The least that a task of the known jobs needs of each resource."""
        if not self._sizes:
            return None
        return np.asarray(np.min(np.array(list(self._sizes.values())), axis=0))

    def _tasks_with_room(self, room: OpenRoom) -> int:
        """Return for how many tasks of the smallest size there is room."""
        smallest = self._smallest
        if smallest is None or not smallest.any():
            return JOBS_AT_FIRST
        needs = smallest > 0
        free = by_resource(room.free)[:, needs]
        return int((free // smallest[needs]).min(axis=1).clip(min=0).sum())

    def _has_some(self, room: OpenRoom) -> bool:
        """Return whether a machine has CPU and memory left, as far as known tasks need these.

        Behind tasks with GPUs there may be some without.
        """
        smallest = self._smallest
        needs = np.zeros(0, np.intp) if smallest is None else np.flatnonzero(smallest[:2])
        return bool((by_resource(room.free)[:, needs] > 0).all(axis=1).any())
