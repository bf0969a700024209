"""What becomes of a job after an attempt."""

import numpy as np
import pytest

from omega.config import Settings
from omega.framework.disposition import NO_ROOM_ATTEMPTS_MAX, disposition
from omega.framework.job_attempt import AttemptEnd, JobResult
from omega.lifecycle.states import ParkReason
from omega.placement.diagnosis import Diagnosis
from omega.store.leases import HandBack, Parking
from omega.testing.builders import a_job

SETTINGS = Settings(backoff_initial_ms=100, backoff_max_ms=1_000, attempts_max=5)
FULL = Diagnosis(ParkReason.NO_ROOM, "the roomiest machine has 0 free")


def disposition_of(
    ending: AttemptEnd,
    *,
    placed: int = 0,
    left: int = 2,
    fruitless: int = 0,
    diagnosis: Diagnosis | None = None,
    at_once: bool = False,
    settings: Settings = SETTINGS,
) -> HandBack | Parking | None:
    runs_on = dict.fromkeys(range(placed), 1)
    job = a_job(placed + left, job=9, fruitless=fruitless, runs_on=runs_on)
    attempted = JobResult(
        job=job,
        placed=placed,
        tries=1,
        tasks_decided=placed + left,
        ending=ending,
        diagnosis=diagnosis,
        at_once=at_once,
    )
    return disposition(attempted, settings, np.random.default_rng(1))


def test_a_job_that_is_done_at_once_needs_nothing() -> None:
    assert disposition_of(AttemptEnd.DONE, placed=3, left=0, at_once=True) is None


def test_a_job_that_was_done_bit_by_bit_is_given_back_for_it_may_have_lost_a_bit() -> None:
    disposition = disposition_of(AttemptEnd.DONE, placed=3, left=0)

    assert isinstance(disposition, HandBack)
    assert (0, True) == (disposition.delay_ms, disposition.progressed)


def test_a_job_whose_lease_is_lost_is_somebody_elses() -> None:
    assert disposition_of(AttemptEnd.LEASE_LOST) is None


def test_a_job_whose_tasks_ran_already_is_given_back_for_the_queue_to_see() -> None:
    job = a_job(3, runs_on={0: 1})
    nothing_left = a_job(3, runs_on={0: 1, 1: 1, 2: 1})
    attempted = JobResult(
        job=type(job)(job.id, job.token, job.spec, nothing_left.unplaced, placed=1),
        placed=0,
        tries=1,
        tasks_decided=2,
        ending=AttemptEnd.DONE,
    )

    result = disposition(attempted, SETTINGS, np.random.default_rng(1))

    assert HandBack(job.id, job.token, delay_ms=0, progressed=True) == result


def test_a_job_with_progress_soon_gets_its_next_chance() -> None:
    disposition = disposition_of(AttemptEnd.NO_ROOM, placed=1, fruitless=4, diagnosis=FULL)

    assert isinstance(disposition, HandBack)
    assert disposition.progressed
    assert 2 <= disposition.delay_ms <= 5


def test_a_job_without_room_is_tried_again_sooner_than_one_that_conflicted() -> None:
    settings = SETTINGS.model_copy(update={"backoff_initial_ms": 1})
    no_room = disposition_of(AttemptEnd.NO_ROOM, settings=settings)
    conflicted = disposition_of(AttemptEnd.CONFLICTS)

    assert isinstance(no_room, HandBack)
    assert isinstance(conflicted, HandBack)
    assert (True, True) == (no_room.delay_ms <= 1, 50 <= conflicted.delay_ms <= 100)


def test_delays_grow_with_attempts_without_progress() -> None:
    dispositions = [
        disposition_of(AttemptEnd.CONFLICTS, fruitless=fruitless) for fruitless in (0, 1, 2, 3)
    ]

    delays = [
        disposition.delay_ms for disposition in dispositions if isinstance(disposition, HandBack)
    ]
    assert 4 == len(delays)
    assert all(c / 2 <= d <= c for d, c in zip(delays, (100, 200, 400, 800), strict=True))
    assert not any(
        disposition.progressed for disposition in dispositions if isinstance(disposition, HandBack)
    )


