"""Which parked jobs are woken because lower precedences would make way, and how often."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from omega.cell.view import View
from omega.clock import ManualClock
from omega.events import ignore
from omega.framework.effects import drive
from omega.framework.waking import Waker
from omega.framework.yield_waking import REST, YieldWaking
from omega.lifecycle.states import ParkReason, State
from omega.model.jobs import JobSpec, LeasedJob
from omega.model.occupants import Yielding
from omega.model.quotas import Budget, Quota, QuotaScope
from omega.store.leases import Parking
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_cell, a_group, a_spec
from omega.testing.pass_through import PassThrough
from omega.testing.steps import a_running_job, add_a_cell, end, lease_all, status_of
from tests.unit.framework.loops import a_driver


class Watched(PassThrough):
    """Notes which precedences are asked for; an answer takes some time."""

    def __init__(self, store: MemoryStore, clock: ManualClock) -> None:
        super().__init__(store)
        self.clock = clock
        self.asked: list[int] = []
        self.takes_s = 0.0
        self.locked: Collection[int] = ()
        """Jobs that somebody has locked: they are passed over."""

    def wake(self, jobs: Sequence[int]) -> list[int]:
        return super().wake([job for job in jobs if job not in self.locked])

    def yielding(self, precedence: int) -> Yielding:
        self.asked.append(precedence)
        self.clock.advance(self.takes_s)
        return super().yielding(precedence)


class TestYieldWaking:
    """Two machines of four cores that are full of equals, and the waker of services."""

    def setup_method(self) -> None:
        self.clock = ManualClock()
        self.store = Watched(MemoryStore(self.clock), self.clock)
        self.one, self.two = add_a_cell(self.store, 2)
        self.waker = Waker("service", ignore, yield_waking=YieldWaking(self.clock))
        places = [self.one] * 4 + [self.two] * 4
        self.equals = a_running_job(self.store, a_spec(8, precedence=95), places)
        self.check()

    def check(self) -> int:
        return drive(self.waker.check(View(self.store.snapshot())), a_driver(self.store).answer)

    def park(
        self, *specs: JobSpec, precedence: int = 100, reason: ParkReason = ParkReason.NO_ROOM
    ) -> Sequence[int]:
        """Submit services, and park them."""
        jobs = self.store.submit(
            [replace(spec, scheduler="service", precedence=precedence) for spec in specs]
        )
        self.park_again(reason)
        return jobs

    def park_again(self, reason: ParkReason = ParkReason.NO_ROOM) -> None:
        """Park all services in the queue, as after fruitless attempts."""
        leased = lease_all(self.store, scheduler="service")
        self.store.park([Parking(job.id, job.token, reason, "because") for job in leased])

    def exchange(self, *tasks: int, precedence: int = 0) -> LeasedJob:
        """Put tasks of a lower precedence into the places of some equals, which end."""
        places = [self.one if task < 4 else self.two for task in tasks]
        assert len(tasks) == end(self.store, self.equals, *tasks)
        return a_running_job(self.store, a_spec(len(tasks), precedence=precedence), places)

    def is_pending(self, job: int) -> bool:
        return State.PENDING is status_of(self.store, job).state

    def test_a_job_that_was_locked_is_woken_when_it_is_not_any_more(self) -> None:
        (job,) = self.park(a_spec())
        self.check()
        self.store.locked = (job,)
        self.exchange(0)

        while_locked = [self.check() for _ in range(3)]
        self.store.locked = ()

        assert [0, 0, 0] == while_locked
        assert 1 == self.check()
        assert self.is_pending(job)

    def test_tasks_that_arrive_and_yield_wake_those_they_suffice_for(self) -> None:
        small, large = self.park(a_spec(), a_spec(cpu_milli=3_000))
        assert 0 == self.check()
        self.exchange(0, 1)

        assert 1 == self.check()
        assert (True, False) == (self.is_pending(small), self.is_pending(large))

    def test_what_yields_counts_together_with_what_is_free(self) -> None:
        (job,) = self.park(a_spec(cpu_milli=3_000))
        self.exchange(0, 1)
        first = self.check()
        end(self.store, self.equals, 2)

        assert (0, 1) == (first, self.check())
        assert self.is_pending(job)

    def test_a_lower_gap_wakes_and_a_higher_one_does_not(self) -> None:
        (job,) = self.park(a_spec())
        self.check()
        self.store.set_precedence_gap(11)
        higher = self.check()
        self.store.set_precedence_gap(5)

        assert (0, 1) == (higher, self.check())
        assert self.is_pending(job)

    def test_without_a_change_nobody_asks(self) -> None:
        self.park(a_spec())
        self.exchange(0)
        self.check()
        self.store.asked.clear()

        assert [0, 0] == [self.check(), self.check()]
        assert [] == self.store.asked

    def test_without_parked_jobs_nobody_asks(self) -> None:
        self.exchange(0)

        assert 0 == self.check()
        assert [] == self.store.asked

    def test_no_more_are_woken_than_there_are_places_that_yield(self) -> None:
        jobs = self.park(*[a_spec()] * 50)
        self.exchange(0, 1, 4)

        assert 3 == self.check()
        assert jobs[:3] == [job for job in jobs if self.is_pending(job)]

    def test_a_gang_needs_all_that_it_lacks(self) -> None:
        (gang,) = self.park(a_spec(3, minimum=3))
        self.exchange(0, 1)
        first = self.check()
        self.exchange(4)

        assert (0, 1) == (first, self.check())
        assert self.is_pending(gang)

    def test_constraints_hold_for_places_that_yield(self) -> None:
        spec = a_spec(groups=[a_group(2, different_machines=True)], minimum=2)
        self.park(spec)
        self.exchange(0, 1)
        first = self.check()
        self.exchange(4)

        assert (0, 1) == (first, self.check())

    def test_precedences_are_looked_at_in_turn_one_a_check(self) -> None:
        (large,) = self.park(a_spec(cpu_milli=3_000))
        (small,) = self.park(a_spec(), precedence=20)
        self.exchange(0)

        assert [0, 1, 0] == [self.check(), self.check(), self.check()]
        assert [100, 20] == self.store.asked
        assert (False, True) == (self.is_pending(large), self.is_pending(small))

    def test_where_nothing_yields_lower_precedences_are_not_looked_at(self) -> None:
        self.park(a_spec())
        self.park(a_spec(), precedence=20)
        self.exchange(0, precedence=91)

        assert [0, 0] == [self.check(), self.check()]
        assert [100] == self.store.asked

    def test_a_job_that_came_back_is_not_woken_again_while_nothing_changes(self) -> None:
        self.park(a_spec())
        self.exchange(0)
        woken = [self.check()]
        self.park_again()
        self.store.set_quota(Quota(QuotaScope.TENANT, "ann", {Budget.JOBS: 1}))
        woken.append(self.check())
        self.store.remove_quota(QuotaScope.TENANT, "ann")  # a reason to look, but no change of rows
        woken += [self.check() for _ in range(5)]

        assert [1] + [0] * 6 == woken
        assert [100] * 2 == self.store.asked

    def test_a_job_that_comes_back_again_and_again_is_woken_ever_more_seldom(self) -> None:
        self.park(a_spec())
        job = self.exchange(0)
        woken = []
        for _ in range(32):
            woken.append(self.check())
            self.park_again()
            end(self.store, job, 0)
            job = a_running_job(self.store, a_spec(), [self.one])

        times = [number for number, many in enumerate(woken) if many]
        assert [0, 2, 6, 14, 30] == times

    def test_whoever_rests_is_looked_at_again_although_nothing_changes_by_then(self) -> None:
        (job,) = self.park(a_spec())
        self.exchange(0)
        assert 1 == self.check()
        self.park_again()
        self.exchange(1)

        assert [0, 1] == [self.check(), self.check()]
        assert self.is_pending(job)

    def test_looks_take_a_twentieth_of_the_time(self) -> None:
        self.park(a_spec(cpu_milli=8_000))
        self.store.takes_s = 1.0
        began_s = self.clock.now()
        job = self.exchange(0)
        while len(self.store.asked) < 4:
            self.check()
            self.clock.advance(1.0)
            end(self.store, job, 0)
            job = a_running_job(self.store, a_spec(), [self.one])

        assert 3 * (REST + 1) <= self.clock.now() - began_s <= 3 * (REST + 1) + 4

    def test_jobs_that_lost_to_others_are_woken_and_hopeless_ones_are_not(self) -> None:
        (lost,) = self.park(a_spec(), reason=ParkReason.CONFLICTS)
        (hopeless,) = self.park(a_spec(), reason=ParkReason.NEVER_FITS)
        self.exchange(0, 1)

        assert 1 == self.check()
        assert (True, False) == (self.is_pending(lost), self.is_pending(hopeless))

    def test_a_quota_is_asked_as_well(self) -> None:
        (job,) = self.park(a_spec(tenant="ann"), reason=ParkReason.OVER_QUOTA)
        self.store.set_quota(Quota(QuotaScope.TENANT, "ann", {Budget.JOBS: 0}))
        self.exchange(0)
        first = self.check()
        self.store.set_quota(Quota(QuotaScope.TENANT, "ann", {Budget.JOBS: 1}))

        assert (0, 1) == (first, self.check())
        assert self.is_pending(job)

    def test_a_machine_that_joins_full_counts_too(self) -> None:
        (job,) = self.park(a_spec(cpu_milli=8_000), reason=ParkReason.NEVER_FITS)
        (machine,) = self.store.add_machines(a_cell(1, cpu_milli=8_000, first=3)).tolist()
        a_running_job(self.store, a_spec(), [machine], cpu_milli=8_000)

        assert 1 == self.check()
        assert self.is_pending(job)

    def test_a_scheduler_that_does_not_preempt_does_not_ask(self) -> None:
        self.waker = Waker("service", ignore)
        self.park(a_spec())
        self.exchange(0)

        assert [0, 0] == [self.check(), self.check()]
        assert [] == self.store.asked
