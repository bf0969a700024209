"""Jobs that keep their leases while they wait for room, because their tasks run in waves.

Goal     Place a job's next task one read and one commit after another task has ended, instead of
         handing the job back, leasing it and finding no room until then.
Promise  A job keeps its lease only if this process has placed tasks of it in the last WAIT_S, and
         found no room for the others. After KEPT_S it is handed back all the same, so that its
         tasks that were evicted meanwhile are planned, too. A job that is handed back because no
         task was placed for WAIT_S is soon parked with a reason. No job keeps its lease for longer
         than PARKED_S while one that comes before it, by precedence, then age, is parked for a
         reason that may pass, and is among the first PARKED_READ.
Source   docs/decisions/0065-kept-leases.md; Nomad's blocked evaluations.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from omega.cell.view import View
from omega.clock import Clock
from omega.framework.effects import Effects, called
from omega.framework.job_attempt import AttemptEnd, JobResult
from omega.framework.leasing import Leasing
from omega.model.arrays import Amounts
from omega.model.jobs import LeasedJob
from omega.placement.diagnosis import has_room
from omega.store.leases import HandBack, ParkedJob

WAIT_S: Final = 2.0
"""How long a job keeps its lease after tasks of it were placed."""
KEPT_S: Final = 5.0
"""How long a job keeps its lease in all."""
KEPT_MAX: Final = 64
"""How many jobs of a process keep their leases."""
PAUSE_S_MIN: Final = 0.005
PAUSE_SHARE: Final = 1 / 16
"""The pause before the next look at the view, as a share of the time since tasks were placed: a
task that ran for so long has left its room unused for a sixteenth of that, at most, where looks do
not take long."""
LOOK_SHARE: Final = 1 / 4
"""The share of its time, at most, for which a process looks whether kept jobs have room."""
PARKED_READ: Final = 8
"""How many parked jobs are read, those of highest precedence, then the oldest."""
PARKED_S: Final = 0.5
"""How often they are read."""
Rank = tuple[int, int]
"""The place of a job in the queue: minus its precedence, and its id. The smallest comes first."""
NOBODY: Final[Rank] = (sys.maxsize, sys.maxsize)


def rank(job: LeasedJob | ParkedJob) -> Rank:
    """Return the place of a job in the queue: by precedence, then age."""
    return -job.spec.precedence, job.id


@dataclass(frozen=True, eq=False, kw_only=True)
class _Kept:
    job: LeasedJob
    since_s: float
    """When it began to keep its lease."""
    placed_s: float
    """When tasks of it were placed last."""
    due_s: float
    """When to look whether it has room."""
    free: Amounts | None
    """What was free on each open machine when it found no room, (machines, kinds); None if that is
    not known: its last attempt placed tasks, and others may have ended during the commit."""

    def is_over(self, now_s: float) -> bool:
        return now_s - self.placed_s >= WAIT_S or now_s - self.since_s >= KEPT_S


class KeptLeases:
    """The jobs of one process that keep their leases while they wait for room."""

    def __init__(self, clock: Clock, leasing: Leasing) -> None:
        self._clock = clock
        self._leasing = leasing
        self._kept: dict[int, _Kept] = {}
        self._look_due_s = 0.0
        """No look before this moment: the last one took long."""
        self._placed_s: dict[int, float] = {}
        """By job, when tasks of it were placed last; the oldest entries first."""
        self._first = NOBODY
        """The parked job that comes first, of those that wait for what may change ..."""
        self._parked_due_s = 0.0
        """... and when that is to be read again."""

    def __len__(self) -> int:
        return len(self._kept)

    def pause_s(self) -> float:
        """Return the seconds to wait before the next look at the view. At least one job waits."""
        due_s = min(kept.due_s for kept in self._kept.values())
        return max(PAUSE_S_MIN, max(due_s, self._look_due_s) - self._clock.now())

    def keep(self, result: JobResult) -> bool:
        """Return whether the job keeps its lease after this attempt, and record it if it does."""
        job, now_s = result.job, self._clock.now()
        before = self._kept.pop(job.id, None)
        self._note_placed(result, now_s)
        placed_s = self._placed_s.get(job.id)
        is_behind = now_s < self._parked_due_s and rank(job) > self._first
        is_full = len(self._kept) == KEPT_MAX
        if placed_s is None or not _waits_for_room(result) or is_behind or is_full:
            return False
        kept = _Kept(
            job=replace(job, fruitless=0) if result.placed else job,
            since_s=now_s if before is None else before.since_s,
            placed_s=placed_s,
            due_s=now_s if result.placed else now_s + _pause_s(now_s, placed_s),
            free=None if result.placed or result.room is None else result.room.free,
        )
        if kept.is_over(now_s):
            return False
        self._kept[job.id] = kept
        return True

    def _note_placed(self, result: JobResult, now_s: float) -> None:
        """Record that tasks of a job were placed; drop what is WAIT_S old.

        A job that was placed whole leaves no entry: most jobs are.
        """
        if result.placed:
            self._placed_s.pop(result.job.id, None)  # the new entry comes last
            if result.ending is not AttemptEnd.DONE:
                self._placed_s[result.job.id] = now_s
        while self._placed_s:
            oldest = next(iter(self._placed_s))
            if now_s - self._placed_s[oldest] < WAIT_S:
                break
            del self._placed_s[oldest]

    def with_room(self, view: View) -> list[LeasedJob]:
        """Return the jobs of which a task fits where the view has gained room."""
        now_s = self._clock.now()
        due = [kept for kept in self._kept.values() if now_s >= kept.due_s]
        if not due or now_s < self._look_due_s:
            return []
        free = view.open_room().free
        fits = {kept.job.id for kept in due if _has_gained(kept, free) and has_room(view, kept.job)}
        for kept in due:
            if kept.job.id not in fits:
                due_s = now_s + _pause_s(now_s, kept.placed_s)
                self._kept[kept.job.id] = replace(kept, free=free, due_s=due_s)
        self._look_due_s = now_s + (self._clock.now() - now_s) / LOOK_SHARE
        return [kept.job for kept in due if kept.job.id in fits]

    def hand_back_late(self) -> Effects[None]:
        """Hand back the jobs that have waited for long enough; forget those whose lease is lost."""
        if not self._kept:
            return
        now_s, held = self._clock.now(), self._leasing.leases.holds
        self._kept = {id_: kept for id_, kept in self._kept.items() if held(kept.job)}
        yield from self._hand_back([kept for kept in self._kept.values() if kept.is_over(now_s)])

    def give_way(self) -> Effects[None]:
        """Hand back the jobs that come after one that is parked: room is for that first.

        A parked job is woken only by a check that finds room, and a kept job looks more often. If
        all that were read are parked for good, others may be parked behind the last of them: jobs
        that come after that one are handed back, too.
        """
        now_s = self._clock.now()
        if not self._kept or now_s < self._parked_due_s:
            return
        kind = self._leasing.kind
        parked = yield from called(
            "parked", lambda store: store.parked(kind, jobs_max=PARKED_READ, by_lane=False)
        )
        waiting = [rank(job) for job in parked if not job.reason.is_permanent]
        if not waiting and len(parked) == PARKED_READ:
            waiting = [rank(parked[-1])]
        self._first, self._parked_due_s = min(waiting, default=NOBODY), now_s + PARKED_S
        behind = [kept for kept in self._kept.values() if rank(kept.job) > self._first]
        yield from self._hand_back(behind)

    def _hand_back(self, kept: Sequence[_Kept]) -> Effects[None]:
        for one in kept:
            del self._kept[one.job.id]
        # Tasks of theirs were placed lately.
        yield from self._leasing.hand_back(
            [HandBack(it.job.id, it.job.token, delay_ms=0, progressed=True) for it in kept]
        )


def _has_gained(kept: _Kept, free: Amounts) -> bool:
    """Return whether some machine has more free room than when the job found none."""
    was = kept.free
    return was is None or was.shape != free.shape or bool((free > was).any())


def _pause_s(now_s: float, placed_s: float) -> float:
    return max(PAUSE_S_MIN, PAUSE_SHARE * (now_s - placed_s))


def _waits_for_room(result: JobResult) -> bool:
    """Return whether a job has found no room, and more would help.

    Where tasks may run depends on those that run already, if they are to be on different machines
    or to be spread. Which of them have ended is known to the store.
    """
    found, groups = result.diagnosis, result.job.spec.groups
    is_hopeless = found is not None and found.reason.is_permanent
    depends = any(group.different_machines or group.spread_over for group in groups)
    waits = result.ending is AttemptEnd.NO_ROOM and not result.patience_ms
    return waits and not is_hopeless and not depends
