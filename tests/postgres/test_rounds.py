"""Rounds on Postgres: gangs move and preempt each other by the rule that the database knows."""

import threading
from collections.abc import Iterator
from dataclasses import replace

from omega.clock import ManualClock
from omega.config import Settings
from omega.events import Event, TransactionJudged
from omega.framework.runner import SchedulerProcess
from omega.lifecycle.states import ParkReason, State
from omega.model.arrays import integers
from omega.model.jobs import JobSpec, StepWork
from omega.store.postgres.store import PostgresStore
from omega.store.rounds import Round
from omega.testing.builders import a_cell, a_group, a_spec
from omega.testing.steps import a_running_job, grant, lease_all, status_of
from schedulers.ml_gpu import MlGpuScheduler

SIZES = (4, 2, 2, 1, 1, 4, 2, 1, 3, 2)
GPUS = 12
ROUNDS_MAX = 10_000
NOT_OURS = {"jobs": [True, -1, 10**30, "1"], "plan": {"jobs": "all"}}


def in_steps(gpus: int) -> JobSpec:
    work = StepWork(kind="A3C", steps=10**9)
    return a_spec(gpus, scheduler="ml-gpu", minimum=gpus, gpus=1, cpu_milli=10, work=work)


def rounds_of(store: PostgresStore, events: list[Event]) -> Iterator[int]:
    """Play rounds as fast as they come; yield how many jobs each was about."""
    process = SchedulerProcess(
        scheduler=MlGpuScheduler.configured({"round": "0.01"}),
        store=store,
        open_store=lambda: store,
        clock=ManualClock(),
        settings=Settings(),
        sink=events.append,
        replica="0",
        run_seed=7,
        stop=threading.Event(),
    )
    while True:
        if jobs := process.step():
            yield jobs


def test_gangs_take_turns_whatever_somebody_else_has_noted(store: PostgresStore) -> None:
    types = {"gpu_model": ["k80", "k80", "v100"]}
    store.add_machines(a_cell(3, gpus=4, attributes=types))
    jobs = store.submit([in_steps(gpus) for gpus in SIZES])
    begun = store.begin_round("ml-gpu", holder="somebody", length_ms=0)
    assert isinstance(begun, Round)
    assert store.note_round("ml-gpu", begun.number, NOT_OURS)
    events: list[Event] = []
    ran: set[int] = set()

    for _, about in zip(range(8), rounds_of(store, events), strict=False):
        live = store.allocations()
        ran |= set(live.job.tolist())
        assert len(SIZES) == about
        assert GPUS - 2 <= len(live) <= GPUS
        assert [] == store.verify()

    commits = [event for event in events if isinstance(event, TransactionJudged)]
    assert [{}] * len(commits) == [commit.refused for commit in commits]
    assert sum(commit.evicted for commit in commits) > GPUS
    assert set(jobs) == ran
    states = {status.state for status in store.jobs(scheduler="ml-gpu")}
    assert {State.RUNNING, State.PENDING} == states


def test_batch_tasks_make_way_for_a_gang_beside_its_gpus(store: PostgresStore) -> None:
    store.add_machines(a_cell(2, gpus=4, cpu_milli=8_000, attributes={"gpu_model": ["k80"] * 2}))
    store.submit([a_spec(16, name="batch"), a_spec(8, name="equal", precedence=100)])
    low, _ = lease_all(store)[::-1]
    grant(store, low, range(16), [1, 2] * 8)
    gang = replace(in_steps(6), precedence=100, groups=(a_group(6, gpus=1, cpu_milli=1_000),))
    (job,) = store.submit([gang])
    events: list[Event] = []

    next(rounds_of(store, events))

    assert 6 == len(store.allocations_of([job]))
    victim = status_of(store, low)
    assert (State.PENDING, 10, job) == (victim.state, victim.placed, victim.evicted_by)
    assert [6] == [one.evicted for one in events if isinstance(one, TransactionJudged)]
    assert [] == store.verify()


def test_equals_stay_beside_free_gpus_and_the_gang_says_why_until_they_have_gone(
    store: PostgresStore,
) -> None:
    store.add_machines(a_cell(1, gpus=4, cpu_milli=8_000, attributes={"gpu_model": ["k80"]}))
    equal = a_running_job(store, a_spec(8, precedence=95), [1] * 8)
    gang = replace(in_steps(4), precedence=100, groups=(a_group(4, gpus=1, cpu_milli=1_000),))
    (job,) = store.submit([gang])
    rounds = rounds_of(store, [])

    next(rounds)

    parked = status_of(store, job)
    assert (State.PARKED, ParkReason.NO_ROOM) == (parked.state, parked.park_reason)
    assert "not enough yields to precedence 100" in (parked.park_detail or "")
    assert 8 == status_of(store, equal).placed
    store.cancel(equal.id)
    for _ in zip(range(2), rounds, strict=False):
        pass
    assert State.RUNNING is status_of(store, job).state
    assert [] == store.verify()


def test_a_job_beside_the_rounds_takes_the_gpus_of_a_gang_that_makes_no_step(
    store: PostgresStore,
) -> None:
    store.add_machines(a_cell(1, gpus=4, attributes={"gpu_model": ["k80"]}))
    (idle,) = store.submit([in_steps(4)])
    events: list[Event] = []
    rounds = rounds_of(store, events)
    for run_ms in range(1, ROUNDS_MAX):
        next(rounds)
        if is_stalled(store, idle):
            break
        store.report_progress(integers([idle]), integers([0]), integers([run_ms]))
    assert 4 == len(store.allocations_of([idle]))
    (beside,) = store.submit([a_spec(2, scheduler="ml-gpu", gpus=1, cpu_milli=10)])

    next(rounds)

    assert [2, 0] == [len(store.allocations_of([job])) for job in (beside, idle)]
    assert (State.PENDING, beside) == (
        status_of(store, idle).state,
        status_of(store, idle).evicted_by,
    )
    commits = [event for event in events if isinstance(event, TransactionJudged)]
    assert [{}] * len(commits) == [commit.refused for commit in commits]
    assert [] == store.verify()


def is_stalled(store: PostgresStore, job: int) -> bool:
    """Return whether the last round believes that a job makes steps nowhere."""
    (last,) = store.last_rounds()
    assert last.summary is not None
    return any(told.is_stalled for told in last.summary.jobs if told.job == job)
