"""Elastic jobs by whole processes on a virtual cell: who gets helpers, and who takes their room."""

import threading
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from omega.events import Event, HelpersEnded, HelpersPlaced, JobAttempted
from omega.lifecycle.states import State
from omega.model.elastic import Phase, Workers
from omega.model.jobs import JobSpec
from omega.nodes.virtual import VirtualNodes, nothing_else
from omega.sim.virtual_cell import VirtualCell
from omega.testing.builders import a_cell, a_group, a_spec
from schedulers.elastic import ElasticScheduler
from schedulers.service import ServiceScheduler

MACHINES = 250
CORES = 4


def an_elastic_spec(
    wanted: int = 11,
    *,
    at_most: int = 1_000,
    maps: int = 1_000,
    duration_ms: int = 10_000,
    precedence: int = 0,
) -> JobSpec:
    phases = (Phase("map", maps, duration_ms),)
    spec = a_spec(wanted, name="index", scheduler="elastic", cpu_milli=1_000)
    return replace(spec, workers=Workers(at_most, phases), precedence=precedence)


def a_service(tasks: int, *, precedence: int = 100) -> JobSpec:
    spec = a_spec(groups=(a_group(tasks, cpu_milli=1_000),), scheduler="service", name="web")
    return replace(spec, precedence=precedence)


class ElasticCell:
    """A thousand cores, virtual nodes and elastic schedulers."""

    def __init__(self, settings: Mapping[str, str] | None = None, *, replicas: int = 1) -> None:
        self.cell = VirtualCell(a_cell(MACHINES, cpu_milli=CORES * 1_000), seed=5)
        self.store = self.cell.store
        self.events: list[Event] = []
        self.cell.live(
            VirtualNodes(self.events.append, speedup=1.0).life(threading.Event(), nothing_else)
        )
        self.processes = [
            self.cell.schedule(
                ElasticScheduler.configured(settings or {}), str(number), sink=self.events.append
            )
            for number in range(replicas)
        ]

    def run(self, *jobs: JobSpec, seconds: float) -> list[int]:
        ids = self.store.submit(jobs)
        self.cell.run(self.cell.clock.now() + seconds)
        self.cell.check()
        return ids

    def learn(self) -> None:
        """Let a small job of the same name run, so that there is history."""
        self.run(an_elastic_spec(5, at_most=5, maps=5), seconds=30)
        assert 0 == self.cores_used()

    def cores_used(self) -> int:
        return int(self.store.snapshot().rows.used[:, 0].sum()) // 1_000

    def workers(self, job: int) -> int:
        own = self.store.job(job)
        assert own is not None
        helping = self.store.helpers(job, jobs_max=10_000)
        return sum(it.placed - it.ended for it in (own, *helping))

    def took_s(self, job: int) -> float:
        status = self.store.job(job)
        assert status is not None
        assert status.finished_ms is not None, status
        return (status.finished_ms - status.submitted_ms) / 1_000


@pytest.fixture
def cell() -> ElasticCell:
    cell = ElasticCell()
    cell.learn()
    return cell


def test_a_job_without_history_keeps_the_users_count() -> None:
    cell = ElasticCell()
    (job,) = cell.run(an_elastic_spec(), seconds=9)

    assert 11 == cell.workers(job) == cell.cores_used()


def test_a_job_learns_from_its_own_activities() -> None:
    cell = ElasticCell()
    (job,) = cell.run(an_elastic_spec(), seconds=13)

    assert 989 <= cell.workers(job) <= 1_000


def test_with_history_it_gets_a_worker_for_each_activity_at_once(cell: ElasticCell) -> None:
    (job,) = cell.run(an_elastic_spec(), seconds=40)

    assert cell.took_s(job) < 910 / 20, "ten seconds, and the ticks until helpers came"
    assert State.SUCCEEDED is cell.store.jobs(jobs_max=1)[0].state
    assert 0 == cell.cores_used()


def test_relative_stops_at_four_times_the_workers_wanted() -> None:
    cell = ElasticCell({"policy": "relative"})
    cell.learn()
    (job,) = cell.run(an_elastic_spec(), seconds=5)

    assert 40 <= cell.workers(job) <= 44
    cell.run(seconds=250)
    assert 225 <= cell.took_s(job) <= 245


def test_cap_stops_at_its_target() -> None:
    cell = ElasticCell({"policy": "cap"})
    cell.learn()
    (job,) = cell.run(an_elastic_spec(), seconds=5)

    assert cell.cores_used() == cell.workers(job)
    assert 500 <= cell.cores_used() <= 600


