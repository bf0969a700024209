"""Clearing machines: what is due by a view, and only that."""

from collections import Counter

import pytest

from omega.cell.view import View
from omega.clock import ManualClock
from omega.errors import StoreUnavailable
from omega.events import Event, StoreCallFailed, TasksLost
from omega.framework.effects import drive
from omega.framework.machine_clearing import FAILED, REST, SHRANK, MachineClearing
from omega.model.arrays import Amounts, Ids, integers
from omega.model.machines import MachineState
from omega.model.resources import machine_capacity
from omega.store.memory.store import MemoryStore
from omega.store.protocols import Store
from omega.testing.builders import a_spec
from omega.testing.pass_through import PassThrough
from omega.testing.steps import a_running_job, add_a_cell, end, places, status_of
from tests.unit.framework.loops import a_driver

NOTICE_MS = 60_000
FAILURE_S = 12.0
"""How long a call takes that fails."""


class Counted(PassThrough):
    """Counts the calls that clear machines; some may fail, or find all jobs locked."""

    def __init__(self, store: Store, clock: ManualClock) -> None:
        super().__init__(store)
        self.clock = clock
        self.calls: Counter[str] = Counter()
        self.absences = 0
        self.are_locked = False

    def lose_tasks(self, machine: Ids) -> int:
        self._count("lose_tasks")
        return 0 if self.are_locked else super().lose_tasks(machine)

    def enforce_notices(self) -> int:
        self._count("enforce_notices")
        return super().enforce_notices()

    def _count(self, name: str) -> None:
        self.calls[name] += 1
        if self.absences:
            self.absences -= 1
            self.clock.advance(FAILURE_S)
            raise StoreUnavailable("a lock was not released")


