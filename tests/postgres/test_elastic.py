"""Elastic jobs on Postgres: a cell full of helpers, a service that comes, and nodes that end it."""

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial

import numpy as np
import psycopg

from omega.clock import ManualClock, RealClock
from omega.config import Settings
from omega.events import Event, HelpersPlaced, JobAttempted
from omega.framework.retry import Retry
from omega.framework.runner import SchedulerProcess
from omega.framework.scheduler import Scheduler
from omega.lifecycle.states import State
from omega.model.arrays import integers
from omega.model.elastic import Phase, Workers
from omega.model.jobs import JobSpec
from omega.nodes.live import LiveNodes
from omega.store.postgres.assignment import assign_machines
from omega.store.postgres.store import PostgresStore
from omega.store.protocols import Store
from omega.store.rounds import Round
from omega.testing.builders import a_spec
from omega.testing.faults import FaultyStore
from omega.testing.steps import LONG_MS, a_running_job, add_a_cell, grant, status_of
from schedulers.elastic import ElasticScheduler
from schedulers.service import ServiceScheduler
from tests.fixtures.at_work import settings, wait_until
from tests.fixtures.locks import in_the_way
from tests.fixtures.logins import Login, user_of
from tests.postgres.test_progress import LosesEveryOtherReply

MACHINES = 252
CORES = 4
WANTED = 5
TASKS = 1_000


def an_elastic_spec(wanted: int = WANTED, maps: int = MACHINES * CORES) -> JobSpec:
    spec = a_spec(wanted, name="index", scheduler="elastic", cpu_milli=1_000)
    return replace(spec, workers=Workers(5_000, (Phase("map", maps, 10_000),)))


class AtWork:
    """Schedulers in threads of their own, until they are told to stop."""

    def __init__(self, url: str) -> None:
        self.events: list[Event] = []
        self._url = url
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> "AtWork":
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def start(self, *schedulers: Scheduler) -> None:
        for scheduler in schedulers:
            number = len(self._threads)
            self._threads.append(threading.Thread(target=self._run, args=(number, scheduler)))
            self._threads[-1].start()

    def _run(self, number: int, scheduler: Scheduler) -> None:
        with closing(PostgresStore(self._url)) as store:
            SchedulerProcess(
                scheduler=scheduler,
                store=store,
                open_store=lambda: PostgresStore(self._url),
                clock=RealClock(self._stop),
                settings=settings(60_000),
                sink=self.events.append,
                replica=str(number),
                run_seed=number,
                stop=self._stop,
            ).run()


def know_durations(store: Store) -> None:
    """Leave a memo from which the scheduler knows how long the activities take."""
    begun = store.begin_round("elastic", holder="before", length_ms=0)
    assert isinstance(begun, Round)
    history = [["index", {"map": [10, 100_000]}]]
    memo = {"jobs": [], "plan": {"history": history, "seen": []}}
    assert store.note_round("elastic", begun.number, memo)


def attempts_of(work: AtWork, job: int) -> list[JobAttempted]:
    return [it for it in list(work.events) if isinstance(it, JobAttempted) and it.job == job]


def helpers_at_work(store: Store, jobs: Sequence[int]) -> int:
    return sum(it.placed - it.ended for job in jobs for it in store.helpers(job, jobs_max=10_000))


def test_a_service_of_a_thousand_tasks_is_placed_at_once_on_a_cell_full_of_helpers(
    database_url: str,
) -> None:
    with closing(PostgresStore(database_url)) as store, AtWork(database_url) as work:
        add_a_cell(store, MACHINES, cpu_milli=CORES * 1_000)
        know_durations(store)
        (job,) = store.submit([an_elastic_spec()])
        work.start(ElasticScheduler(), ElasticScheduler())
        full = MACHINES * CORES - WANTED
        wait_until(lambda: helpers_at_work(store, [job]) == full, "the cell to be full of helpers")
        service = replace(a_spec(TASKS, scheduler="service"), precedence=100)

        (web,) = store.submit([service])
        work.start(ServiceScheduler())
        wait_until(lambda: status_of(store, web).state is State.RUNNING, "the service to run")

        # The process says what it did after the commit by which the job runs.
        wait_until(lambda: attempts_of(work, web), "the attempt to be told")
        attempts = attempts_of(work, web)
        assert [(TASKS, 0)] == [(it.placed, it.left) for it in attempts]
        assert WANTED == status_of(store, job).placed, "nobody else was evicted"
        assert MACHINES * CORES - TASKS - WANTED == helpers_at_work(store, [job])
        assert State.RUNNING is status_of(store, job).state
        assert [] == list(store.verify())
    placed = sum(it.placed for it in work.events if isinstance(it, HelpersPlaced))
    assert placed >= full


def test_two_replicas_at_once_do_not_overshoot(database_url: str) -> None:
    with ExitStack() as stack:
        store, *rivals = (
            stack.enter_context(closing(PostgresStore(database_url))) for _ in range(4)
        )
        (machine,) = add_a_cell(store, 1, cpu_milli=99_000)
        spec = replace(an_elastic_spec(2), scheduler="batch", workers=Workers(12))
        job = a_running_job(store, spec, [machine] * 2)
        made: list[int] = []

        def ask(rival: Store) -> None:
            for tasks in (1, 3, 2, 3):
                helpers = rival.add_helpers(
                    "batch", job.id, tasks, precedence=-1, holder="b", lease_ms=LONG_MS
                )
                made.append(0 if helpers is None else helpers.spec.tasks)

        threads = [threading.Thread(target=ask, args=(rival,)) for rival in rivals]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert 10 == sum(made)
        assert 12 == len(made)
        assert [] == list(store.verify())


