"""A scheduler process: rounds, what is due between them, and how it ends."""

import threading
from collections.abc import Callable
from uuid import UUID

import numpy as np
import pytest

from omega.cell.view import View
from omega.clock import ManualClock
from omega.config import Settings
from omega.errors import NotAllowed
from omega.events import (
    Event,
    JobAttempted,
    JobParked,
    JobsLeased,
    JobsRescued,
    JobsWoken,
    MachinesExpired,
    StoreCallFailed,
    TransactionJudged,
)
from omega.framework.runner import SchedulerProcess
from omega.framework.scheduler import NO_DECISION_TIME, DecisionTime, Scheduler
from omega.lifecycle.states import ParkReason, State
from omega.model.claims import Claims
from omega.model.jobs import LeasedJob
from omega.model.machines import MachineState
from omega.store.memory.store import MemoryStore
from omega.store.protocols import Store
from omega.testing.builders import a_cell, a_spec
from omega.testing.steps import (
    a_running_job,
    add_a_cell,
    end,
    lease_all,
    status_of,
)
from tests.unit.framework.loops import InOrder, numbered_ids
from tests.unit.framework.stores import Absent, Forbidden

SETTINGS = Settings(poll_interval_ms=200, jobs_per_lease_max=16)


class Alarm(ManualClock):
    """Sets the stop event when somebody has slept so many times."""

    def __init__(self, stop: threading.Event) -> None:
        super().__init__()
        self.stop = stop
        self.sleeps_max = 3

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if len(self.slept) >= self.sleeps_max:
            self.stop.set()


class Broken(Scheduler):
    """Fails at its work."""

    kind = "batch"

    def place(self, view: View, job: LeasedJob, rng: np.random.Generator) -> Claims:
        raise ZeroDivisionError("a bug")


