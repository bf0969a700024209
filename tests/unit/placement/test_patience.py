"""Patience: for how long a job waits for machines that it prefers."""

from dataclasses import replace

import numpy as np
import pytest

from omega.clock import ManualClock
from omega.config import Settings
from omega.framework.attempt import attempt
from omega.framework.disposition import disposition
from omega.framework.effects import drive
from omega.framework.job_attempt import AttemptEnd, JobResult
from omega.lifecycle.states import ParkReason
from omega.model.jobs import Constraint, JobSpec, LeasedJob, Operator, Preference
from omega.placement.patience import patience_left_ms, patient_groups, with_preferences_required
from omega.store.leases import HandBack, Parking
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_cell, a_group, a_job, a_spec, a_view
from omega.testing.steps import lease_all, places, submit_and_lease
from schedulers.batch import BatchScheduler
from schedulers.service import ServiceScheduler
from tests.unit.framework.loops import AnswersFrom, InOrder, a_replica, numbered_ids

IN_B = Preference(Constraint("zone", Operator.IN, ("b",)))
NOWHERE = Preference(Constraint("zone", Operator.IN, ("z",)))
PATIENCE_MS = 60_000
new_id = numbered_ids()
"""A store takes a transaction whose id it knows for a repeated one."""
SETTINGS = Settings(backoff_initial_ms=100, backoff_max_ms=1_000)


def patient(tasks: int = 1, *, minimum: int = 0, preferred: Preference = IN_B) -> JobSpec:
    return a_spec(tasks, minimum=minimum, preferences=(preferred,), patience_ms=PATIENCE_MS)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(clock: ManualClock) -> MemoryStore:
    """Two machines of four cores in zone a, and one in zone b."""
    store = MemoryStore(clock)
    store.add_machines(a_cell(3, attributes={"zone": ["a", "a", "b"]}))
    return store


def attempted(store: MemoryStore, *jobs: LeasedJob) -> list[JobResult]:
    replica = replace(a_replica(InOrder()), new_id=new_id)
    return drive(attempt(replica, jobs), AnswersFrom(store))


def fill_zone_b(store: MemoryStore) -> LeasedJob:
    required = a_group(4, constraints=(IN_B.constraint,))
    (job,) = submit_and_lease(store, a_spec(groups=[required], name="full"))
    (result,) = attempted(store, job)
    assert AttemptEnd.DONE is result.ending
    return result.job


def test_a_job_waits_although_others_have_room(store: MemoryStore) -> None:
    fill_zone_b(store)
    (result,) = attempted(store, *submit_and_lease(store, patient(2)))

    assert (AttemptEnd.NO_ROOM, 0, PATIENCE_MS) == (
        result.ending,
        result.placed,
        result.patience_ms,
    )
    assert result.diagnosis is not None
    assert "machine that matches has 0 free" in result.diagnosis.detail


def test_it_is_placed_where_it_prefers_as_soon_as_there_is_room(store: MemoryStore) -> None:
    full = fill_zone_b(store)
    (job,) = submit_and_lease(store, patient(2))
    attempted(store, job)
    store.cancel(full.id)

    (result,) = attempted(store, job)

    assert AttemptEnd.DONE is result.ending
    assert {3} == {places(store)[job.id, task] for task in range(2)}


def test_it_is_placed_anywhere_once_its_patience_is_over(
    store: MemoryStore, clock: ManualClock
) -> None:
    fill_zone_b(store)
    (job,) = submit_and_lease(store, patient(2))
    attempted(store, job)
    store.hand_back([HandBack(job.id, job.token, 0, progressed=False)])
    clock.advance(PATIENCE_MS / 1_000)

    (result,) = attempted(store, *lease_all(store))

    assert (AttemptEnd.DONE, 0) == (result.ending, result.patience_ms)
    assert {1} == {places(store)[job.id, task] for task in range(2)}


def test_tasks_for_which_there_is_room_do_not_wait_for_the_others(store: MemoryStore) -> None:
    (result,) = attempted(store, *submit_and_lease(store, patient(6)))

    assert (AttemptEnd.NO_ROOM, 4) == (result.ending, result.placed)
    assert PATIENCE_MS == result.patience_ms


