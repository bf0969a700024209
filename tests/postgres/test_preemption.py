"""Preemption on Postgres, by schedulers that run as processes do: two services on a full cell."""

import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace

from omega.clock import RealClock
from omega.events import (
    Event,
    JobAttempted,
    JobParked,
    JobsWoken,
    Sink,
    TransactionJudged,
    ignore,
)
from omega.framework.runner import SchedulerProcess
from omega.framework.scheduler import Scheduler
from omega.lifecycle.states import State
from omega.model.jobs import JobSpec
from omega.store.postgres.store import PostgresStore
from omega.testing.builders import a_spec
from omega.testing.steps import add_a_cell
from schedulers.batch import BatchScheduler
from schedulers.service import ServiceScheduler
from tests.fixtures.at_work import settings

MACHINES = 250
CORES = 4
TASKS = 500


def run(
    url: str,
    schedulers: Sequence[Scheduler],
    until: Sequence[int],
    *,
    lease_ms: int = 60_000,
    sink: Sink = ignore,
) -> list[Event]:
    """Run a thread for each scheduler until these jobs run; return what they reported."""
    stop = threading.Event()
    events: list[Event] = []
    left = set(until)

    def watch(event: Event) -> None:
        events.append(event)
        sink(event)
        if isinstance(event, JobAttempted) and not event.left:
            left.discard(event.job)
            if not left:
                stop.set()

    def process(number: int, scheduler: Scheduler) -> None:
        with closing(PostgresStore(url)) as store:
            SchedulerProcess(
                scheduler=scheduler,
                store=store,
                open_store=lambda: PostgresStore(url),
                clock=RealClock(stop),
                settings=settings(lease_ms),
                sink=watch,
                replica=str(number),
                run_seed=number,
                stop=stop,
            ).run()

    threads = [
        threading.Thread(target=process, args=(number, scheduler))
        for number, scheduler in enumerate(schedulers)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return events


def a_service(tasks: int) -> JobSpec:
    return replace(a_spec(tasks, scheduler="service"), precedence=100)


def full_cell(url: str, *, precedence: int = 0) -> None:
    with closing(PostgresStore(url)) as store:
        add_a_cell(store, MACHINES, cpu_milli=CORES * 1_000)
        jobs = store.submit([a_spec(100, precedence=precedence)] * (MACHINES * CORES // 100))
        run(url, [BatchScheduler()], jobs)


def test_two_services_take_the_places_of_batch_tasks_and_no_more_than_they_need(
    database_url: str,
) -> None:
    full_cell(database_url)
    with closing(PostgresStore(database_url)) as store:
        services = store.submit([a_service(TASKS // 4)] * 4)

        events = run(database_url, [ServiceScheduler(), ServiceScheduler()], services)

        assert [State.RUNNING] * 4 == [store.job(one).state for one in services]  # type: ignore[union-attr]
        batch = store.jobs(scheduler="batch")
        assert MACHINES * CORES - TASKS == sum(job.placed for job in batch)
        assert {job.evicted_by for job in batch if job.placed < job.tasks} <= {*services}
        assert [] == list(store.verify())
    evicted = sum(event.evicted for event in events if isinstance(event, TransactionJudged))
    assert TASKS == evicted


def test_a_service_of_hundreds_of_tasks_is_placed_in_one_attempt(database_url: str) -> None:
    full_cell(database_url)
    with closing(PostgresStore(database_url)) as store:
        (service,) = store.submit([a_service(TASKS)])

        events = run(database_url, [ServiceScheduler()], [service])

        attempts = [event for event in events if isinstance(event, JobAttempted)]
        assert [(service, TASKS, 1)] == [(one.job, one.placed, one.tries) for one in attempts]
        assert [] == list(store.verify())


def test_a_parked_service_is_woken_and_placed_once_the_gap_is_lowered(database_url: str) -> None:
    full_cell(database_url, precedence=95)

    def lower(event: Event) -> None:
        if isinstance(event, JobParked):
            with closing(PostgresStore(database_url)) as owner:
                owner.set_precedence_gap(5)

    with closing(PostgresStore(database_url)) as store:
        (service,) = store.submit([a_service(10)])

        events = run(database_url, [ServiceScheduler()], [service], lease_ms=1_000, sink=lower)

        status = store.job(service)
        assert status is not None
        assert (State.RUNNING, 10) == (status.state, status.placed)
        assert [] == list(store.verify())
    assert [1] == [event.jobs for event in events if isinstance(event, JobsWoken)]
