"""Jobs that keep their leases while they wait for room."""

import threading
from collections.abc import Callable

import numpy as np

from omega.clock import ManualClock
from omega.config import Settings
from omega.events import Event, JobsLeased
from omega.framework.kept_leases import (
    KEPT_S,
    PARKED_READ,
    PAUSE_S_MIN,
    PAUSE_SHARE,
    WAIT_S,
)
from omega.framework.runner import SchedulerProcess
from omega.lifecycle.states import ParkReason, State
from omega.model.arrays import integers
from omega.model.claims import Transaction
from omega.model.outcomes import Outcome
from omega.store.memory.store import MemoryStore
from omega.store.status import JobStatus
from omega.testing.builders import a_spec
from omega.testing.steps import add_a_cell, status_of
from tests.unit.framework.loops import InOrder, numbered_ids

CORE = 1_000
STEP_S = WAIT_S / 4
SLEEPS = 40


class Alarm(ManualClock):
    """Sets the stop event when somebody has slept so many times."""

    def __init__(self, stop: threading.Event) -> None:
        super().__init__()
        self._stop = stop

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if len(self.slept) == SLEEPS:
            self._stop.set()


class Busy(MemoryStore):
    """A store in which something may happen just before a commit."""

    before_commit: Callable[[], None] | None = None

    def commit(self, transaction: Transaction) -> Outcome:
        happen, self.before_commit = self.before_commit, None
        if happen is not None:
            happen()
        return super().commit(transaction)


