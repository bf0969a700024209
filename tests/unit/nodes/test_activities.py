"""Virtual nodes process the activities of elastic jobs, and end them with the last one."""

import threading
from dataclasses import replace

import numpy as np
import pytest

from omega.clock import ManualClock
from omega.config import Settings
from omega.events import Event, TasksEnded
from omega.framework.retry import Retry
from omega.lifecycle.states import State
from omega.model.arrays import Ids, integers
from omega.model.elastic import Phase, PhaseProgress, Workers
from omega.model.jobs import JobSpec, LeasedJob
from omega.nodes.live import LiveNodes
from omega.store.memory.store import MemoryStore
from omega.store.protocols import Store
from omega.testing.builders import a_claim, a_spec, a_transaction, claims_of_job, evicting
from omega.testing.pass_through import PassThrough
from omega.testing.steps import LONG_MS, a_leased_job, a_running_job, add_a_cell, grant, status_of

PHASES = (Phase("map", 10, 10_000), Phase("reduce", 2, 5_000, after="map"))


def an_elastic_spec(wanted: int = 2, *, phases: tuple[Phase, ...] = PHASES) -> JobSpec:
    return replace(a_spec(wanted, cpu_milli=1_000), workers=Workers(1_000, phases))


class ElasticCell:
    """A machine on which elastic jobs run, and virtual nodes that look when a test says so."""

    def __init__(self, store: Store, *, speedup: float = 1.0, cores: int = 40) -> None:
        self.store = store
        self.events: list[Event] = []
        (self.machine,) = add_a_cell(store, 1, cpu_milli=cores * 1_000)
        self.nodes = self.more_nodes(speedup=speedup)

    def more_nodes(self, *, speedup: float = 1.0, store: Store | None = None) -> LiveNodes:
        stop, clock, sink = threading.Event(), ManualClock(), self.events.append
        retry = Retry(clock, sink, Settings(), np.random.default_rng(1), stop)
        return LiveNodes(store or self.store, clock, sink, retry, speedup=speedup)

    def run(self, spec: JobSpec | None = None) -> LeasedJob:
        spec = spec or an_elastic_spec()
        return a_running_job(self.store, spec, [self.machine] * spec.tasks)

    def help(self, job: LeasedJob, tasks: int) -> LeasedJob:
        helpers = self.store.add_helpers(
            "batch", job.id, tasks, precedence=-99, holder="batch/0", lease_ms=LONG_MS
        )

        assert helpers is not None
        grant(self.store, helpers, range(tasks), [self.machine] * tasks)
        return helpers

    def evict(self, job: LeasedJob, task: int) -> LeasedJob:
        other = a_leased_job(self.store, a_spec(1, precedence=50))
        claims = evicting(a_claim(0, machine=self.machine), (0, job.id, task))

        assert self.store.commit(a_transaction(claims_of_job(other, claims))).accepted.all()
        return other

    def done(self, job: LeasedJob) -> tuple[tuple[int, ...], tuple[int, ...]]:
        (told,) = self.store.phases(integers([job.id]))
        return told.done, told.busy_ms

    def steps(self, *moments_s: float) -> list[int]:
        """Return how many tasks ended in a step at each of these times."""
        return [self.nodes.step(int(moment_s * 1_000)) for moment_s in moments_s]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def cell(clock: ManualClock) -> ElasticCell:
    return ElasticCell(MemoryStore(clock))


def test_workers_process_activities_and_the_job_ends_with_the_last(cell: ElasticCell) -> None:
    job = cell.run()

    assert [0, 0, 0, 2, 0] == cell.steps(0, 29.9, 50, 55, 60)
    assert State.SUCCEEDED is status_of(cell.store, job).state
    assert ((10, 2), (100_000, 10_000)) == cell.done(job)
    assert [TasksEnded(2)] == cell.events
    assert [] == list(cell.store.verify())


def test_what_is_done_is_on_record_meanwhile(cell: ElasticCell) -> None:
    job = cell.run()
    cell.steps(0, 29.9)

    assert ((4, 0), (40_000, 0)) == cell.done(job)


