"""What evictions could do for a job without room, and why they may not.

Goal     Tell apart what yields, what is protected, and what a higher precedence would move.
Promise  It is judged on the machines on which a task would fit if nothing ran there, at most
         `LIMITS.occupied_machines_max`; `looked_at` and `of` say how many. What is said to make
         room does so on these; that nothing makes room is said of these only.
Source   Omega (EuroSys 2013), section 3.4; docs/decisions/0036-preemption.md, 0054.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from omega.cell.view import View
from omega.limits import LIMITS
from omega.model.arrays import Ids, Mask
from omega.model.jobs import NEVER_YIELDS, PRECEDENCE_MAX, LeasedJob
from omega.model.occupants import Occupants
from omega.placement.diagnosis import with_no_task_placed
from omega.placement.feasibility import room
from omega.placement.groups import waiting_groups
from omega.reports.why.suppositions import emptied_where_open, has_room_without

MakesRoom = Callable[[Mask], bool]
"""Returns whether there is room without the jobs that are marked: (jobs,)."""

JOBS_TRIED_MAX: Final = 50
"""Jobs whose end alone is supposed, the smallest first."""
JOBS_TOLD_MAX: Final = 5


@dataclass(frozen=True)
class Evictions:
    """What evictions could do for one job."""

    preempts: bool | None
    """Whether its kind of scheduler evicts; None if that is not known here."""
    gap: int
    """By how much a precedence must be higher to evict."""
    looked_at: int
    """On how many machines was looked at who runs there ..."""
    of: int
    """... of how many on which a task would fit if nothing ran there."""
    makes_room: bool
    """Whether there is room once all that yields to its precedence is evicted."""
    protected: tuple[int, ...]
    """Jobs of a precedence that is low enough, which are not preemptible. If they yielded, there
    would be room; where one of them alone would do, only such are told."""
    precedence_needed: int | None
    """The least precedence at which what yields makes room; None if none does."""
    ends_suffice: tuple[int, ...]
    """Jobs of which the end of one alone makes room; of those that were tried, the first few."""
    gangs: tuple[int, ...]
    """Gangs among what yields, which fall as a whole if too much of them is evicted."""

    @property
    def is_complete(self) -> bool:
        """Whether every machine that matters was looked at."""
        return self.looked_at == self.of


def machines_to_ask_of(view: View, job: LeasedJob) -> tuple[Ids, int]:
    """Return the machines whose occupants matter, and how many there would be without a limit.

    If they are too many, those come first that have most free of what the job asks for.
    """
    empty, anew = emptied_where_open(view), with_no_task_placed(job)
    at = np.unique(np.concatenate([room(empty, anew, g).at for g in waiting_groups(job)]))
    if len(at) > LIMITS.occupied_machines_max:
        free = np.zeros(len(at), dtype=np.float64)
        for group in waiting_groups(job):
            demand = job.spec.groups[group].demand
            kinds = np.flatnonzero(demand)
            free += np.minimum(view.free[np.ix_(at, kinds)] / demand[kinds], 1).sum(axis=1)
        most = np.argsort(-free, kind="stable")[: LIMITS.occupied_machines_max]
        return np.sort(view.id[at[most]]), len(at)
    return view.id[at], len(at)


def evictions_for(
    view: View,
    job: LeasedJob,
    occupants: Occupants,
    *,
    looked_at: int,
    of: int,
    gap: int,
    preempts: bool | None,
) -> Evictions:
    """Return what evictions could do for a job that has no room now."""
    number = np.searchsorted(occupants.distinct_job, occupants.job)
    strangers = occupants.distinct_job != job.id
    mine = job.spec.precedence
    yields = (occupants.yields_to <= mine) & strangers
    low = (occupants.precedence + gap <= mine) & strangers
    guarded = low & (occupants.yields_to == NEVER_YIELDS)

    def makes_room(jobs: Mask) -> bool:
        return has_room_without(view, job, occupants, jobs[number])

    evicts = makes_room(yields)
    return Evictions(
        preempts=preempts,
        gap=gap,
        looked_at=looked_at,
        of=of,
        makes_room=evicts,
        protected=()
        if evicts or not guarded.any() or not makes_room(low)
        else _that_suffice(occupants, guarded, lambda one: makes_room(yields | one))
        or tuple(occupants.distinct_job[guarded][:JOBS_TOLD_MAX].tolist()),
        precedence_needed=_precedence_needed(occupants, strangers, makes_room),
        ends_suffice=_that_suffice(occupants, strangers, makes_room),
        gangs=tuple(
            occupants.distinct_job[yields & (occupants.minimum > 0)][:JOBS_TOLD_MAX].tolist()
        ),
    )


def _that_suffice(occupants: Occupants, among: Mask, makes_room: MakesRoom) -> tuple[int, ...]:
    """Return the jobs of which one alone makes room, the first few, those of few tasks first."""
    candidates = np.flatnonzero(among)
    candidates = candidates[np.argsort(occupants.running[candidates], kind="stable")]
    found: list[int] = []
    for at in candidates[:JOBS_TRIED_MAX].tolist():
        one = np.zeros(len(among), dtype=np.bool_)
        one[at] = True
        if makes_room(one):
            found.append(int(occupants.distinct_job[at]))
        if len(found) == JOBS_TOLD_MAX:
            break
    return tuple(found)


def _precedence_needed(occupants: Occupants, strangers: Mask, makes_room: MakesRoom) -> int | None:
    """Return the least precedence to which enough yields: more yields to a higher one."""
    steps = np.unique(occupants.yields_to[strangers])
    steps = steps[steps <= PRECEDENCE_MAX]
    low, high = 0, len(steps)
    while low < high:
        middle = (low + high) // 2
        if makes_room((occupants.yields_to <= steps[middle]) & strangers):
            high = middle
        else:
            low = middle + 1
    return int(steps[low]) if low < len(steps) else None
