"""The jobs that a process has leased: how they leave, and what is told of it."""

from omega.cell.view import View
from omega.clock import ManualClock
from omega.events import Event, JobParked
from omega.framework.effects import drive
from omega.framework.leasing import Leasing
from omega.framework.waking import Waker
from omega.lifecycle.states import ParkReason, State
from omega.store.leases import HandBack, Parking
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_spec
from omega.testing.steps import add_a_cell, status_of
from tests.unit.framework.loops import a_driver


class TestLeasing:
    """A memory store with room for all."""

    def setup_method(self) -> None:
        self.store = MemoryStore(ManualClock())
        add_a_cell(self.store)
        self.events: list[Event] = []
        self.driver = a_driver(self.store)
        self.waker = Waker("batch", self.events.append)
        self.leasing = Leasing("batch", "batch/a", 60_000, self.events.append, self.waker)

    def check(self) -> int:
        return drive(self.waker.check(View(self.store.snapshot())), self.driver.answer)

    def test_a_job_that_is_parked_for_conflicts_is_woken_by_the_next_check(self) -> None:
        self.store.submit([a_spec()])
        self.check()
        (job,) = drive(self.leasing.lease(1), self.driver.answer)
        parking = Parking(job.id, job.token, ParkReason.CONFLICTS, "others were faster")
        drive(self.leasing.park([parking]), self.driver.answer)
        parked = status_of(self.store, job.id).state

        assert 1 == self.check()
        assert State.PARKED is parked
        assert JobParked(job.id, "conflicts") in self.events
        assert {} == self.leasing.leases.held()

    def test_a_job_that_is_handed_back_is_no_longer_held(self) -> None:
        self.store.submit([a_spec(), a_spec()])
        first, second = drive(self.leasing.lease(2), self.driver.answer)

        back = HandBack(first.id, first.token, 0, progressed=True)
        drive(self.leasing.hand_back([back]), self.driver.answer)

        assert {second.id: second.token} == self.leasing.leases.held()
        assert State.PENDING is status_of(self.store, first.id).state
