"""The state of each job in an attempt, and how the attempt ended.

Goal     Keep the bookkeeping of tries apart from the loop that makes them.
Promise  A task that was granted, or runs already, is never claimed again. A refused task is claimed
         again in the next try, until two tries in a row grant nothing.
Source   the retry rule of the loop: refused tasks only, from the fresh rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

import numpy as np

from omega.cell.open_room import OpenRoom
from omega.cell.view import View
from omega.events import JobAttempted
from omega.limits import Limits
from omega.model.arrays import Ids, Index, Mask, Verdicts, all_true
from omega.model.claims import Claims
from omega.model.jobs import LeasedJob
from omega.model.outcomes import ACCEPTED, Verdict
from omega.placement.diagnosis import Diagnosis, diagnose, too_large_to_commit
from omega.placement.patience import patience_left_ms, with_preferences_required
from omega.reports.wording import things

STUCK_MAX = 2
"""Tries in a row without a grant before a job leaves the attempt. A later attempt may succeed."""


class AttemptEnd(Enum):
    """Why a job left the loop."""

    DONE = "done"  # every task has a place
    NO_ROOM = "no_room"  # placement found no room for the tasks that are left
    CONFLICTS = "conflicts"  # others took the room, try after try
    OVER_QUOTA = "over_quota"  # there is room, but a quota refused it
    LEASE_LOST = "lease_lost"  # another replica may lease the job now


ALREADY_PLACED: Final = int(Verdict.ALREADY_PLACED)
LEASE_LOST: Final = int(Verdict.LEASE_LOST)
QUOTA: Final = int(Verdict.QUOTA)


@dataclass(frozen=True, eq=False, kw_only=True)
class JobResult:
    """The result of one job's attempt."""

    job: LeasedJob
    """The job as the attempt left it: `unplaced` are the tasks that still need a place."""
    placed: int
    tries: int
    tasks_decided: int
    """Number of tasks that placement was asked for, summed over the tries."""
    ending: AttemptEnd
    diagnosis: Diagnosis | None = None
    """For NO_ROOM, why placement found no room; None if that is not known."""
    at_once: bool = False
    """Whether the last commit granted every task of the job. Then no task was placed by an earlier
    commit, and may have lost its place since."""
    room: OpenRoom | None = None
    """For NO_ROOM, the room as placement saw it last; None if that is not known."""
    looked_for_victims: bool = False
    """Whether a round has looked for victims in vain, and `diagnosis` says that not enough of what
    runs yields. False also for a job that found room after such a look."""
    patience_ms: int = 0
    """For NO_ROOM, for how much longer it waits for machines that it prefers; 0 if it does not."""

    @property
    def left(self) -> int:
        """Tasks that still need a place."""
        return len(self.job.unplaced)


def events_of(results: Sequence[JobResult], thought_s: float) -> Iterator[JobAttempted]:
    """Yield the events of jobs attempted together, their decision time divided by tasks decided."""
    decided = max(1, sum(result.tasks_decided for result in results))
    for result in results:
        share_s = thought_s * result.tasks_decided / decided
        yield JobAttempted(result.job.id, result.tries, result.placed, result.left, share_s)