def test_a_gang_waits_whole(store: MemoryStore) -> None:
    fill_zone_b(store)
    (result,) = attempted(store, *submit_and_lease(store, patient(3, minimum=3)))

    assert (AttemptEnd.NO_ROOM, 0) == (result.ending, result.placed)
    assert PATIENCE_MS == result.patience_ms


@pytest.mark.parametrize(
    "spec", [patient(2, preferred=NOWHERE), patient(5, minimum=5)], ids=["nowhere", "gang"]
)
def test_nothing_is_waited_for_that_cannot_come(store: MemoryStore, spec: JobSpec) -> None:
    (result,) = attempted(store, *submit_and_lease(store, spec))

    assert AttemptEnd.DONE is result.ending


@pytest.mark.parametrize(
    "scheduler", [BatchScheduler(alternates=4), ServiceScheduler(alternates=4)]
)
@pytest.mark.parametrize(("patience_ms", "zones"), [(PATIENCE_MS, {"b"}), (0, {"a", "b"})])
def test_alternates_of_a_patient_group_meet_all_that_it_prefers(
    clock: ManualClock,
    scheduler: BatchScheduler | ServiceScheduler,
    patience_ms: int,
    zones: set[str],
) -> None:
    zone_of = dict(enumerate("abbabb", start=1))
    store = MemoryStore(clock)
    store.add_machines(a_cell(6, attributes={"zone": list(zone_of.values())}))
    store.submit([a_spec(scheduler=scheduler.kind, preferences=(IN_B,), patience_ms=patience_ms)])
    replica, answers = replace(a_replica(scheduler), new_id=new_id), AnswersFrom(store)

    drive(attempt(replica, lease_all(store, scheduler=scheduler.kind)), answers)

    (claims,) = (transaction.claims for transaction in answers.transactions)
    assert ["b"] == [zone_of[machine] for machine in claims.machine.tolist()]
    assert zones == {zone_of[machine] for machine in claims.alternates.machine.tolist()}


def test_patience_counts_from_the_submission() -> None:
    job = a_job(preferences=(IN_B,), patience_ms=5_000, age_ms=3_000)

    assert 2_000 == patience_left_ms(job, {0})
    assert 0 == patience_left_ms(job, ())
    view = a_view(a_cell(1, attributes={"zone": ["b"]}))
    assert {0} == patient_groups(view, job)
    assert not patient_groups(view, replace(job, age_ms=5_000))
    assert not patient_groups(view, a_job(preferences=(IN_B,)))


def test_groups_have_their_own_patience() -> None:
    groups = [
        a_group(preferences=(IN_B,), patience_ms=5_000),
        a_group(preferences=(IN_B,), patience_ms=2_000),
        a_group(),
    ]
    view = a_view(a_cell(2, attributes={"zone": ["a", "b"]}))
    asked = a_job(spec=a_spec(groups=groups), age_ms=3_000)
    job = with_preferences_required(asked, patient_groups(view, asked))

    assert [1, 0, 0] == [len(group.constraints) for group in job.spec.groups]
    assert [0, 1, 0] == [len(group.preferences) for group in job.spec.groups]


def test_a_group_that_has_its_places_waits_for_nothing() -> None:
    groups = [a_group(preferences=(IN_B,), patience_ms=5_000), a_group(2)]
    view = a_view(a_cell(1, attributes={"zone": ["b"]}))

    assert not patient_groups(view, a_job(spec=a_spec(groups=groups), runs_on={0: 1}))


def test_a_job_is_not_patient_for_a_group_that_was_placed_just_now(store: MemoryStore) -> None:
    placed = a_group(preferences=(IN_B,), patience_ms=PATIENCE_MS)
    too_many = a_group(9, cpu_milli=2_000)
    (result,) = attempted(store, *submit_and_lease(store, a_spec(groups=[placed, too_many])))

    assert (AttemptEnd.NO_ROOM, 6, 0) == (result.ending, result.placed, result.patience_ms)


