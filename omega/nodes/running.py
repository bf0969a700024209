"""The tasks that run, and when each will be over, as a few arrays.

Goal     Follow hundreds of thousands of tasks and find the due ones in well under a millisecond.
Promise  A task is held once, with its latest start and end. Hearing of it again is harmless, as
         reads of what is new may repeat rows. One that was evicted is held until it would have
         ended: naming its start, nobody mistakes it for the same task placed anew.
Source   docs/decisions/0001-arrays-and-integers.md.
"""

import numpy as np

from omega.limits import LIMITS
from omega.model.allocations import Allocations
from omega.model.arrays import Ids, Index, Mask, integers

_TASKS = 1 << (LIMITS.tasks_per_job_max - 1).bit_length()
"""Keys of one job; a key is job x this + task, so that keys ascend with job and task."""


class RunningTasks:
    """Tasks with an end, ascending by job and task."""

    def __init__(self, speedup: float) -> None:
        assert speedup > 0
        self._speedup = speedup
        self._key = integers()
        self._end_ms = integers()
        self._started_ms = integers()

    def __len__(self) -> int:
        return len(self._key)

    def hear(self, allocations: Allocations) -> None:
        """Take in allocations; those without a duration never end and are left out."""
        if not len(allocations):
            return
        ends = allocations.duration_ms >= 0
        lasts_ms = np.ceil(allocations.duration_ms[ends] / self._speedup).astype(np.int64)
        heard = allocations.job[ends] * _TASKS + allocations.task[ends]
        order = np.argsort(heard, kind="stable")
        key, started_ms = heard[order], allocations.started_ms[ends][order]
        end_ms = started_ms + lasts_ms[order]

        at = np.searchsorted(self._key, key)
        known = np.zeros(len(key), dtype=np.bool_)
        inside = at < len(self._key)
        known[inside] = self._key[at[inside]] == key[inside]
        self._end_ms[at[known]] = end_ms[known]
        self._started_ms[at[known]] = started_ms[known]
        self._key = np.insert(self._key, at[~known], key[~known])
        self._end_ms = np.insert(self._end_ms, at[~known], end_ms[~known])
        self._started_ms = np.insert(self._started_ms, at[~known], started_ms[~known])

    def due(self, now_ms: int, tasks_max: int) -> Mask:
        """Say which tasks are over by now: at most so many, those first that were over first."""
        due = self._end_ms <= now_ms
        if np.count_nonzero(due) <= tasks_max:
            return due
        over = np.flatnonzero(due)
        first = over[np.argsort(self._end_ms[over], kind="stable")[:tasks_max]]
        due[:] = False
        due[first] = True
        return due

    def named(self, which: Mask) -> tuple[Ids, Index, Ids]:
        """Return the job, the task and the start of these."""
        job, task = np.divmod(self._key[which], _TASKS)
        return job, task, self._started_ms[which]

    def forget(self, which: Mask) -> None:
        """Drop these."""
        self._key = self._key[~which]
        self._end_ms = self._end_ms[~which]
        self._started_ms = self._started_ms[~which]