class TestClearing:
    """Three machines of four cores."""

    def setup_method(self) -> None:
        self.clock = ManualClock()
        self.store = Counted(MemoryStore(self.clock), self.clock)
        self.events: list[Event] = []
        add_a_cell(self.store, 3)
        self.driver = a_driver(self.store, self.clock, self.events.append)
        self.clearing = self.another()

    def another(self) -> MachineClearing:
        return MachineClearing(self.clock, self.events.append)

    def check(self, view: View | None = None, *, clearing: MachineClearing | None = None) -> int:
        view = View(self.store.snapshot()) if view is None else view
        return drive((clearing or self.clearing).check(view), self.driver.answer)

    def put(self, state: MachineState, *machines: int) -> None:
        self.store.set_state(integers(list(machines)), state)

    def shrink(self, machine: int, *, cores: int, notice_ms: int = NOTICE_MS) -> None:
        self.store.resize(machine, size(cores), notice_ms=notice_ms)

    def test_a_cell_where_all_is_well_costs_no_call(self) -> None:
        a_running_job(self.store, a_spec(3), [1, 2, 3])
        self.put(MachineState.DRAINING, 2)

        assert [0, 0, 0] == [self.check() for _ in range(3)]
        assert {} == self.store.calls
        assert [] == self.events

    @pytest.mark.parametrize("state", [MachineState.DOWN, MachineState.GONE])
    def test_what_ran_on_a_dead_machine_waits_again(self, state: MachineState) -> None:
        job = a_running_job(self.store, a_spec(3), [1, 1, 2])
        self.put(state, 1)

        assert 2 == self.check()
        assert {(job.id, 2): 2} == places(self.store)
        assert [TasksLost(2, FAILED)] == self.events

    def test_a_dead_machine_is_cleared_once_and_again_when_it_comes_back_and_fails(self) -> None:
        self.put(MachineState.DOWN, 1)
        for _ in range(3):
            self.check()
        once = self.store.calls["lose_tasks"]
        self.put(MachineState.OPEN, 1)
        self.check()
        a_running_job(self.store, a_spec(), [1])
        self.put(MachineState.DOWN, 1)

        assert 1 == once
        assert 1 == self.check()
        assert 2 == self.store.calls["lose_tasks"]

    def test_tasks_that_ask_for_nothing_are_lost_too(self) -> None:
        job = a_running_job(self.store, a_spec(2), [1, 2], cpu_milli=0)
        self.put(MachineState.DOWN, 1)

        assert 1 == self.check()
        assert 1 == status_of(self.store, job).placed

    def test_tasks_that_ask_for_nothing_are_lost_when_the_machine_fails_again(self) -> None:
        self.put(MachineState.DOWN, 1)
        self.check()
        self.put(MachineState.OPEN, 1)
        self.check()
        job = a_running_job(self.store, a_spec(), [1], cpu_milli=0)
        self.put(MachineState.DOWN, 1)

        assert 1 == self.check()
        assert 0 == status_of(self.store, job).placed

    def test_a_second_one_finds_nothing_left_to_do(self) -> None:
        a_running_job(self.store, a_spec(2), [1, 2])
        self.put(MachineState.DOWN, 1)
        self.shrink(2, cores=0, notice_ms=0)

        assert 2 == self.check()
        assert 0 == self.check(clearing=self.another())

    def test_a_view_that_is_out_of_date_does_no_harm(self) -> None:
        job = a_running_job(self.store, a_spec(2), [1, 2])
        self.put(MachineState.DOWN, 1)
        self.shrink(2, cores=0, notice_ms=0)
        stale = View(self.store.snapshot())
        self.put(MachineState.OPEN, 1)
        self.shrink(2, cores=4)

        assert 0 == self.check(stale)
        assert 2 == status_of(self.store, job).placed

    def test_a_notice_is_enforced_when_it_is_over_and_not_before(self) -> None:
        job = a_running_job(self.store, a_spec(4), [1, 1, 1, 2])
        self.shrink(1, cores=1)

        before = self.check()
        self.clock.advance(NOTICE_MS / 1_000)

        assert [0, 2] == [before, self.check()]
        assert 2 == status_of(self.store, job).placed
        assert [TasksLost(2, SHRANK)] == self.events

    def test_a_notice_that_is_no_longer_needed_costs_no_call(self) -> None:
        job = a_running_job(self.store, a_spec(4), [1, 1, 1, 1])
        self.shrink(1, cores=3)
        end(self.store, job, 0)

        assert 0 == self.check()
        assert {} == self.store.calls

    def test_gangs_fall_whole(self) -> None:
        gang = a_running_job(self.store, a_spec(3, minimum=3), [1, 2, 3])
        self.put(MachineState.GONE, 3)

        assert 3 == self.check()
        assert {} == places(self.store)
        assert 0 == status_of(self.store, gang).placed

    def test_after_a_failure_it_rests_nineteen_times_as_long(self) -> None:
        a_running_job(self.store, a_spec(2), [1, 2])
        self.put(MachineState.DOWN, 1)
        self.shrink(2, cores=0, notice_ms=0)
        self.store.absences = 1

        failed = self.check()
        self.clock.advance(REST * FAILURE_S - 0.1)
        resting = self.check()
        calls = self.store.calls.total()
        self.clock.advance(0.1)

        assert [1, 0, 2] == [failed, resting, calls], "notices are enforced nevertheless"
        assert self.events == [
            StoreCallFailed("clear machines", "a lock was not released"),
            TasksLost(1, SHRANK),
        ]
        assert 1 == self.check()

    def test_a_dead_machine_is_cleared_until_nothing_is_left_on_it(self) -> None:
        """Its jobs were locked, so that no task was evicted; by what it holds it is empty."""
        job = a_running_job(self.store, a_spec(), [1], cpu_milli=0)
        self.put(MachineState.DOWN, 1)
        self.store.are_locked = True

        locked = self.check()
        self.store.are_locked = False

        assert [0, 1] == [locked, self.check()]
        assert 0 == status_of(self.store, job).placed


def size(cores: int) -> Amounts:
    return machine_capacity(cores * 1_000, 16_384, 100_000)