class JobAttempt:
    """The state of one job during an attempt."""

    def __init__(self, job: LeasedJob, limits: Limits, *, explains: bool = True) -> None:
        self.job = job
        self.to_place = job
        """The job as placement sees it in this try: `unplaced` has only the tasks of the try."""
        self.pending = job.unplaced
        self.placed = self.tries = self.tasks_decided = 0
        self.tries_without_grant = 0
        """Tries in a row, until now, that granted nothing."""
        self.at_once = False
        self.looks: str | None = None
        """Where victims were looked for in vain, as the end of a sentence; None: nowhere."""
        self.patient_groups: frozenset[int] = frozenset()
        """The groups whose tasks the last try placed only on machines that they prefer."""
        self.ending: AttemptEnd | None = None
        self._room: OpenRoom | None = None
        self._limits = limits
        self._explains = explains
        if not len(job.unplaced):
            self.ending = AttemptEnd.DONE
        elif self._too_large is not None:
            self.ending = AttemptEnd.NO_ROOM

    @property
    def _too_large(self) -> Diagnosis | None:
        return too_large_to_commit(self.job, self._limits.claims_per_transaction_max)

    def begin_try(self) -> None:
        """Begin a try at the lowest pending tasks, as many as one transaction may claim."""
        most = self._limits.claims_per_transaction_max
        if self.pending is self.job.unplaced and len(self.pending) <= most:
            self.to_place = self.job
        else:
            self.pending = np.sort(self.pending)
            self.to_place = replace(self.job, unplaced=self.pending[:most])
        self.tries += 1
        self.tasks_decided += len(self.to_place.unplaced)

    def record_room(self, view: View) -> None:
        """Record the room in which placement claims nothing; a parked job waits for more."""
        if self._explains:
            self._room = view.open_room()

    def record_evictions(self, evicted: Index) -> None:
        """Record that tasks of the job were evicted by this attempt's own claims."""
        if len(evicted):
            self.job = without(self.job, evicted)
            self.pending = np.concatenate([self.pending, evicted])

    def record_looks(self, drawn: Ids, known: Ids, *, reclaims: bool) -> None:
        """Record where victims were looked for in vain: on machines drawn, and on those known.

        `known` are the machines of `machines_that_yield`. It is empty if not even all that yields
        in the cell would make room. `reclaims`: only tasks of tenants with larger shares count.
        """
        where = "of what runs in the cell"
        if len(known):
            where = f"on {len(np.union1d(drawn, known)):,} machines that were searched"
        whose = " and is of tenants with larger shares" if reclaims else ""
        precedence = self.job.spec.precedence
        self.looks = f"and {where}, not enough yields to precedence {precedence}{whose}"

    def place_all(self, placed: LeasedJob) -> None:
        """Record that the driver has placed all tasks of the job that were unplaced."""
        assert not len(placed.unplaced)
        grants = len(self.job.unplaced)
        self.placed += grants
        self.at_once = grants == self.job.spec.tasks
        self.job, self.pending = placed, placed.unplaced
        self.ending = AttemptEnd.DONE

    def record_outcome(self, claims: Claims, verdicts: Verdicts, machine: Ids) -> None:
        """Record the outcome of a try and set `ending` if the attempt is over for this job.

        `verdicts` and `machine` (claims,) are the part of the outcome for `claims`.
        """
        granted = verdicts == ACCEPTED
        grants = int(np.count_nonzero(granted))
        refused = claims.task[:0]
        if grants < len(verdicts):
            refused = claims.task[~granted & (verdicts != ALREADY_PLACED)]
        self.placed += grants
        self.at_once = grants == self.job.spec.tasks
        self.tries_without_grant = 0 if grants else self.tries_without_grant + 1
        self.job = with_grants(self.job, claims, machine, granted, refused)
        if self.job.lacking and len(refused):
            self.pending = self.job.unplaced  # refused as a whole, a gang may claim for any tasks
        else:
            claimable = self.to_place.unplaced
            self.pending = self.pending[len(claimable) :]
            if len(refused):
                again = claimable[np.isin(claimable, refused)]
                self.pending = np.concatenate([again, self.pending])

        if grants < len(verdicts) and (verdicts == LEASE_LOST).any():
            self.ending = AttemptEnd.LEASE_LOST
        elif not len(self.job.unplaced):
            self.ending = AttemptEnd.DONE
        elif not len(claims) or not len(self.pending):
            self.ending = AttemptEnd.NO_ROOM
        elif not grants and (verdicts == QUOTA).any():
            self.ending = AttemptEnd.OVER_QUOTA
        elif self.tries_without_grant >= STUCK_MAX or self.tries >= self._limits.tries_max:
            self.ending = AttemptEnd.CONFLICTS

    def result(self, view: View) -> JobResult:
        """Return the result of the attempt, after `ending` was set."""
        assert self.ending is not None
        return JobResult(
            job=self.job,
            placed=self.placed,
            tries=self.tries,
            tasks_decided=self.tasks_decided,
            ending=self.ending,
            diagnosis=self._diagnosis(view),
            at_once=self.at_once,
            room=self._room if self.ending is AttemptEnd.NO_ROOM else None,
            patience_ms=self._patience_ms,
        )

    @property
    def _patience_ms(self) -> int:
        waits = self.ending is AttemptEnd.NO_ROOM
        return patience_left_ms(self.job, self.patient_groups) if waits else 0

    def _diagnosis(self, view: View) -> Diagnosis | None:
        if self.ending is not AttemptEnd.NO_ROOM or not self._explains:
            return None
        if (large := self._too_large) is not None:
            return large
        found = diagnose(view, with_preferences_required(self.job, self.patient_groups))
        if found is None or found.reason.is_permanent or self.looks is None:
            return found
        return replace(found, detail=f"{found.detail}; {self.looks}")


