"""Jobs to which others yield are placed in the end, by whole processes in virtual time."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omega.cell.view import View
from omega.events import Event, JobsWoken
from omega.lifecycle.states import State
from omega.model.arrays import integers
from omega.model.jobs import PRECEDENCE_GAP, PRECEDENCE_GAP_MAX, JobSpec
from omega.model.machines import Machines
from omega.placement.diagnosis import has_room
from omega.sim.virtual_cell import VirtualCell
from omega.testing.builders import a_cell, a_group, a_job, a_spec, join_cells
from omega.testing.steps import a_running_job, grant, lease_all, status_of
from schedulers.service import ServiceScheduler
from tests.fixtures.doses import examples

PRECEDENCE = 100
WAKES_MAX = 3
"""How often a job may be woken before it is placed: others may have changed the cell meanwhile."""


def a_service(
    tasks: int = 1, *, cores: int = 1, minimum: int = 0, precedence: int = PRECEDENCE
) -> JobSpec:
    spec = a_spec(groups=(a_group(tasks, cpu_milli=cores * 1_000),), scheduler="service")
    return replace(spec, precedence=precedence, minimum=minimum)


def with_cores(*cores: int) -> Machines:
    """Return machines with so many cores each."""
    return join_cells(
        *(
            a_cell(1, cpu_milli=many * 1_000, first=number)
            for number, many in enumerate(cores, start=1)
        )
    )


class Cell:
    """Machines on which a service scheduler works."""

    def __init__(self, machines: Machines) -> None:
        self.cell = VirtualCell(machines, seed=5)
        self.store = self.cell.store
        self.woken = 0
        self.cell.schedule(ServiceScheduler(), "0", sink=self._note)

    def _note(self, event: Event) -> None:
        if isinstance(event, JobsWoken):
            self.woken += event.jobs

    def run(self, seconds: float) -> None:
        self.cell.run(self.cell.clock.now() + seconds)
        self.cell.check()

    def state(self, job: int) -> State:
        return status_of(self.store, job).state

    def fill(
        self, machine: int, cores: int, *, precedence: int = 0, preemptible: bool = True
    ) -> int:
        """Run a task of so many cores on a machine."""
        spec = replace(a_spec(precedence=precedence), preemptible=preemptible)
        (number,) = self.store.submit([spec])
        # Tasks that were evicted are leased as well, and stay out of the way.
        (job,) = [job for job in lease_all(self.store) if job.id == number]
        grant(self.store, job, [0], [machine], cpu_milli=cores * 1_000)
        return number

    def exchange(self, job: int, machine: int, cores: int) -> int:
        """Put a task of precedence 0 into the place of another, which ends."""
        assert 1 == self.store.end_tasks(integers([job]), np.zeros(1, dtype=np.intp))
        return self.fill(machine, cores)

    def has_cover(self, spec: JobSpec) -> bool:
        """Return whether the job has room once all that yields to it is evicted."""
        view = View(self.store.snapshot())
        yielding = self.store.yielding(spec.precedence)
        with view.tentative():
            view.assume_removed(yielding.machine, yielding.amounts)
            return has_room(view, a_job(spec=spec))


def test_a_parked_job_is_placed_when_tasks_arrive_that_yield_to_it() -> None:
    it = Cell(with_cores(4, 4))
    stays = [it.fill(machine, 4, preemptible=False) for machine in (1, 2)]
    (service,) = it.store.submit([a_service(cores=4)])
    it.run(20.0)
    assert (State.PARKED, 0) == (it.state(service), it.woken)

    it.exchange(stays[1], 2, 4)
    it.run(20.0)

    assert (State.RUNNING, 1) == (it.state(service), it.woken)


def test_a_parked_job_is_placed_when_the_gap_is_lowered() -> None:
    it = Cell(with_cores(4))
    it.fill(1, 4, precedence=95)
    (service,) = it.store.submit([a_service(cores=4)])
    it.run(20.0)
    assert State.PARKED is it.state(service)

    it.store.set_precedence_gap(5)
    it.run(20.0)

    assert (State.RUNNING, 1) == (it.state(service), it.woken)


def test_jobs_of_lower_precedence_are_woken_behind_one_for_which_nobody_suffices() -> None:
    it = Cell(with_cores(4, 2))
    equal = it.fill(1, 4, precedence=PRECEDENCE)
    small = it.fill(2, 2, precedence=PRECEDENCE)
    large, other = it.store.submit([a_service(cores=4), a_service(precedence=50)])
    it.run(20.0)
    assert {State.PARKED} == {it.state(large), it.state(other)}

    it.exchange(small, 2, 2)
    it.run(20.0)

    assert (State.PARKED, State.RUNNING) == (it.state(large), it.state(other))
    assert 1 == it.woken
    it.exchange(equal, 1, 4)
    it.run(20.0)
    assert State.RUNNING is it.state(large)


@pytest.mark.parametrize("yielding", [1, 2])
def test_the_only_machines_of_ten_thousand_that_yield_are_found_at_once(yielding: int) -> None:
    machines = range(1, 10_001)
    it = Cell(a_cell(len(machines), cpu_milli=1_000))
    few = list(machines)[7_000 : 7_000 + yielding]
    full = [machine for machine in machines if machine not in few]
    a_running_job(it.store, replace(a_spec(len(full)), preemptible=False), full)
    for machine in few:
        it.fill(machine, 1)

    (service,) = it.store.submit([a_service(yielding, minimum=yielding)])
    it.run(1.0)

    status = status_of(it.store, service)
    assert (State.RUNNING, 1) == (status.state, status.attempts)
    assert few == sorted(it.store.allocations_of([service]).machine.tolist())


@dataclass(frozen=True)
class Task:
    """A task that fills some cores of a machine."""

    cores: int
    precedence: int
    preemptible: bool


TASKS = st.builds(
    Task,
    st.integers(1, 3),
    st.sampled_from([0, 50, 90, 91, 100]),
    st.sampled_from([True, True, False]),
)
MACHINES = st.lists(st.lists(TASKS, min_size=1, max_size=3), min_size=1, max_size=4)


@examples(500)
@given(
    machines=MACHINES,
    tasks=st.integers(1, 3),
    cores=st.integers(1, 5),
    is_gang=st.booleans(),
    exchanged=st.none() | st.integers(0, 3),
)
def test_a_job_is_placed_in_the_end_if_and_only_if_enough_yields_to_it(
    machines: list[list[Task]], tasks: int, cores: int, exchanged: int | None, *, is_gang: bool
) -> None:
    """At first nothing yields and the job is parked; then the gap falls, a task is exchanged."""
    it = Cell(with_cores(*(sum(task.cores for task in here) for here in machines)))
    it.store.set_precedence_gap(PRECEDENCE_GAP_MAX)
    jobs = [
        (
            it.fill(machine, one.cores, precedence=one.precedence, preemptible=one.preemptible),
            machine,
            one,
        )
        for machine, here in enumerate(machines, start=1)
        for one in here
    ]
    spec = a_service(tasks, cores=cores, minimum=tasks if is_gang else 0)
    (service,) = it.store.submit([spec])
    it.run(30.0)
    assert (State.PARKED, 0) == (it.state(service), it.woken)

    it.store.set_precedence_gap(PRECEDENCE_GAP)
    if exchanged is not None:
        it.run(1.0)
        job, machine, one = jobs[exchanged % len(jobs)]
        if State.RUNNING is it.state(job):
            it.exchange(job, machine, one.cores)
    before, has_cover = status_of(it.store, service).placed, it.has_cover(spec)
    it.run(60.0)

    placed = status_of(it.store, service).placed
    assert (placed > 0) == (has_cover or before > 0)
    assert it.woken <= (WAKES_MAX if placed else 0)
