"""Waking parked jobs when something has changed that could help them.

Goal     Park no job for ever: while there is room for parked jobs, each check wakes about as many
         as fit.
Promise  Parked jobs are read only if the view has gained room since the last check or since this
         process parked a job for want of room, if the cell's generation has changed, if more is
         left of a quota than before, if this process has parked a job for conflicts or over its
         quota since the last check, or if the last check did not wake all jobs that it could. Jobs
         parked for a permanent reason are considered only if machines have joined,
         opened or grown since: freed room does not help them. For a scheduler that preempts, the
         parked jobs are also read when a look at what yields is due (`yield_waking.py`).
Source   Nomad's blocked evaluations, as comparisons of arrays.
"""

from collections.abc import Sequence

from omega.cell.open_room import OpenRoom
from omega.cell.view import View
from omega.events import JobsWoken, Sink
from omega.framework.effects import Effects, called
from omega.framework.fair_queue import FairQueue
from omega.framework.quota_admission import QuotasLeft
from omega.framework.room_watch import RoomWatch
from omega.framework.wakeable import wakeable
from omega.framework.yield_waking import YieldWaking
from omega.lifecycle.states import ParkReason
from omega.model.claims import Granularity
from omega.store.leases import ParkedJob

PARKED_MAX = 10_000
"""How many parked jobs one check reads: those of highest precedence, or with a fair order so many
of each lane."""


class Waker:
    """Moves parked jobs of one scheduler kind back to the queue when they would fit."""

    def __init__(
        self,
        kind: str,
        sink: Sink,
        granularity: Granularity = Granularity.INCREMENTAL,
        yield_waking: YieldWaking | None = None,
        room_watch: RoomWatch | None = None,
        fair: FairQueue | None = None,
    ) -> None:
        """`yield_waking` is for schedulers that preempt.

        `room_watch` is told when jobs are parked for want of room. Without `fair`, the parked jobs
        are considered by precedence, then age.
        """
        self._kind = kind
        self._fair = fair
        self._yield_waking = yield_waking
        self._room_watch = room_watch
        self._sink = sink
        self._room: OpenRoom | None = None
        self._generation = -1
        self._conflicts = False
        self._held_back = False
        self._quotas_left = QuotasLeft(granularity)
        self._woken: set[int] = set()
        """Jobs woken since the view last gained room; they have been tried in that room."""
        self._hopeful: set[int] = set()
        """Parked jobs not woken since machines last joined, opened or grown."""

    def note(self, reasons: Sequence[ParkReason], rooms: Sequence[OpenRoom] = ()) -> None:
        """Record why jobs are parked: after conflicts a job may fit although nothing changes.

        `rooms` are those in which placement found no place. What was taken, or closed, and came
        back between two checks is a gain for these jobs.
        """
        self._conflicts = self._conflicts or ParkReason.CONFLICTS in reasons
        if ParkReason.OVER_QUOTA in reasons:
            self._quotas_left.note()
        if ParkReason.NO_ROOM in reasons and self._room_watch is not None:
            self._room_watch.begin()
        for room in rooms:
            if self._room is not None:
                self._room = self._room.lowest(room)

    def check(self, view: View) -> Effects[int]:
        """Wake the parked jobs that have room in this view, or would if lower precedences made way.

        Return how many were woken.
        """
        room, before = view.open_room(), self._room
        if before is None or view.generation != self._generation:
            moved = gained = True
        else:
            moved = bool((room.capacity > before.capacity).any())
            gained = moved or bool((room.free > before.free).any())
        conflicts, self._conflicts = self._conflicts, False
        self._room, self._generation = room, view.generation
        grew = yield from self._quotas_left.grew()
        if gained:
            self._woken.clear()
        of_room = gained or grew or conflicts or self._held_back
        looks = self._yield_waking
        if looks is not None and not looks.is_due(view, gained=gained or grew or conflicts):
            looks = None
        if not of_room and looks is None:
            return 0
        parked = yield from self._parked(view)
        ids = {job.id for job in parked}
        self._hopeful = ids if moved else self._hopeful & ids
        admission, fit = self._quotas_left.admission(), list[int]()
        if of_room:
            helped = [job for job in parked if self._may_be_helped(job, gained=gained)]
            fit = wakeable(view, helped, admission)
            self._held_back = 0 < len(fit) < len(helped)
        if looks is not None:
            have_room = set(fit)
            others = [job for job in parked if job.id not in have_room]
            others = [job for job in others if self._may_fit(job)]
            fit += yield from looks.look(view, others, admission)
        if not fit:
            return 0
        woken = yield from called("wake", lambda store: store.wake(fit))
        self._woken.update(woken)
        self._hopeful.difference_update(woken)
        # Another process woke the others, or they are locked: they are tried again.
        missed = set(fit).difference(woken)
        self._held_back = self._held_back or bool(missed)
        if self._yield_waking is not None:
            self._yield_waking.not_woken(missed)
        if woken:
            self._sink(JobsWoken(len(woken)))
        return len(woken)

    def _parked(self, view: View) -> Effects[list[ParkedJob]]:
        """Read the parked jobs, in the order in which room is to be found for them."""
        fair = self._fair
        parked = yield from called(
            "parked",
            lambda store: store.parked(self._kind, jobs_max=PARKED_MAX, by_lane=fair is not None),
        )
        return parked if fair is None else (yield from fair.parked_in_order(parked, view))

    def _may_be_helped(self, job: ParkedJob, *, gained: bool) -> bool:
        """Return whether the job may fit now, by its park reason and what has changed since."""
        if job.reason in (ParkReason.CONFLICTS, ParkReason.OVER_QUOTA):
            return True
        if job.id in self._woken or not (gained or self._held_back):
            return False
        return self._may_fit(job)

    def _may_fit(self, job: ParkedJob) -> bool:
        """Return whether the reason for which the job is parked may not hold any more."""
        is_hopeful = job.id in self._hopeful or job.generation < self._generation
        return is_hopeful or not job.reason.is_permanent
