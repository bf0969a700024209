"""Rounds on Postgres: gangs move and preempt each other by the rule that the database knows."""

import threading
from collections.abc import Iterator

from omega.clock import ManualClock
from omega.config import Settings
from omega.events import Event, TransactionJudged
from omega.framework.runner import SchedulerProcess
from omega.lifecycle.states import State
from omega.model.jobs import JobSpec, StepWork
from omega.store.postgres.store import PostgresStore
from omega.store.rounds import Round
from omega.testing.builders import a_cell, a_spec
from schedulers.ml_gpu import MlGpuScheduler

SIZES = (4, 2, 2, 1, 1, 4, 2, 1, 3, 2)
GPUS = 12
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