class Slowing(InOrder):
    """Takes as long for a job as a test says."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__()
        self.clock = clock
        self.takes_s = 0.0

    def place(self, view: View, job: LeasedJob, rng: np.random.Generator) -> Claims:
        self.clock.advance(self.takes_s)
        return super().place(view, job, rng)


class TestProcess:
    """A process on a memory store of three machines of four cores."""

    def setup_method(self) -> None:
        self.stop = threading.Event()
        self.clock = Alarm(self.stop)
        self.store = Absent(MemoryStore(self.clock))
        self.events: list[Event] = []
        self.on_commit: Callable[[], None] | None = None
        add_a_cell(self.store)

    def listen(self, event: Event) -> None:
        self.events.append(event)
        if self.on_commit is not None and isinstance(event, TransactionJudged):
            self.on_commit()

    def a_process(
        self,
        scheduler: Scheduler | None = None,
        *,
        decision_time: DecisionTime = NO_DECISION_TIME,
        store: Store | None = None,
    ) -> SchedulerProcess:
        return SchedulerProcess(
            scheduler=scheduler or InOrder(),
            store=store or self.store,
            open_store=lambda: self.store,
            clock=self.clock,
            settings=SETTINGS,
            sink=self.listen,
            replica="a",
            run_seed=7,
            decision_time=decision_time,
            stop=self.stop,
            new_id=numbered_ids(),
        )

    def seen(self, kind: type[Event]) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]

    def state(self, job: int) -> State:
        return status_of(self.store, job).state

    def test_a_round_leases_jobs_and_places_them(self) -> None:
        (job,) = self.store.submit([a_spec(5)])
        self.clock.advance(1.5)

        assert 1 == self.a_process().step()
        assert State.RUNNING is self.state(job)
        assert [JobsLeased(1, (1.5,))] == self.seen(JobsLeased)
        assert 1 == len(self.seen(TransactionJudged))
        assert [JobAttempted(job, 1, 5, 0, 0.0)] == self.seen(JobAttempted)

    def test_a_round_without_jobs_does_nothing(self) -> None:
        assert 0 == self.a_process().step()
        assert [] == self.seen(JobsLeased)

    def test_a_job_that_can_never_fit_is_parked_in_its_first_round(self) -> None:
        (job,) = self.store.submit([a_spec(cpu_milli=8_000)])
        process = self.a_process()

        process.step()

        assert ParkReason.NEVER_FITS is status_of(self.store, job).park_reason
        assert "8000 cpu_milli" in str(status_of(self.store, job).park_detail)
        assert [JobParked(job, "never_fits")] == self.seen(JobParked)
        assert {} == process.leases.held()

    def test_what_is_left_of_a_job_waits_is_parked_and_is_woken_by_room(self) -> None:
        running = a_running_job(self.store, a_spec(8), [1, 1, 1, 1, 2, 2, 2, 2])
        (job,) = self.store.submit([a_spec(6)])
        process = self.a_process()

        for _ in range(8):
            process.step()
            self.clock.advance(2.0)
        parked = status_of(self.store, job)
        end(self.store, running, 0, 1, 2)
        self.clock.advance(2.0)
        process.step()

        assert (State.PARKED, ParkReason.NO_ROOM) == (parked.state, parked.park_reason)
        assert (4, 4) == (parked.placed, parked.attempts)
        assert [JobsWoken(1)] == self.seen(JobsWoken)
        assert (State.RUNNING, 6) == (self.state(job), status_of(self.store, job).placed)

    def test_new_machines_wake_a_job_that_could_never_fit(self) -> None:
        (job,) = self.store.submit([a_spec(cpu_milli=8_000)])
        process = self.a_process()
        process.step()
        self.store.add_machines(a_cell(1, cpu_milli=8_000, first=4))
        self.clock.advance(2.0)

        process.step()

        assert State.RUNNING is self.state(job)

    def test_jobs_of_a_dead_sibling_are_rescued_and_placed(self) -> None:
        (job,) = self.store.submit([a_spec()])
        lease_all(self.store, lease_ms=5_000)
        process = self.a_process()
        process.step()
        before = self.state(job)
        self.clock.advance(5.0)

        process.step()

        assert (State.PLANNING, State.RUNNING) == (before, self.state(job))
        assert [JobsRescued(1)] == self.seen(JobsRescued)

    def test_tasks_of_a_silent_agents_machine_are_placed_elsewhere(self) -> None:
        (job,) = self.store.submit([a_spec(2)])
        process = self.a_process()
        process.step()
        where = set(self.store.allocations().machine.tolist())
        for machine in where:
            self.store.hold_machine(machine, UUID(int=machine), lease_ms=1_000)
        before = self.store.use().machines_by_state
        self.clock.advance(2.0)

        process.step()
        self.clock.advance(2.0)
        process.step()

        assert {MachineState.OPEN} == before.keys()
        assert [MachinesExpired(len(where))] == self.seen(MachinesExpired)
        assert State.RUNNING is self.state(job)
        assert where.isdisjoint(self.store.allocations().machine.tolist())

    def test_a_job_whose_lease_the_heartbeat_lost_is_left_alone(self) -> None:
        jobs = self.store.submit([a_spec(), a_spec()])
        process = self.a_process(InOrder(together=1))
        process.step()  # one job; the next round leases two
        process.step()
        more = self.store.submit([a_spec(), a_spec()])

        self.on_commit = lambda: process.leases.drop(more[1:])

        process.step()

        assert [State.RUNNING, State.RUNNING] == [self.state(job) for job in jobs]
        assert [State.RUNNING, State.PLANNING] == [self.state(job) for job in more]

    def test_jobs_are_committed_together_up_to_so_many_claims(self) -> None:
        scheduler = InOrder(together=3)
        scheduler.claims_per_transaction = 5
        self.store.submit([a_spec(tasks, cpu_milli=1) for tasks in (2, 3, 1, 1, 1, 1, 7, 1)])
        process = self.a_process(scheduler)

        while process.step():
            pass

        judged = [event for event in self.events if isinstance(event, TransactionJudged)]
        assert [(2, 5), (1, 1), (3, 3), (1, 7), (1, 1)] == [
            (event.jobs, event.accepted) for event in judged
        ]

    def test_more_jobs_are_leased_at_a_time_as_long_as_rounds_are_short(self) -> None:
        self.store.submit([a_spec(cpu_milli=1)] * 100)
        process = self.a_process()

        leased = [process.step() for _ in range(7)]

        assert [1, 2, 4, 8, 16, 16, 16] == leased

    def test_a_slow_thinker_leaves_jobs_to_its_siblings(self) -> None:
        self.clock.sleeps_max = 1_000
        self.store.submit([a_spec(cpu_milli=1)] * 100)
        process = self.a_process(decision_time=DecisionTime(job_s=0.3))

        leased = [process.step() for _ in range(7)]

        assert [1, 2, 2, 2, 2, 2, 2] == leased

    def test_who_becomes_slow_leases_fewer_jobs(self) -> None:
        scheduler = Slowing(self.clock)
        self.store.submit([a_spec(cpu_milli=1)] * 100)
        process = self.a_process(scheduler)
        fast = [process.step() for _ in range(4)]
        scheduler.takes_s = 0.3

        slow = [process.step() for _ in range(4)]

        assert ([1, 2, 4, 8], [16, 8, 4, 2]) == (fast, slow)

    def test_it_reports_what_it_did(self) -> None:
        self.store.submit([a_spec(5)])
        process = self.a_process()
        process.step()
        self.clock.advance(1.0)
        process.step()

        (report,) = self.store.reports()
        assert ("batch", "a") == (report.kind, report.replica)
        assert 5 == process.fold.facts()["totals"]["tasks_placed"]
        assert process.fold.facts()["totals"] == report.facts["totals"]

    def test_it_outlives_an_absence_of_the_store(self) -> None:
        self.clock.sleeps_max = 1_000
        (job,) = self.store.submit([a_spec()])
        process = self.a_process()
        self.store.absences = 3

        process.step()

        assert State.RUNNING is self.state(job)
        assert 3 == len(self.seen(StoreCallFailed))

    def test_it_sleeps_when_idle_and_not_in_step_with_others(self) -> None:
        self.clock.sleeps_max = 40
        self.a_process().run()

        last = self.clock.slept[-10:]
        assert all(0.1 <= seconds <= 0.3 for seconds in last)
        assert 10 == len(set(last))

    def test_its_waits_are_short_after_a_job_and_grow(self) -> None:
        self.clock.sleeps_max = 40
        process = self.a_process()
        process.run()
        before_the_job = self.clock.slept[-1]
        self.store.submit([a_spec()])
        self.clock.slept.clear()
        self.stop.clear()
        process.run()

        assert before_the_job >= 0.1
        assert self.clock.slept[0] < 0.01
        assert self.clock.slept[-1] >= 0.1

    def test_it_stops_after_the_commit_under_way_and_gives_back_the_rest(self) -> None:
        jobs = self.store.submit([a_spec() for _ in range(8)])
        process = self.a_process(InOrder(together=2))
        process.step()
        self.on_commit = self.stop.set

        process.run()

        assert [State.RUNNING] * 4 == [self.state(job) for job in jobs[:4]]
        assert [State.PENDING] * 4 == [self.state(job) for job in jobs[4:]]
        assert {} == process.leases.held()
        assert [] == self.store.reports()
        assert jobs[4:] == [job.id for job in lease_all(self.store)]

    def test_it_ends_even_when_the_store_is_away(self) -> None:
        self.store.submit([a_spec()])
        self.store.absences = 1_000

        self.a_process().run()

        assert 3 == len(self.clock.slept)
        assert StoreCallFailed("lease", "the server is away") in self.events

    def test_leases_are_given_back_when_a_scheduler_breaks(self) -> None:
        (job,) = self.store.submit([a_spec()])

        with pytest.raises(ZeroDivisionError):
            self.a_process(Broken()).run()
        assert State.PENDING is self.state(job)

    def test_who_may_not_lease_is_told_so_at_once_and_that_it_may_not_leave_comes_second(
        self,
    ) -> None:
        process = self.a_process(store=Forbidden(self.store))

        with pytest.raises(NotAllowed, match="batch/a may not lease jobs of batch"):
            process.run()

        assert [] == self.clock.slept
        assert StoreCallFailed("finish", "batch/a may not be forgotten") in self.events