class TestKeptLeases:
    """A process on a cell of one machine with two cores."""

    def setup_method(self) -> None:
        self.stop = threading.Event()
        self.clock = Alarm(self.stop)
        self.store = Busy(self.clock)
        self.leases = 0
        add_a_cell(self.store, 1, cpu_milli=2 * CORE)
        self.process = self.a_process(Settings())

    def a_process(self, settings: Settings) -> SchedulerProcess:
        return SchedulerProcess(
            scheduler=InOrder(),
            store=self.store,
            open_store=lambda: self.store,
            clock=self.clock,
            settings=settings,
            sink=self.count,
            replica="a",
            run_seed=7,
            stop=self.stop,
            new_id=numbered_ids(),
        )

    def count(self, event: Event) -> None:
        self.leases += isinstance(event, JobsLeased)

    def submit(self, tasks: int = 6, *, cpu_milli: int = CORE, precedence: int = 0) -> int:
        spec = a_spec(tasks, cpu_milli=cpu_milli, precedence=precedence)
        (job,) = self.store.submit([spec])
        return job

    def end(self, job: int, task: int) -> None:
        assert 1 == self.store.end_tasks(integers([job]), np.array([task], dtype=np.intp))

    def status(self, job: int) -> JobStatus:
        return status_of(self.store, job)

    def placed(self, job: int) -> int:
        return self.status(job).placed

    def test_a_job_of_waves_of_tasks_is_leased_once(self) -> None:
        job = self.submit()

        placed = []
        for task in range(4):
            self.process.step()
            placed.append(self.placed(job))
            self.clock.advance(STEP_S)
            self.end(job, task)
        self.process.step()

        assert [2, 3, 4, 5] == placed
        assert (State.RUNNING, 6) == (self.status(job).state, self.placed(job))
        assert (1, 1) == (self.leases, self.status(job).attempts)
        assert {} == self.process.leases.held()

    def test_a_task_that_ends_during_the_commit_leaves_no_slot_idle(self) -> None:
        job = self.submit()
        self.process.step()
        self.end(job, 0)
        self.store.before_commit = lambda: self.end(job, 1)

        self.process.step()
        self.process.step()

        assert 4 == self.placed(job)

    def test_jobs_of_higher_precedence_that_are_still_pending_come_before_it(self) -> None:
        job = self.submit(20)
        self.process.step()

        urgent = [self.submit(1, precedence=10) for _ in range(4)]
        self.clock.advance(STEP_S)
        for task in range(2):
            self.end(job, task)
        for _ in range(2):
            self.process.step()

        assert [1, 1, 0, 0] == [self.placed(one) for one in urgent]
        assert 2 == self.placed(job)

    def test_without_more_room_it_is_not_attempted(self) -> None:
        job = self.submit()
        self.process.step()

        steps = [self.process.step() for _ in range(3)]

        assert [0, 0, 0] == steps
        assert State.PLANNING is self.status(job).state

    def test_a_job_that_found_no_room_at_all_is_handed_back(self) -> None:
        self.submit(2)
        self.process.step()

        job = self.submit()
        self.process.step()

        assert State.PENDING is self.status(job).state
        assert {} == self.process.leases.held()

    def test_it_is_handed_back_when_no_task_was_placed_for_some_time(self) -> None:
        job = self.submit()
        self.process.step()

        self.clock.advance(WAIT_S)
        self.process.step()
        state = self.status(job).state
        for _ in range(8):
            self.clock.advance(1.0)
            self.process.step()

        assert State.PENDING is state
        assert ParkReason.NO_ROOM is self.status(job).park_reason

    def test_it_is_handed_back_after_some_time_although_tasks_are_placed(self) -> None:
        job = self.submit(100)
        self.process.step()

        steps = round(KEPT_S / STEP_S) + 2
        for task in range(steps):
            self.clock.advance(STEP_S)
            self.end(job, task)
            self.process.step()
            self.process.step()

        assert 2 == self.status(job).attempts
        assert self.placed(job) >= steps

    def test_it_keeps_the_next_lease_too_although_there_is_no_room_at_first(self) -> None:
        job = self.submit(100)
        self.process.step()
        for task in range(round(KEPT_S / STEP_S) - 1):
            self.clock.advance(STEP_S)
            self.end(job, task)
            self.process.step()
        attempts = self.status(job).attempts
        self.clock.advance(STEP_S)
        self.process.step()

        assert (1, 2) == (attempts, self.status(job).attempts)
        assert State.PLANNING is self.status(job).state

    def test_a_pending_job_of_higher_precedence_is_placed_before_it(self) -> None:
        job = self.submit()
        self.process.step()

        urgent = self.submit(1, precedence=10)
        self.clock.advance(STEP_S)
        self.end(job, 0)
        self.process.step()

        assert (1, 2) == (self.placed(urgent), self.placed(job))

    def test_a_pending_job_of_the_same_precedence_is_placed_after_it(self) -> None:
        job = self.submit()
        self.process.step()

        other = self.submit(1)
        self.clock.advance(STEP_S)
        self.end(job, 0)
        self.process.step()

        assert (0, 3) == (self.placed(other), self.placed(job))

    def park(self, cpu_milli: int, precedence: int = 10) -> None:
        """Have a job parked while one core is in use."""
        self.submit(1)
        self.process.step()
        job = self.submit(1, precedence=precedence, cpu_milli=cpu_milli)
        self.let_pass()
        assert State.PARKED is self.status(job).state

    def let_pass(self) -> None:
        """Let a job that finds no room be parked, and what is read twice a second be read."""
        for _ in range(8):
            self.process.step()
            self.clock.advance(0.25)

    def is_kept(self, job: int) -> tuple[bool, bool]:
        """Return whether the job keeps its lease after the next step, and after another."""
        kept = []
        for _ in range(2):
            self.process.step()
            kept.append(State.PLANNING is self.status(job).state)
        return kept[0], kept[1]

    def test_no_job_keeps_its_lease_while_one_of_higher_precedence_waits_for_room(self) -> None:
        self.park(2 * CORE)
        assert (True, False) == self.is_kept(self.submit())

    def test_no_job_keeps_its_lease_while_an_older_one_waits_for_room(self) -> None:
        self.park(2 * CORE, precedence=0)
        assert (True, False) == self.is_kept(self.submit())

    def test_it_keeps_its_lease_while_one_of_lower_precedence_waits_for_room(self) -> None:
        self.park(2 * CORE, precedence=0)
        assert (True, True) == self.is_kept(self.submit(precedence=1))

    def test_a_job_that_gave_way_is_handed_back_at_once_for_a_while(self) -> None:
        self.park(2 * CORE)
        job = self.submit()
        self.is_kept(job)

        self.clock.advance(0.1)
        self.end(job, 0)
        self.process.step()

        assert (2, State.PENDING) == (self.placed(job), self.status(job).state)

    def test_a_job_that_can_never_fit_does_not_matter(self) -> None:
        self.park(8 * CORE)
        assert (True, True) == self.is_kept(self.submit())

    def test_jobs_that_can_never_fit_do_not_hide_one_that_waits(self) -> None:
        self.park(2 * CORE)
        for _ in range(PARKED_READ - 1):
            self.submit(1, precedence=20, cpu_milli=8 * CORE)
        self.let_pass()
        job = self.submit()
        assert (True, False) == self.is_kept(job)

        self.submit(1, precedence=20, cpu_milli=8 * CORE)
        self.let_pass()
        self.end(job, 0)
        assert (True, False) == self.is_kept(job)

    def test_without_room_for_a_task_of_it_it_is_not_attempted(self) -> None:
        small = self.submit(1, cpu_milli=CORE // 2)
        self.process.step()
        job = self.submit(cpu_milli=CORE + CORE // 4)
        self.process.step()

        self.end(small, 0)
        steps = [self.process.step() for _ in range(2)]

        assert (State.PLANNING, 1) == (self.status(job).state, self.placed(job))
        assert [0, 0] == steps

    def test_a_job_whose_tasks_shun_each_other_is_handed_back(self) -> None:
        """Which of its tasks have ended is known to the store alone."""
        (job,) = self.store.submit([a_spec(6, cpu_milli=CORE, different_machines=True)])

        self.process.step()

        assert (State.PENDING, 1) == (self.status(job).state, self.placed(job))

    def test_a_job_whose_lease_is_lost_is_not_attempted(self) -> None:
        job = self.submit()
        self.process.step()

        self.store.hold(job)
        self.process.leases.lose(self.process.leases.held())
        self.end(job, 0)
        self.process.step()

        assert (State.PARKED, 2) == (self.status(job).state, self.placed(job))

    def test_under_a_fair_order_each_job_returns_to_the_queue(self) -> None:
        self.process = self.a_process(Settings(queue_order="drf"))
        job = self.submit()

        self.process.step()

        assert (State.PENDING, 2) == (self.status(job).state, self.placed(job))

    def test_a_process_that_ends_hands_it_back(self) -> None:
        job = self.submit()
        self.process.step()

        self.process.finish()

        assert State.PENDING is self.status(job).state

    def test_the_pauses_are_a_share_of_the_time_since_tasks_were_placed(self) -> None:
        self.submit()

        self.process.run()

        since = np.cumsum([0.0, *self.clock.slept])[:-1]
        longest = np.maximum(PAUSE_S_MIN, PAUSE_SHARE * since)
        assert SLEEPS == len(self.clock.slept)
        assert (np.array(self.clock.slept) <= longest + 1e-9).all()
