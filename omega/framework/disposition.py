"""Disposition: what happens to a job after an attempt: back to the queue, parked, or nothing.

Goal     One pure function, so that the policy can be read, tested and discussed.
Promise  A job is parked at once if waiting cannot help or if it is over its quota; otherwise after
         a number of attempts without progress. Delays grow with that number and are jittered.
         When an attempt returns, the job's lease ends, unless it is kept (kept_leases.py).
Source   docs/decisions/0004-the-job-queue.md; parking as in Nomad's blocked evaluations.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from omega.config import Settings
from omega.framework.job_attempt import AttemptEnd, JobResult
from omega.lifecycle.backoff import delay_ms
from omega.lifecycle.states import ParkReason
from omega.model.jobs import JobSpec
from omega.store.leases import HandBack, Parking

Disposition = HandBack | Parking | None
"""None: the lease has ended already, and there is nothing to do."""
Dispose = Callable[[JobResult], Disposition]
"""Returns the disposition of a job after an attempt."""

NO_ROOM_ATTEMPTS_MAX = 3
"""Fruitless attempts before a job that finds no room is parked: a view may have been stale."""
NO_ROOM_DIVISOR: Final = 20
"""A job without room waits for a task to end, not for others to get out of its way: its delays are
this many times shorter than after conflicts."""
LOST: Final = frozenset({None, ParkReason.CONFLICTS, ParkReason.NO_ROOM})
"""Reasons to park that are due to other jobs; None: no reason to park yet."""


def disposition(attempted: JobResult, settings: Settings, rng: np.random.Generator) -> Disposition:
    """Return how to hand back or park a job; None if its lease has ended with the attempt."""
    job = attempted.job
    if attempted.ending is AttemptEnd.LEASE_LOST:
        return None
    if attempted.ending is AttemptEnd.DONE:
        # Tasks placed before the last commit may have lost their places since, by an eviction or
        # with their machine, and only the store knows. So the job is handed back. If the commit
        # completed the job, its lease has ended, and the store ignores the call.
        back = HandBack(job.id, job.token, delay_ms=0, progressed=True)
        return None if attempted.at_once else back

    fruitless = 0 if attempted.placed else job.fruitless + 1
    # A job that is patient is tried again: nothing would wake it when its patience is over.
    reason = None if attempted.patience_ms else _reason_to_park(attempted, fruitless, settings)
    if settings.losers_first and reason in LOST and not attempted.patience_ms:
        # The queue is in order of submission: a job handed back without delay returns to its head.
        wait_ms = 0 if attempted.ending is AttemptEnd.CONFLICTS else settings.backoff_initial_ms
        return _handed_back(attempted, wait_ms)
    if reason is not None:
        return Parking(job.id, job.token, reason, _detail(attempted, fruitless))
    divisor = 1 if attempted.ending is AttemptEnd.CONFLICTS else NO_ROOM_DIVISOR
    wait_ms = delay_ms(
        max(1, fruitless),
        initial_ms=max(1, settings.backoff_initial_ms // divisor),
        longest_ms=settings.backoff_max_ms,
        rng=rng,
    )
    return _handed_back(attempted, wait_ms)


def _handed_back(attempted: JobResult, wait_ms: int) -> HandBack:
    """Return how to hand a job back, to be tried at the latest when its patience is over.

    Its delays then begin anew: that it has waited for what it prefers says nothing of other room.
    """
    job, anew = attempted.job, attempted.placed > 0
    if 0 < attempted.patience_ms <= wait_ms:
        wait_ms, anew = attempted.patience_ms, True
    return HandBack(job.id, job.token, wait_ms, progressed=anew)


def _reason_to_park(attempted: JobResult, fruitless: int, settings: Settings) -> ParkReason | None:
    if attempted.ending is AttemptEnd.OVER_QUOTA:
        return ParkReason.OVER_QUOTA
    if attempted.ending is AttemptEnd.CONFLICTS:
        return ParkReason.CONFLICTS if fruitless >= settings.attempts_max else None
    if attempted.diagnosis is not None and attempted.diagnosis.reason.is_permanent:
        return attempted.diagnosis.reason
    return ParkReason.NO_ROOM if fruitless >= NO_ROOM_ATTEMPTS_MAX else None


def _detail(attempted: JobResult, fruitless: int) -> str:
    if attempted.ending is AttemptEnd.OVER_QUOTA:
        return over_quota(attempted.job.spec)
    if attempted.ending is AttemptEnd.CONFLICTS:
        return f"others were faster in {fruitless} attempts in a row"
    if attempted.diagnosis is not None:
        return attempted.diagnosis.detail
    return "no machine has room now for what is left of it"


def over_quota(spec: JobSpec) -> str:
    """Return the sentence that explains to users why a job over its quota is parked."""
    whose = f"tenant {spec.tenant} or of scheduler {spec.scheduler}"
    return f"not enough is left of the quota of {whose}"