def test_helpers_work_too_and_end_with_the_job(cell: ElasticCell) -> None:
    job = cell.run()
    helpers = cell.help(job, 3)

    assert [0, 0, 5] == cell.steps(0, 24.9, 25)  # two waves of maps, one of reduces
    assert State.SUCCEEDED is status_of(cell.store, job).state
    assert State.SUCCEEDED is status_of(cell.store, helpers).state
    assert not cell.store.snapshot().rows.used.any()


def test_helpers_that_come_later_take_what_is_not_begun(
    cell: ElasticCell, clock: ManualClock
) -> None:
    job = cell.run()
    cell.steps(0, 15)
    clock.advance(16)
    cell.help(job, 8)

    # Two maps end at 20 s; the others, begun at 16 and 20 s, at 26 and 30 s; then two reduces.
    assert [0, 0, 0] == cell.steps(16, 26, 30)
    assert ((10, 0), (100_000, 0)) == cell.done(job)
    assert [0, 10] == cell.steps(30.9, 31)


def test_the_activity_of_an_evicted_worker_starts_again(cell: ElasticCell) -> None:
    job = cell.run(an_elastic_spec(1, phases=(Phase("map", 2, 10_000),)))
    helpers = cell.help(job, 1)
    cell.steps(0, 9)
    cell.evict(helpers, 0)

    assert [0, 0, 0, 1] == cell.steps(10, 11, 19.9, 20)
    assert ((2,), (20_000,)) == cell.done(job)


def test_a_job_that_lost_all_workers_goes_on_from_what_is_on_record(
    cell: ElasticCell, clock: ManualClock
) -> None:
    job = cell.run(an_elastic_spec(1, phases=(Phase("map", 3, 10_000),)))
    cell.steps(0, 15)
    cell.evict(job, 0)
    cell.steps(25)
    clock.advance(100)
    (again,) = cell.store.lease("batch", holder="b", jobs_max=1, lease_ms=LONG_MS)
    grant(cell.store, again, [0], [cell.machine])

    assert [0, 0, 1] == cell.steps(100, 119.9, 120)
    assert ((3,), (30_000,)) == cell.done(job)


def test_a_second_set_of_nodes_does_no_harm(cell: ElasticCell) -> None:
    job = cell.run()
    cell.steps(0)
    others = cell.more_nodes()
    ended = []
    for moment_s in range(1, 56):
        ended += [others.step(moment_s * 1_000), *cell.steps(moment_s)]

    assert 2 == sum(ended)
    assert ((10, 2), (100_000, 10_000)) == cell.done(job)


def test_a_speedup_ends_the_job_sooner(clock: ManualClock) -> None:
    cell = ElasticCell(MemoryStore(clock), speedup=10)
    job = cell.run()

    assert [0, 0, 2] == cell.steps(0, 5.4, 5.5)
    assert ((10, 2), (100_000, 10_000)) == cell.done(job)


def test_workers_without_phases_work_for_their_duration(cell: ElasticCell) -> None:
    spec = an_elastic_spec(1, phases=())
    spec = replace(spec, groups=(replace(spec.groups[0], duration_ms=7_000),))
    job = cell.run(spec)
    helpers = cell.help(job, 2)
    more = cell.run(spec)

    assert [0, 4] == cell.steps(6.9, 7)
    for ended in (job, helpers, more):
        assert State.SUCCEEDED is status_of(cell.store, ended).state


class Counting(PassThrough):
    """Counts the reads of phases."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.reads = 0

    def phases(self, job: Ids) -> list[PhaseProgress]:
        self.reads += 1
        return super().phases(job)


def test_jobs_without_activities_are_read_once(clock: ManualClock) -> None:
    store = Counting(MemoryStore(clock))
    cell = ElasticCell(store)
    cell.run(a_spec(2))
    cell.steps(0, 1, 10, 100)

    assert 1 == store.reads