def test_cap_grants_nothing_above_its_target_and_gives_back() -> None:
    cell = ElasticCell({"policy": "cap"})
    cell.learn()
    cell.cell.schedule(ServiceScheduler(), "0")
    (job,) = cell.run(an_elastic_spec(duration_ms=100_000), seconds=5)
    before = cell.workers(job)
    cell.run(a_service(200), seconds=5)

    assert 600 == cell.cores_used()
    assert 400 == cell.workers(job) < before
    assert before - 400 == sum(it.tasks for it in cell.events if isinstance(it, HelpersEnded))
    cell.run(a_service(300), seconds=5)
    assert 500 + 100 == cell.cores_used()
    cell.run(a_service(95), seconds=5)
    assert 595 + 11 == cell.cores_used()
    assert 11 == cell.workers(job), "those that were wanted stay"


def test_a_job_with_a_worker_for_each_activity_gets_none(cell: ElasticCell) -> None:
    (job,) = cell.run(an_elastic_spec(20, maps=20), seconds=8)

    assert 20 == cell.workers(job)


def test_a_service_is_placed_at_once_on_a_cell_full_of_helpers(cell: ElasticCell) -> None:
    attempts: list[Event] = []
    cell.cell.schedule(ServiceScheduler(), "0", sink=attempts.append)
    jobs = cell.run(*[an_elastic_spec(5, duration_ms=500_000)] * 2, seconds=5)
    assert 1_000 == cell.cores_used()

    (service,) = cell.run(a_service(990), seconds=3)

    status = cell.store.job(service)
    assert status is not None
    assert (State.RUNNING, 990) == (status.state, status.placed)
    placed = [one for one in attempts if isinstance(one, JobAttempted) and one.job == service]
    assert [(1, 990, 0)] == [(one.tries, one.placed, one.left) for one in placed]
    assert [5, 5] == [cell.workers(job) for job in jobs], "the workers that were wanted stay"
    assert {State.RUNNING} == {job.state for job in cell.store.jobs(jobs_max=3)}


def test_wanted_workers_take_the_room_of_helpers(cell: ElasticCell) -> None:
    (first,) = cell.run(an_elastic_spec(5, duration_ms=500_000), seconds=5)
    assert 1_000 == cell.workers(first)

    (second,) = cell.run(an_elastic_spec(200, at_most=200, duration_ms=500_000), seconds=3)

    assert (200, 800) == (cell.workers(second), cell.workers(first))


def test_two_replicas_do_not_overshoot() -> None:
    cell = ElasticCell(replicas=3)
    cell.learn()
    jobs = cell.run(*[an_elastic_spec(5, at_most=50)] * 3, seconds=4)

    assert [50, 50, 50] == [cell.workers(job) for job in jobs]


def test_the_replica_that_is_left_goes_on_with_what_was_learnt() -> None:
    cell = ElasticCell(replicas=2)
    cell.learn()
    cell.processes[0].kill()
    (job,) = cell.run(an_elastic_spec(), seconds=5)

    assert 1_000 == cell.workers(job)


def test_helpers_never_count_as_attempts_or_waits(cell: ElasticCell) -> None:
    cell.events.clear()
    cell.run(an_elastic_spec(5, duration_ms=500_000), seconds=5)

    attempts = [it for it in cell.events if isinstance(it, JobAttempted)]
    placed = sum(it.placed for it in cell.events if isinstance(it, HelpersPlaced))
    assert [5] == [it.placed for it in attempts]
    assert 995 == placed
    assert {State.RUNNING: 1, State.SUCCEEDED: 1} == dict(cell.store.use().jobs_by_state)


def test_the_same_seed_gives_the_same_run() -> None:
    def once() -> list[object]:
        cell = ElasticCell(replicas=2)
        cell.learn()
        cell.run(*[an_elastic_spec(5)] * 2, seconds=20)
        live = cell.store.allocations()
        return [*map(np.ndarray.tolist, (live.job, live.task, live.machine)), cell.events]

    assert once() == once()


def test_a_job_that_found_no_room_is_parked_and_woken(cell: ElasticCell) -> None:
    cell.cell.schedule(ServiceScheduler(), "0")
    (service,) = cell.run(a_service(995), seconds=3)
    jobs = cell.run(*[an_elastic_spec(11, precedence=50)] * 2, seconds=30)
    assert {State.PARKED} == {job.state for job in cell.store.jobs(scheduler="elastic", jobs_max=2)}

    cell.store.cancel(service)
    cell.run(seconds=60)

    assert [60.0 > cell.took_s(job) > 30.0 for job in jobs] == [True, True]