def not_enough_yields(found: Diagnosis, job: LeasedJob, machines: int) -> Diagnosis:
    """Return the diagnosis of a job for which victims were looked for in vain.

    `machines` is the number of machines that were looked at.
    """
    return replace(
        found,
        detail=f"{found.detail}; and of what runs on the {things(machines, 'machine')} looked at,"
        f" not enough yields to precedence {job.spec.precedence}",
    )


def without(job: LeasedJob, evicted: Index) -> LeasedJob:
    """Return the job with the evicted tasks, which were placed, unplaced again."""
    kept = ~np.isin(job.placed_task, evicted)
    return replace(
        job,
        unplaced=np.union1d(job.unplaced, evicted),
        placed=job.placed - len(evicted),
        placed_task=job.placed_task[kept],
        placed_machine=job.placed_machine[kept],
    )


def with_all_placed(job: LeasedJob, machine: Ids) -> LeasedJob:
    """Return the job with each unplaced task placed on the machine of the same position."""
    return _with_places(job, job.unplaced[:0], job.unplaced, machine)


def with_grants(
    job: LeasedJob, claims: Claims, machine: Ids, granted: Mask, refused: Index
) -> LeasedJob:
    """Return the job after a try: granted tasks are placed, `refused` tasks stay unplaced.

    `machine` and `granted` (claims,). Tasks that were claimed but are neither granted nor refused,
    because they run or have ended already, are no longer unplaced.
    """
    if not len(claims):
        return job
    task, unplaced = claims.task, _still_unplaced(job, claims, granted, refused)
    if not all_true(granted):
        task, machine = task[granted], machine[granted]
    return _with_places(job, unplaced, task, machine)


def _with_places(job: LeasedJob, unplaced: Index, task: Index, machine: Ids) -> LeasedJob:
    """Return the job with these tasks placed, and those left unplaced."""
    placed = job.placed + len(task)
    if len(job.placed_task):
        task = np.concatenate([job.placed_task, task])
        machine = np.concatenate([job.placed_machine, machine])
    return LeasedJob(
        id=job.id,
        token=job.token,
        spec=job.spec,
        unplaced=unplaced,
        placed_task=task,
        placed_machine=machine,
        placed=placed,
        fruitless=job.fruitless,
        waited_ms=job.waited_ms,
        age_ms=job.age_ms,
    )


def _still_unplaced(job: LeasedJob, claims: Claims, granted: Mask, refused: Index) -> Index:
    if len(claims) == len(job.unplaced) and all_true(granted):
        return job.unplaced[:0]  # as many distinct tasks were granted as were unplaced
    unplaced = ~np.isin(job.unplaced, claims.task)
    if len(refused):
        unplaced |= np.isin(job.unplaced, refused)
    return job.unplaced[unplaced]