def test_a_group_does_not_wait_for_what_cannot_come_although_another_waits(
    store: MemoryStore,
) -> None:
    fill_zone_b(store)
    misspelt, other = (a_group(preferences=(it,), patience_ms=9_000) for it in (NOWHERE, IN_B))
    (result,) = attempted(store, *submit_and_lease(store, a_spec(groups=[misspelt, other])))

    assert (AttemptEnd.NO_ROOM, 1) == (result.ending, result.placed)
    assert [1] == result.job.unplaced.tolist()
    assert 9_000 == result.patience_ms


def result_of(job: LeasedJob, patience_ms: int) -> JobResult:
    return JobResult(
        job=job,
        placed=0,
        tries=1,
        tasks_decided=1,
        ending=AttemptEnd.NO_ROOM,
        patience_ms=patience_ms,
    )


@pytest.mark.parametrize("patience_ms", [1, 50_000])
def test_a_patient_job_is_not_parked_and_tried_again_before_its_patience_is_over(
    patience_ms: int,
) -> None:
    rng = np.random.default_rng(1)
    end = disposition(result_of(a_job(fruitless=9), patience_ms), SETTINGS, rng)

    assert isinstance(end, HandBack)
    assert 0 < end.delay_ms <= min(patience_ms, SETTINGS.backoff_max_ms)


@pytest.mark.parametrize("losers_first", [False, True], ids=["by_age", "in_other_orders"])
def test_a_patient_job_is_tried_again_with_growing_delays(*, losers_first: bool) -> None:
    settings = SETTINGS.model_copy(update={"losers_first": losers_first})
    first, tenth = (
        disposition(result_of(a_job(fruitless=n), 50_000), settings, np.random.default_rng(1))
        for n in (0, 9)
    )

    assert isinstance(first, HandBack)
    assert isinstance(tenth, HandBack)
    assert tenth.delay_ms > 10 * first.delay_ms


@pytest.mark.parametrize(("patience_ms", "begin_anew"), [(7, True), (50_000, False)])
def test_delays_begin_anew_when_patience_is_over(patience_ms: int, *, begin_anew: bool) -> None:
    job = a_job(fruitless=9)
    end = disposition(result_of(job, patience_ms), SETTINGS, np.random.default_rng(1))

    assert isinstance(end, HandBack)
    assert begin_anew is end.progressed
    assert begin_anew is (end.delay_ms == patience_ms)


def test_a_job_whose_patience_is_over_is_parked_as_any() -> None:
    end = disposition(result_of(a_job(fruitless=9), 0), SETTINGS, np.random.default_rng(1))

    assert isinstance(end, Parking)
    assert ParkReason.NO_ROOM is end.reason


def test_a_patient_job_evicts_nobody_until_its_patience_is_over(
    store: MemoryStore, clock: ManualClock
) -> None:
    fill_zone_b(store)
    (others,) = submit_and_lease(store, a_spec(8, name="others"))
    attempted(store, others)
    spec = replace(patient(2), precedence=100)
    (job,) = submit_and_lease(store, spec)
    replica = replace(a_replica(InOrder()), new_id=new_id, preempts=True)

    (waits,) = drive(attempt(replica, [job]), AnswersFrom(store))
    store.hand_back([HandBack(job.id, job.token, 0, progressed=False)])
    clock.advance(PATIENCE_MS / 1_000)
    (evicts,) = drive(attempt(replica, lease_all(store)), AnswersFrom(store))

    assert (0, 0, PATIENCE_MS) == (waits.placed, len(waits.job.placed_task), waits.patience_ms)
    assert (AttemptEnd.DONE, 2) == (evicts.ending, evicts.placed)


def test_groups_that_are_not_patient_evict_beside_one_that_is(store: MemoryStore) -> None:
    fill_zone_b(store)
    (others,) = submit_and_lease(store, a_spec(8, name="others"))
    attempted(store, others)
    waits = a_group(preferences=(IN_B,), patience_ms=PATIENCE_MS)
    (job,) = submit_and_lease(store, a_spec(groups=[waits, a_group(2)], precedence=100))
    replica = replace(a_replica(InOrder()), new_id=new_id, preempts=True)

    (result,) = drive(attempt(replica, [job]), AnswersFrom(store))

    assert (AttemptEnd.NO_ROOM, 2, [0]) == (
        result.ending,
        result.placed,
        result.job.unplaced.tolist(),
    )
    assert PATIENCE_MS == result.patience_ms
