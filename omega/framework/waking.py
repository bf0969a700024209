"""Waking parked jobs when something has changed that could help them.

Goal     Park without forgetting: a job that fits again is back in the queue within one check.
Promise  The queue is looked at only if the view has gained room or the cell's generation has moved.
         Permanent reasons are looked into only when machines have joined, opened or grown: freed
         room cures none.
Source   Nomad's blocked evaluations, as one comparison of arrays.
"""

from collections.abc import Hashable, Sequence
from uuid import UUID

import numpy as np

from omega.cell.view import View
from omega.events import JobsWoken, Sink
from omega.framework.patience import Patience
from omega.lifecycle.states import ParkReason
from omega.model.arrays import Amounts
from omega.model.jobs import LeasedJob
from omega.model.machines import MachineRows
from omega.placement.diagnosis import has_room
from omega.store.base import JobQueue, ParkedJob

PARKED_MAX = 10_000
"""Parked jobs looked at in one check, those of highest precedence first."""

NOBODYS = UUID(int=0)
"""The token of a job that is looked at without a lease."""


class Waker:
    """Moves parked jobs of one scheduler kind back to the queue when they would fit."""

    def __init__(self, kind: str, queue: JobQueue, sink: Sink, patience: Patience) -> None:
        self._kind = kind
        self._queue = queue
        self._sink = sink
        self._patiently = patience
        self._room: Amounts | None = None
        self._could = MachineRows.none().capacity  # what open machines could hold, emptied
        self._generation = -1
        self._conflicts = False

    def note(self, reasons: Sequence[ParkReason]) -> None:
        """Hear why jobs are being parked: one that lost to others may find room with no change."""
        self._conflicts = self._conflicts or ParkReason.CONFLICTS in reasons

    def check(self, view: View) -> int:
        """Wake the parked jobs that have room in this view; return how many were moved."""
        room = np.where(view.open[:, np.newaxis], view.free, 0)
        could = np.where(view.open[:, np.newaxis], view.capacity, 0)
        moved = view.generation != self._generation or bool((could > self._could).any())
        gained = moved or self._room is None or bool((room > self._room).any())
        conflicts, self._conflicts = self._conflicts, False
        self._room, self._could, self._generation = room, could, view.generation
        if not gained and not conflicts:
            return 0

        parked = self._patiently(
            "parked", lambda: self._queue.parked(self._kind, jobs_max=PARKED_MAX)
        )
        helped = [
            job
            for job in parked
            if moved
            or (gained and not job.reason.is_permanent)
            or job.reason is ParkReason.CONFLICTS
        ]
        fitting = _fitting(view, helped)
        if not fitting:
            return 0
        woken = self._patiently("wake", lambda: self._queue.wake(fitting))
        if woken:
            self._sink(JobsWoken(woken))
        return woken


def _fitting(view: View, parked: Sequence[ParkedJob]) -> list[int]:
    """Return the ids of jobs that have room, each by itself; jobs that are alike are tried once."""
    known: dict[Hashable, bool] = {}
    fitting = []
    for job in parked:
        alike = (job.spec.groups, job.spec.minimum, job.placed, job.unplaced.tobytes())
        if alike not in known:
            known[alike] = has_room(view, _as_leased(job))
        if known[alike]:
            fitting.append(job.id)
    return fitting


def _as_leased(job: ParkedJob) -> LeasedJob:
    return LeasedJob(job.id, NOBODYS, job.spec, job.unplaced, placed=job.placed)
