"""Virtual nodes: tasks end when their time is up."""

import threading

import numpy as np

from omega.clock import ManualClock
from omega.config import Settings
from omega.errors import StoreUnavailable
from omega.events import Event, StoreCallFailed, TasksEnded
from omega.framework.retry import Retry
from omega.lifecycle.states import State
from omega.limits import LIMITS
from omega.model.arrays import Ids, Index
from omega.nodes.live import LiveNodes
from omega.nodes.virtual import RELEASES_PER_STEP
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_claim, a_spec, a_transaction, claims_of_job, evicting
from omega.testing.pass_through import PassThrough
from omega.testing.steps import (
    a_leased_job,
    a_running_job,
    add_a_cell,
    end,
    grant,
    lease_all,
    status_of,
)


class Listening(PassThrough):
    """Keeps the size of each release, and may be away."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.releases: list[int] = []
        self.absences = 0

    def end_tasks(self, job: Ids, task: Index, started_ms: Ids | None = None) -> int:
        if self.absences:
            self.absences -= 1
            raise StoreUnavailable("the server is away")
        self.releases.append(len(job))
        return super().end_tasks(job, task, started_ms)


class Alarm(ManualClock):
    """Sets the stop event when time is up."""

    def __init__(self, stop: threading.Event) -> None:
        super().__init__()
        self.stop = stop
        self.until = float("inf")

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if self.now() >= self.until:
            self.stop.set()


class TestVirtualNodes:
    """Nodes on a memory store with one large machine."""

    def setup_method(self) -> None:
        self.stop = threading.Event()
        self.clock = Alarm(self.stop)
        self.store = Listening(MemoryStore(self.clock))
        self.events: list[Event] = []
        add_a_cell(self.store, 1, cpu_milli=1_000_000)
        self.nodes = self.some_nodes()

    def some_nodes(self, speedup: float = 1.0) -> LiveNodes:
        rng = np.random.default_rng(1)
        retry = Retry(self.clock, self.events.append, Settings(), rng, self.stop)
        return LiveNodes(self.store, self.clock, self.events.append, retry, speedup=speedup)

    def run(self, tasks: int, duration_ms: int | None) -> int:
        spec = a_spec(tasks, duration_ms=duration_ms, cpu_milli=1)
        return a_running_job(self.store, spec, [1] * tasks, cpu_milli=1).id

    def test_a_job_succeeds_when_its_tasks_have_run_their_time(self) -> None:
        job = self.run(3, duration_ms=2_000)

        assert 0 == self.nodes.step(1_999)
        assert 3 == self.nodes.step(2_000)
        assert State.SUCCEEDED is status_of(self.store, job).state
        assert [TasksEnded(3)] == self.events
        assert 0 == int(self.store.snapshot().rows.used.sum())

    def test_tasks_are_followed_as_they_come(self) -> None:
        first = self.run(1, duration_ms=1_000)
        self.nodes.step(0)
        self.clock.advance(0.5)
        second = self.run(1, duration_ms=1_000)

        assert [0, 1, 1] == [self.nodes.step(now_ms) for now_ms in (900, 1_000, 1_500)]
        assert [State.SUCCEEDED] * 2 == [
            status_of(self.store, job).state for job in (first, second)
        ]

    def test_life_is_faster_with_a_speedup(self) -> None:
        self.run(2, duration_ms=10_000)

        assert 2 == self.some_nodes(speedup=10.0).step(1_000)

    def test_what_has_no_end_runs_on(self) -> None:
        job = self.run(2, duration_ms=None)

        assert 0 == self.nodes.step(10**15)
        assert State.RUNNING is status_of(self.store, job).state

    def test_many_ends_are_told_in_bulk_and_no_call_grows_too_large(self) -> None:
        limit = LIMITS.tasks_per_release_max
        self.run(limit * 2 + 5, duration_ms=1)

        self.nodes.step(1)

        assert [limit, limit, 5] == self.store.releases

    def test_a_backlog_is_worked_off_over_several_steps(self) -> None:
        limit = LIMITS.tasks_per_release_max * RELEASES_PER_STEP
        self.run(limit + 7, duration_ms=1)

        assert [limit, 7, 0] == [self.nodes.step(1) for _ in range(3)]

    def test_tasks_that_others_ended_are_no_trouble(self) -> None:
        spec = a_spec(2, duration_ms=1_000)
        job = a_running_job(self.store, spec, [1, 1])
        self.nodes.step(0)
        end(self.store, job, 0)

        self.nodes.step(1_000)

        assert [TasksEnded(1)] == self.events
        assert State.SUCCEEDED is status_of(self.store, job).state

    def test_a_task_that_was_evicted_and_placed_anew_runs_its_whole_time(self) -> None:
        job = self.run(2, duration_ms=1_000)
        self.nodes.step(0)
        self.clock.advance(0.9)
        self.evict(job, task=0)
        (again,) = lease_all(self.store)
        grant(self.store, again, [0], [1])

        assert [1, 0, 1] == [self.nodes.step(now_ms) for now_ms in (1_000, 1_899, 1_900)]
        assert State.SUCCEEDED is status_of(self.store, job).state

    def test_a_task_that_was_evicted_and_waits_is_no_trouble(self) -> None:
        job = self.run(2, duration_ms=1_000)
        self.nodes.step(0)
        self.evict(job, task=0)

        assert 2 == self.nodes.step(1_000)
        assert [TasksEnded(1)] == self.events
        assert State.PENDING is status_of(self.store, job).state
        assert 0 == self.nodes.step(2_000)

    def evict(self, job: int, task: int) -> None:
        high = a_leased_job(self.store, a_spec(precedence=10))
        claim = evicting(a_claim(0, machine=1), (0, job, task))
        outcome = self.store.commit(a_transaction(claims_of_job(high, claim)))

        assert outcome.accepted.all()

    def test_nodes_that_start_late_find_what_is_running(self) -> None:
        self.run(4, duration_ms=1_000)

        assert 4 == self.some_nodes().step(5_000)

    def test_ends_wait_for_a_store_that_is_away(self) -> None:
        self.run(2, duration_ms=1)
        self.store.absences = 2

        assert 2 == self.nodes.step(1)
        assert [StoreCallFailed, StoreCallFailed, TasksEnded] == [type(e) for e in self.events]

    def test_they_work_until_they_are_stopped(self) -> None:
        jobs = [self.run(2, duration_ms=1_000), self.run(2, duration_ms=60_000)]
        self.clock.until = 2.0

        self.nodes.run(self.stop)

        assert [State.SUCCEEDED, State.RUNNING] == [
            status_of(self.store, job).state for job in jobs
        ]

    def test_they_stop_even_when_the_store_is_away(self) -> None:
        self.run(1, duration_ms=0)
        self.store.absences = 10**9
        self.clock.until = 1.0

        self.nodes.run(self.stop)

        assert self.stop.is_set()
        assert [] == self.store.releases