def test_helpers_that_are_added_while_their_parent_ends_end_with_it(database_url: str) -> None:
    """The call that ends the parent waits for the row that the other one has locked."""
    with (
        closing(PostgresStore(database_url)) as store,
        closing(PostgresStore(database_url, application_name="omega ends")) as ends,
        psycopg.connect(database_url) as adds,
        psycopg.connect(database_url, autocommit=True) as watcher,
    ):
        (machine,) = add_a_cell(store, 1, cpu_milli=99_000)
        spec = replace(an_elastic_spec(1), scheduler="batch", workers=Workers(12))
        job = a_running_job(store, spec, [machine])
        adds.execute("SELECT FROM omega.add_helpers('batch', 'b', %s, 3, -1, 60000)", (job.id,))
        named = (integers([job.id]), np.zeros(1, np.intp))
        ended: list[int] = []
        thread = threading.Thread(target=lambda: ended.append(ends.end_tasks(*named)))
        thread.start()
        waiting = (
            "SELECT FROM pg_stat_activity WHERE datname = current_database()"
            " AND application_name = 'omega ends' AND wait_event_type = 'Lock'"
        )
        wait_until(lambda: watcher.execute(waiting).fetchall(), "the call to wait for the parent")
        adds.commit()
        thread.join()

        assert [1] == ended
        (helpers,) = store.helpers(job.id)
        assert (State.SUCCEEDED, 3, 3) == (helpers.state, helpers.placed, helpers.ended)
        assert [] == list(store.verify())


def nodes_on(store: Store) -> LiveNodes:
    stop, clock = threading.Event(), ManualClock()
    events: list[Event] = []
    retry = Retry(clock, events.append, Settings(), np.random.default_rng(1), stop)
    return LiveNodes(store, clock, events.append, retry, speedup=1.0)


def test_nodes_process_activities_though_replies_are_lost(
    store: PostgresStore, database_url: str, login: Login
) -> None:
    (machine, _) = add_a_cell(store, 2, cpu_milli=40_000)
    spec = replace(an_elastic_spec(2, maps=10), scheduler="batch")
    job = a_running_job(store, spec, [machine] * 2)
    helpers = store.add_helpers("batch", job.id, 3, precedence=-1, holder="b", lease_ms=LONG_MS)
    assert helpers is not None
    grant(store, helpers, [0, 1, 2], [machine] * 3)
    url = login("warden", "omega_node")
    assign_machines(database_url, user_of(url), ["machine-1"])
    with closing(PostgresStore(url)) as own:
        nodes: Sequence[Callable[[int], int]] = [
            nodes_on(FaultyStore(own, LosesEveryOtherReply())).step,
            nodes_on(store).step,
        ]
        began_ms = int(store.allocations_of([job.id, helpers.id]).started_ms.max())
        for passed_ms in (0, 9_000, 15_000):
            assert [0, 0] == [step(began_ms + passed_ms) for step in nodes]
        (told,) = store.phases(integers([job.id]))
        assert ((5,), (50_000,)) == (told.done, told.busy_ms)
        assert 5 == sum(step(began_ms + 20_000) for step in nodes)

    assert (State.SUCCEEDED, State.SUCCEEDED) == (
        status_of(store, job).state,
        status_of(store, helpers).state,
    )
    assert ((10,), (100_000,)) == (
        store.phases(integers([job.id]))[0].done,
        store.phases(integers([job.id]))[0].busy_ms,
    )
    assert [] == list(store.verify())


def test_a_node_locks_helpers_with_the_jobs_in_the_one_order(
    store: PostgresStore, database_url: str, login: Login
) -> None:
    """Whoever waits for a helper's row holds no job that comes after it."""
    (machine,) = add_a_cell(store, 1, cpu_milli=40_000)
    spec = replace(an_elastic_spec(1), scheduler="batch")
    first = a_running_job(store, spec, [machine])
    helpers = store.add_helpers("batch", first.id, 1, precedence=-1, holder="b", lease_ms=LONG_MS)
    assert helpers is not None
    grant(store, helpers, [0], [machine])
    last = a_running_job(store, a_spec(1), [machine])
    assert first.id < helpers.id < last.id
    url = login("warden", "omega_node")
    assign_machines(database_url, user_of(url), ["machine-1"])
    named = (integers([first.id, last.id]), np.zeros(2, np.intp))
    lock = "SELECT FROM omega.job WHERE id = {} FOR NO KEY UPDATE"
    with closing(PostgresStore(url)) as own, psycopg.connect(database_url) as onlooker:
        call = partial(own.end_tasks, *named)
        with in_the_way(database_url, lock.format(helpers.id), call) as (_, future):
            free = onlooker.execute(f"{lock.format(last.id)} SKIP LOCKED".encode()).rowcount
            onlooker.rollback()
            assert not future.done()
            assert 1 == free
        assert 2 == future.result()
    assert State.SUCCEEDED is status_of(store, helpers).state
