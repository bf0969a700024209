"""Which parked jobs are woken, and when the queue is looked at at all."""

from collections.abc import Collection, Mapping, Sequence

from omega.cell.view import View
from omega.clock import ManualClock
from omega.events import Event, JobsWoken
from omega.framework.attempt import attempt
from omega.framework.effects import drive
from omega.framework.waking import Waker
from omega.lifecycle.states import ParkReason, State
from omega.model.arrays import integers
from omega.model.jobs import JobSpec
from omega.model.machines import MachineState
from omega.model.quotas import Budget, Quota, QuotaScope
from omega.model.resources import machine_capacity
from omega.store.leases import ParkedJob, Parking
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_cell, a_group, a_spec
from omega.testing.pass_through import PassThrough
from omega.testing.steps import (
    a_leased_job,
    a_running_job,
    add_a_cell,
    end,
    grant,
    lease_all,
    status_of,
    submit_and_lease,
)
from tests.unit.framework.loops import a_driver, a_replica


class Watched(PassThrough):
    """Counts how often parked jobs are asked for."""

    looks = 0
    locked: Collection[int] = ()
    """Jobs that somebody has locked: they are passed over."""

    def wake(self, jobs: Sequence[int]) -> list[int]:
        return super().wake([job for job in jobs if job not in self.locked])

    def parked(self, scheduler: str, *, jobs_max: int, by_lane: bool = False) -> list[ParkedJob]:
        self.looks += 1
        return super().parked(scheduler, jobs_max=jobs_max, by_lane=by_lane)


