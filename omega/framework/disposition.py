"""What becomes of a job after an attempt: back to the queue, parked, or nothing more to do.

Goal     One pure decision, so that the policy can be read, tested and argued about.
Promise  A job is parked at once only where waiting cannot help; otherwise after a number of
         attempts without progress. Delays grow with them and are jittered. No job keeps a lease
         that nobody renews, unless its attempt was killed.
Source   docs/decisions/0004-the-job-queue.md; parking as in Nomad's blocked evaluations.
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from omega.config import Settings
from omega.framework.progress import Attempted, Ending
from omega.lifecycle.backoff import delay_ms
from omega.lifecycle.states import ParkReason
from omega.model.jobs import JobSpec
from omega.store.leases import HandBack, Parking

Policy = Callable[[Attempted], HandBack | Parking | None]
"""Says what to do with a job after an attempt; None where its lease has ended with it."""

NO_ROOM_ATTEMPTS_MAX = 3
"""Fruitless attempts before a job that finds no room is parked: the view may have been stale."""
LOST: Final = frozenset({None, ParkReason.CONFLICTS, ParkReason.NO_ROOM})
"""Reasons to park that others have given by being faster; None: there is none yet."""


def disposition(
    attempted: Attempted, settings: Settings, rng: np.random.Generator
) -> HandBack | Parking | None:
    """Say what to do with a job; None where its lease has ended with the attempt."""
    job = attempted.job
    if attempted.ending is Ending.LEASE_LOST:
        return None
    if attempted.ending is Ending.DONE:
        # What had a place before the last commit may have lost it by then, to an eviction or with
        # its machine, and only the store knows. It passes over a job whose lease ended with the
        # commit, as that of a complete one does.
        back = HandBack(job.id, job.token, delay_ms=0, progressed=True)
        return None if attempted.at_once else back

    fruitless = 0 if attempted.placed else job.fruitless + 1
    reason = _reason_to_park(attempted, fruitless, settings)
    if settings.losers_first and reason in LOST:
        # The queue is by submission: whoever comes back at once comes back to its head.
        wait_ms = 0 if attempted.ending is Ending.CONFLICTS else settings.backoff_initial_ms
        return HandBack(job.id, job.token, wait_ms, progressed=attempted.placed > 0)
    if reason is not None:
        return Parking(job.id, job.token, reason, _detail(attempted, fruitless))
    wait_ms = delay_ms(
        max(1, fruitless),
        initial_ms=settings.backoff_initial_ms,
        longest_ms=settings.backoff_max_ms,
        rng=rng,
    )
    return HandBack(job.id, job.token, wait_ms, progressed=attempted.placed > 0)


def _reason_to_park(attempted: Attempted, fruitless: int, settings: Settings) -> ParkReason | None:
    if attempted.ending is Ending.OVER_QUOTA:
        return ParkReason.OVER_QUOTA
    if attempted.ending is Ending.CONFLICTS:
        return ParkReason.CONFLICTS if fruitless >= settings.attempts_max else None
    if attempted.diagnosis is not None and attempted.diagnosis.reason.is_permanent:
        return attempted.diagnosis.reason
    return ParkReason.NO_ROOM if fruitless >= NO_ROOM_ATTEMPTS_MAX else None


def _detail(attempted: Attempted, fruitless: int) -> str:
    if attempted.ending is Ending.OVER_QUOTA:
        return over_quota(attempted.job.spec)
    if attempted.ending is Ending.CONFLICTS:
        return f"others were faster in {fruitless} attempts in a row"
    if attempted.diagnosis is not None:
        return attempted.diagnosis.detail
    return "no machine has room now for what is left of it"


def over_quota(spec: JobSpec) -> str:
    """Say why a job that met its quota is parked."""
    whose = f"tenant {spec.tenant} or of scheduler {spec.scheduler}"
    return f"not enough is left of the quota of {whose}"
