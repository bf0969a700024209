"""Preemption by whole processes on a virtual cell: who makes way, and who finds nobody."""

from dataclasses import replace

import numpy as np

from omega.events import Event, JobAttempted, TasksEvicted, TransactionJudged
from omega.lifecycle.states import ParkReason, State
from omega.model.jobs import JobSpec
from omega.sim.virtual_cell import VirtualCell
from omega.testing.builders import a_cell, a_group, a_spec
from schedulers.batch import BatchScheduler
from schedulers.service import ServiceScheduler

MACHINES = 250
CORES = 4


def batch_jobs(jobs: int, tasks: int, **fields: int) -> list[JobSpec]:
    return [a_spec(tasks, name="batch", **fields)] * jobs  # type: ignore[arg-type]


def a_service(tasks: int, *, precedence: int = 100, cores: int = 1, minimum: int = 0) -> JobSpec:
    spec = a_spec(groups=(a_group(tasks, cpu_milli=cores * 1_000),), scheduler="service")
    return replace(spec, precedence=precedence, minimum=minimum)


class FullCell:
    """Machines full of tasks of one core, and service schedulers that come later."""

    def __init__(self, *jobs: JobSpec, services: int = 1) -> None:
        self.attempts: list[JobAttempted] = []
        self.events: list[Event] = []
        self.cell = VirtualCell(a_cell(MACHINES, cpu_milli=CORES * 1_000), seed=3)
        self.store = self.cell.store
        self.cell.submit(0.0, jobs)
        batch = self.cell.schedule(BatchScheduler(), "0")
        self.cell.run(20.0)
        if not services:
            batch.kill()
        self.free_cores = self.cores_free()
        for number in range(services):
            self.cell.schedule(ServiceScheduler(), str(number), sink=self.note)

    def note(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, JobAttempted):
            self.attempts.append(event)

    def cores_free(self) -> int:
        rows = self.store.snapshot().rows
        return int((rows.capacity - rows.used)[:, 0].sum()) // 1_000

    def run(self, *jobs: JobSpec, seconds: float = 10.0) -> list[int]:
        ids = self.store.submit(jobs)
        self.cell.run(self.cell.clock.now() + seconds)
        self.cell.check()
        return ids

    def running(self, name: str) -> int:
        return sum(job.placed for job in self.store.jobs(jobs_max=1_000) if job.name == name)


def test_a_service_is_placed_whole_on_a_full_cell_in_one_attempt() -> None:
    full = FullCell(*batch_jobs(10, 100))
    assert 0 == full.free_cores

    (service,) = full.run(a_service(500))

    status = full.store.job(service)
    assert status is not None
    assert (State.RUNNING, 500) == (status.state, status.placed)
    assert [(service, 1)] == [(one.job, one.tries) for one in full.attempts if one.placed]
    assert 500 == full.running("batch"), "as many victims as tasks, and no more"
    evicted = [job for job in full.store.jobs(jobs_max=99) if job.evicted_by is not None]
    assert {service} == {job.evicted_by for job in evicted}
    assert {State.PENDING, State.PARKED, State.PLANNING} >= {job.state for job in evicted}


def test_each_eviction_is_told_once_with_the_job_that_took_the_place() -> None:
    full = FullCell(*batch_jobs(20, 50, minimum=40), services=2)
    services = full.run(*[a_service(60)] * 3)

    told = [event for event in full.events if isinstance(event, TasksEvicted)]
    judged = [event for event in full.events if isinstance(event, TransactionJudged)]

    assert sum(event.evicted for event in judged) == sum(event.tasks for event in told) >= 180
    assert {event.evictor for event in told} <= set(services)
    lost = {job.id: job for job in full.store.jobs(jobs_max=99) if job.evicted_by is not None}
    assert lost.keys() == {event.job for event in told}
    last = {event.job: event.evictor for event in told}
    assert last == {number: job.evicted_by for number, job in lost.items()}


def test_large_tasks_take_whole_machines_and_the_lowest_precedence_goes_first() -> None:
    lowest, higher = batch_jobs(5, 100), batch_jobs(5, 100, precedence=50)
    full = FullCell(*higher, *lowest)

    full.run(a_service(20, cores=CORES))

    left = [job.placed for job in full.store.jobs(jobs_max=99) if job.precedence == 50]
    assert 1_000 - 20 * CORES == full.running("batch")
    assert 500 - sum(left) <= 20, "of four tasks on a machine, at most one of the higher"


def test_jobs_that_are_committed_together_name_each_victim_once() -> None:
    full = FullCell(*batch_jobs(10, 100), services=0)
    urgent = full.run(*[a_spec(250, name="urgent", precedence=50)] * 4, seconds=1.0)
    full.cell.schedule(BatchScheduler(preempts=True), "evicts", sink=full.note)

    full.cell.run(full.cell.clock.now() + 10.0)

    tries = [(one.job, one.tries) for one in full.attempts if one.job in urgent]
    assert [(job, 1) for job in urgent] == tries
    assert (0, 1_000) == (full.running("batch"), full.running("urgent"))


def test_equals_stay_and_the_job_is_parked_with_a_reason_that_says_so() -> None:
    full = FullCell(*batch_jobs(10, 100, precedence=95))

    (service,) = full.run(a_service(10), seconds=30.0)

    status = full.store.job(service)
    assert status is not None
    assert (State.PARKED, ParkReason.NO_ROOM) == (status.state, status.park_reason)
    assert "not enough yields to precedence 100" in (status.park_detail or "")
    assert 1_000 == full.running("batch")


def test_what_is_not_preemptible_stays() -> None:
    full = FullCell(*[replace(spec, preemptible=False) for spec in batch_jobs(10, 100)])

    full.run(a_service(10), seconds=30.0)

    assert 1_000 == full.running("batch")


def test_nobody_is_evicted_while_there_is_room() -> None:
    full = FullCell(*batch_jobs(9, 100))
    assert 100 == full.free_cores

    full.run(a_service(100))

    assert (900, 0) == (full.running("batch"), full.cores_free())


def test_a_gang_takes_the_room_that_there_is_and_evicts_for_the_rest() -> None:
    full = FullCell(*batch_jobs(9, 100))

    (service,) = full.run(a_service(150, minimum=150))

    status = full.store.job(service)
    assert status is not None
    assert State.RUNNING is status.state
    assert 850 == full.running("batch")


def test_what_room_there_is_is_taken_and_the_rest_evicted_in_one_try() -> None:
    full = FullCell(*batch_jobs(9, 100))

    full.run(a_service(150))

    assert [(150, 1)] == [(one.placed, one.tries) for one in full.attempts]
    assert (850, 0) == (full.running("batch"), full.cores_free())


def test_two_services_at_once_evict_no_more_than_they_place() -> None:
    full = FullCell(*batch_jobs(10, 100), services=2)

    ids = full.run(*[a_service(100)] * 4)

    assert [State.RUNNING] * 4 == [full.store.job(one).state for one in ids]  # type: ignore[union-attr]
    assert (600, 0) == (full.running("batch"), full.cores_free())
    assert np.unique([one.job for one in full.attempts]).tolist() == sorted(ids)