class TestWaking:
    """One machine of four cores, and a waker that has seen it full."""

    def setup_method(self) -> None:
        clock = ManualClock()
        self.store = Watched(MemoryStore(clock))
        self.events: list[Event] = []
        add_a_cell(self.store, 1)
        self.driver = a_driver(self.store)
        self.waker = Waker("batch", self.events.append)
        self.running = a_running_job(self.store, a_spec(4), [1, 1, 1, 1])
        self.check()
        self.store.looks = 0

    def check(self) -> int:
        return drive(self.waker.check(View(self.store.snapshot())), self.driver.answer)

    def limit(self, limits: Mapping[Budget, int]) -> None:
        self.store.set_quota(Quota(QuotaScope.TENANT, "ann", limits))

    def park(self, reason: ParkReason, *specs: JobSpec) -> Sequence[int]:
        jobs = submit_and_lease(self.store, *specs)
        self.store.park([Parking(job.id, job.token, reason, "because") for job in jobs])
        return [job.id for job in jobs]

    def test_a_locked_job_is_tried_again_and_those_that_were_woken_are_not(self) -> None:
        locked, other = self.park(ParkReason.NO_ROOM, a_spec(), a_spec())
        self.store.locked = {locked}
        end(self.store, self.running, 0, 1)

        first = self.check()
        (job,) = lease_all(self.store)
        self.store.park([Parking(job.id, job.token, ParkReason.NO_ROOM, "because")])
        while_locked = self.check()
        self.store.locked = ()

        assert [1, other, 0, 1, 0] == [first, job.id, while_locked, self.check(), self.check()]
        assert [locked] == [job.id for job in lease_all(self.store)]

    def test_without_any_change_nobody_looks(self) -> None:
        self.park(ParkReason.NO_ROOM, a_spec())

        assert 0 == self.check()
        assert 0 == self.store.looks

    def test_freed_room_wakes_those_that_fit_it_and_no_others(self) -> None:
        small, large = self.park(ParkReason.NO_ROOM, a_spec(), a_spec(cpu_milli=3_000))
        end(self.store, self.running, 0)

        assert 1 == self.check()
        assert State.PENDING is status_of(self.store, small).state
        assert State.PARKED is status_of(self.store, large).state
        assert [JobsWoken(1)] == self.events

    def test_room_is_news_only_once(self) -> None:
        self.park(ParkReason.NO_ROOM, a_spec(cpu_milli=3_000))
        end(self.store, self.running, 0)
        self.check()

        assert 0 == self.check()
        assert 1 == self.store.looks

    def test_room_that_was_taken_and_freed_since_the_last_check_is_a_gain(self) -> None:
        end(self.store, self.running, 0)
        self.check()
        filler = a_running_job(self.store, a_spec(), [1])  # which takes the room again
        (job,) = submit_and_lease(self.store, a_spec())
        (result,) = drive(attempt(a_replica(), [job]), self.driver.answer)
        assert result.room is not None
        self.store.park([Parking(job.id, job.token, ParkReason.NO_ROOM, "full")])
        self.waker.note([ParkReason.NO_ROOM], [result.room])
        end(self.store, filler, 0)

        assert 1 == self.check()
        assert State.PENDING is status_of(self.store, job.id).state

    def test_a_machine_that_closed_and_opened_since_the_last_check_helps_those_it_could_hold(
        self,
    ) -> None:
        self.store.set_state(integers([1]), MachineState.DOWN)
        (job,) = submit_and_lease(self.store, a_spec())
        (result,) = drive(attempt(a_replica(), [job]), self.driver.answer)
        assert result.room is not None
        self.store.park([Parking(job.id, job.token, ParkReason.NO_MACHINE_MATCHES, "closed")])
        self.waker.note([ParkReason.NO_MACHINE_MATCHES], [result.room])
        self.store.set_state(integers([1]), MachineState.OPEN)
        end(self.store, self.running, 0)

        assert 1 == self.check()

    def test_a_machine_that_grew_while_it_was_full_helps_when_it_is_free(self) -> None:
        (job,) = self.park(ParkReason.NEVER_FITS, a_spec(cpu_milli=8_000))
        self.store.resize(1, machine_capacity(8_000, 16_384, 0, 0), notice_ms=0)
        assert 0 == self.check()
        end(self.store, self.running, 0, 1, 2, 3)

        assert 1 == self.check()
        assert State.PENDING is status_of(self.store, job).state

    def test_room_that_was_taken_and_freed_is_no_gain_for_those_parked_before(self) -> None:
        self.park(ParkReason.NO_ROOM, a_spec(cpu_milli=3_000))
        end(self.store, self.running, 0)
        self.check()
        end(self.store, a_running_job(self.store, a_spec(), [1]), 0)

        assert 0 == self.check()
        assert 1 == self.store.looks

    def test_freed_room_helps_nobody_who_is_parked_for_good(self) -> None:
        self.park(ParkReason.NO_MACHINE_MATCHES, a_spec())
        end(self.store, self.running, 0)

        assert 0 == self.check()

    def test_new_machines_wake_whoever_they_help(self) -> None:
        helped, hopeless = self.park(
            ParkReason.NEVER_FITS, a_spec(cpu_milli=8_000), a_spec(cpu_milli=80_000)
        )
        self.store.add_machines(a_cell(1, cpu_milli=8_000, first=2))

        assert 1 == self.check()
        assert State.PENDING is status_of(self.store, helped).state
        assert State.PARKED is status_of(self.store, hopeless).state

    def test_a_machine_that_grows_or_opens_wakes_whoever_it_helps(self) -> None:
        large, other = self.park(
            ParkReason.NEVER_FITS, a_spec(cpu_milli=8_000), a_spec(cpu_milli=9_000)
        )
        self.store.resize(1, machine_capacity(12_000, 16_384, 0, 0), notice_ms=0)
        grown = self.check()
        self.store.add_machines(a_cell(1, cpu_milli=9_000, first=2))
        self.store.set_state(integers([2]), MachineState.DOWN)
        closed = self.check()
        self.store.set_state(integers([2]), MachineState.OPEN)

        assert (1, 0, 1) == (grown, closed, self.check())
        assert State.PENDING is status_of(self.store, large).state
        assert State.PENDING is status_of(self.store, other).state

    def test_one_that_lost_to_others_is_looked_at_without_a_change(self) -> None:
        end(self.store, self.running, 0)
        self.check()
        (job,) = self.park(ParkReason.CONFLICTS, a_spec())
        self.waker.note([ParkReason.CONFLICTS])

        assert 1 == self.check()
        assert State.PENDING is status_of(self.store, job).state

    def test_no_more_are_woken_than_there_is_room_for(self) -> None:
        jobs = self.park(ParkReason.NO_ROOM, *[a_spec() for _ in range(100)])
        end(self.store, self.running, 0, 1)

        assert 2 == self.check()
        assert {State.PENDING} == {status_of(self.store, job).state for job in jobs[:2]}
        assert {State.PARKED} == {status_of(self.store, job).state for job in jobs[2:]}

    def test_those_who_were_held_back_come_next_if_room_was_left_after_all(self) -> None:
        first, second, third = self.park(ParkReason.NO_ROOM, a_spec(), a_spec(), a_spec())
        end(self.store, self.running, 0)
        woken = [self.check()]
        self.store.cancel(first)
        woken.append(self.check())
        (leased,) = lease_all(self.store)
        grant(self.store, leased, [0], [1])
        woken.append(self.check())
        woken.append(self.check())

        assert [1, 1, 0, 0] == woken
        assert State.RUNNING is status_of(self.store, second).state
        assert State.PARKED is status_of(self.store, third).state

    def test_one_that_came_back_lets_those_behind_it_try_the_same_room(self) -> None:
        first, second = self.park(ParkReason.NO_ROOM, a_spec(), a_spec())
        end(self.store, self.running, 0)
        self.check()
        (again,) = lease_all(self.store)
        self.store.park([Parking(first, again.token, ParkReason.NO_ROOM, "not to its taste")])

        assert (1, 0) == (self.check(), self.check())
        assert State.PARKED is status_of(self.store, first).state
        assert State.PENDING is status_of(self.store, second).state

    def test_new_machines_help_those_who_were_held_back_later_on(self) -> None:
        first, second = self.park(
            ParkReason.NEVER_FITS, a_spec(cpu_milli=8_000), a_spec(cpu_milli=8_000)
        )
        self.store.add_machines(a_cell(1, cpu_milli=8_000, first=2))
        self.check()
        (leased,) = lease_all(self.store)
        grant(self.store, leased, [0], [2], cpu_milli=8_000)
        full = self.check()
        end(self.store, leased, 0)

        assert (0, 1) == (full, self.check())
        assert State.SUCCEEDED is status_of(self.store, first).state
        assert State.PENDING is status_of(self.store, second).state

    def test_room_on_the_machine_that_a_task_must_stay_off_wakes_nobody(self) -> None:
        spec = a_spec(groups=[a_group(2, different_machines=True)])
        end(self.store, self.running, 0)
        job = a_leased_job(self.store, spec)
        grant(self.store, job, [0], [1])
        self.check()
        self.store.park([Parking(job.id, job.token, ParkReason.NO_ROOM, "because")])
        end(self.store, self.running, 1)
        on_its_own_machine = self.check()
        self.store.add_machines(a_cell(1, first=2))

        assert (0, 1) == (on_its_own_machine, self.check())

    def test_a_gang_is_woken_when_all_that_it_lacks_fits(self) -> None:
        (gang,) = self.park(ParkReason.NO_ROOM, a_spec(2, minimum=2))
        end(self.store, self.running, 0)
        first = self.check()
        end(self.store, self.running, 1)

        assert (0, 1) == (first, self.check())
        assert State.PENDING is status_of(self.store, gang).state

    def test_a_job_that_met_its_quota_is_woken_when_enough_is_left(self) -> None:
        end(self.store, self.running, 0, 1)
        self.check()
        self.store.looks = 0
        self.limit({Budget.CPU_MILLI: 999})
        (job,) = self.park(ParkReason.OVER_QUOTA, a_spec(tenant="ann"))
        self.waker.note([ParkReason.OVER_QUOTA])

        assert 0 == self.check()
        assert 0 == self.check()
        assert 1 == self.store.looks, "not again before more is left"
        self.limit({Budget.CPU_MILLI: 1_000})

        assert 1 == self.check()
        assert State.PENDING is status_of(self.store, job).state

    def test_a_quota_that_is_lifted_wakes_all_that_it_held(self) -> None:
        end(self.store, self.running, 0, 1)
        self.check()
        self.store.set_quota(Quota(QuotaScope.SCHEDULER, "batch", {Budget.JOBS: 1}))
        self.park(ParkReason.OVER_QUOTA, a_spec(), a_spec())
        self.waker.note([ParkReason.OVER_QUOTA])
        assert 0 == self.check()

        self.store.remove_quota(QuotaScope.SCHEDULER, "batch")

        assert 2 == self.check()

    def test_no_more_jobs_are_woken_than_the_quota_lets_in(self) -> None:
        end(self.store, self.running, 0, 1, 2, 3)
        self.check()
        self.limit({Budget.GPU_SLICES: 0, Budget.CPU_MILLI: 2_500})
        first, second, third, gpus = self.park(
            ParkReason.OVER_QUOTA,
            *[a_spec(tenant="ann")] * 3,
            a_spec(tenant="ann", gpus=1),
        )
        self.waker.note([ParkReason.OVER_QUOTA])

        assert 2 == self.check()
        states = [status_of(self.store, job).state for job in (first, second, third, gpus)]
        assert [State.PENDING] * 2 + [State.PARKED] * 2 == states

    def test_what_was_left_again_before_anybody_looked_is_not_missed(self) -> None:
        end(self.store, self.running, 0)
        self.check()
        self.limit({Budget.CPU_MILLI: 1_000})
        (job,) = self.park(ParkReason.OVER_QUOTA, a_spec(tenant="ann"))  # others held it then
        self.waker.note([ParkReason.OVER_QUOTA])

        assert 1 == self.check()
        (again,) = lease_all(self.store)
        self.store.park([Parking(job, again.token, ParkReason.OVER_QUOTA, "they did again")])
        self.waker.note([ParkReason.OVER_QUOTA])
        assert 1 == self.check()

    def test_a_job_that_another_replica_parked_is_woken_when_more_is_left(self) -> None:
        end(self.store, self.running, 0)
        self.limit({Budget.JOBS: 0})
        self.check()
        self.park(ParkReason.OVER_QUOTA, a_spec(tenant="ann"))
        before = self.check()
        self.limit({Budget.JOBS: 1})

        assert (0, 1) == (before, self.check())

    def test_one_without_room_takes_nothing_of_the_quota_from_those_behind_it(self) -> None:
        end(self.store, self.running, 0)
        self.check()
        self.limit({Budget.CPU_MILLI: 2_000})
        large, small = self.park(
            ParkReason.OVER_QUOTA,
            a_spec(tenant="ann", cpu_milli=2_000),
            a_spec(tenant="ann"),
        )
        self.waker.note([ParkReason.OVER_QUOTA])

        assert 1 == self.check()
        assert State.PARKED is status_of(self.store, large).state
        assert State.PENDING is status_of(self.store, small).state

    def test_one_over_its_quota_takes_no_room_from_those_behind_it(self) -> None:
        self.limit({Budget.CPU_MILLI: 0})
        self.check()
        held, other = self.park(ParkReason.OVER_QUOTA, a_spec(tenant="ann"), a_spec(tenant="bob"))
        end(self.store, self.running, 0)

        assert 1 == self.check()
        assert State.PARKED is status_of(self.store, held).state
        assert State.PENDING is status_of(self.store, other).state

    def test_those_whom_a_quota_held_back_come_next_if_it_was_not_used_after_all(self) -> None:
        end(self.store, self.running, 0, 1)
        self.check()
        self.limit({Budget.CPU_MILLI: 1_000})
        first, second = self.park(ParkReason.OVER_QUOTA, *[a_spec(tenant="ann")] * 2)
        self.waker.note([ParkReason.OVER_QUOTA])
        woken = [self.check()]
        self.store.cancel(first)

        assert [1, 1] == [*woken, self.check()]
        assert State.PENDING is status_of(self.store, second).state