@pytest.mark.parametrize("placed", [0, 1])
def test_what_waiting_cannot_help_is_parked_at_once(placed: int) -> None:
    hopeless = Diagnosis(ParkReason.UNKNOWN_ATTRIBUTE, "no machine has the attribute 'zoen'")

    disposition = disposition_of(AttemptEnd.NO_ROOM, placed=placed, diagnosis=hopeless)

    assert isinstance(disposition, Parking)
    assert (ParkReason.UNKNOWN_ATTRIBUTE, hopeless.detail) == (
        disposition.reason,
        disposition.detail,
    )


def test_a_job_without_room_is_parked_after_a_few_attempts() -> None:
    dispositions = [
        disposition_of(AttemptEnd.NO_ROOM, fruitless=fruitless, diagnosis=FULL)
        for fruitless in range(NO_ROOM_ATTEMPTS_MAX)
    ]

    assert [HandBack] * (NO_ROOM_ATTEMPTS_MAX - 1) + [Parking] == [
        type(disposition) for disposition in dispositions
    ]
    assert isinstance(dispositions[-1], Parking)
    assert (ParkReason.NO_ROOM, FULL.detail) == (dispositions[-1].reason, dispositions[-1].detail)


def test_a_job_that_placement_has_no_place_for_is_parked_even_undiagnosed() -> None:
    disposition = disposition_of(AttemptEnd.NO_ROOM, fruitless=NO_ROOM_ATTEMPTS_MAX)

    assert isinstance(disposition, Parking)
    assert ParkReason.NO_ROOM is disposition.reason
    assert disposition.detail


@pytest.mark.parametrize("placed", [0, 1])
def test_a_job_that_met_its_quota_is_parked_at_once_with_whose_it_may_be(placed: int) -> None:
    disposition = disposition_of(AttemptEnd.OVER_QUOTA, placed=placed)

    assert isinstance(disposition, Parking)
    assert (9, ParkReason.OVER_QUOTA) == (disposition.job, disposition.reason)
    assert "the quota of tenant default or of scheduler batch" in disposition.detail


def test_a_job_that_always_loses_is_parked_after_many_attempts() -> None:
    assert isinstance(disposition_of(AttemptEnd.CONFLICTS, fruitless=3), HandBack)

    disposition = disposition_of(AttemptEnd.CONFLICTS, fruitless=4)

    assert isinstance(disposition, Parking)
    assert ParkReason.CONFLICTS is disposition.reason
    assert "5 attempts" in disposition.detail


@pytest.mark.parametrize(
    ("ending", "delay_ms"),
    [(AttemptEnd.CONFLICTS, 0), (AttemptEnd.NO_ROOM, SETTINGS.backoff_initial_ms)],
)
@pytest.mark.parametrize("fruitless", [0, 1_000])
def test_where_losers_are_first_they_come_back_at_once_and_are_never_parked(
    ending: AttemptEnd, delay_ms: int, fruitless: int
) -> None:
    first = SETTINGS.model_copy(update={"losers_first": True})

    disposition = disposition_of(ending, fruitless=fruitless, settings=first)

    assert isinstance(disposition, HandBack)
    assert (delay_ms, False) == (disposition.delay_ms, disposition.progressed)


@pytest.mark.parametrize(
    ("ending", "diagnosis", "reason"),
    [
        (AttemptEnd.OVER_QUOTA, None, ParkReason.OVER_QUOTA),
        (AttemptEnd.NO_ROOM, Diagnosis(ParkReason.NEVER_FITS, "no machine"), ParkReason.NEVER_FITS),
    ],
)
def test_a_loser_that_waiting_cannot_help_is_parked_all_the_same(
    ending: AttemptEnd, diagnosis: Diagnosis | None, reason: ParkReason
) -> None:
    first = SETTINGS.model_copy(update={"losers_first": True})

    disposition = disposition_of(ending, diagnosis=diagnosis, settings=first)

    assert isinstance(disposition, Parking)
    assert reason is disposition.reason
