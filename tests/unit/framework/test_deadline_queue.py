"""How many jobs are leased by their keys, and which of them keep their place."""

from dataclasses import replace

from omega.cell.view import View
from omega.clock import ManualClock
from omega.framework.deadline_queue import (
    JOBS_AT_FIRST,
    LOOK_S_MAX,
    LOOK_S_MIN,
    SIZES_KEPT,
    DeadlineQueue,
)
from omega.framework.effects import Effect, drive
from omega.framework.job_attempt import AttemptEnd, JobResult
from omega.framework.read_pause import PAUSE_S_MAX
from omega.model.jobs import LeasedJob
from omega.store.leases import HandBack
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_spec
from omega.testing.steps import a_running_job, add_a_cell, submit_and_lease
from tests.unit.framework.loops import a_driver

GAP_MS = 50
DELAY_MS = 100


class TestDeadlineQueue:
    """Three machines of four cores, and jobs of two cores a task."""

    def setup_method(self) -> None:
        self.clock = ManualClock()
        self.store = MemoryStore(self.clock)
        self.machines = add_a_cell(self.store)
        self.driver = a_driver(self.store)
        self.queue = DeadlineQueue(self.clock, GAP_MS)

    def jobs_max(self, wanted: int = 64) -> int:
        return drive(self.queue.jobs_max(wanted), self.driver.answer)

    def took(self, *, cpu_milli: int = 2_000) -> LeasedJob:
        (job,) = submit_and_lease(self.store, a_spec(cpu_milli=cpu_milli))
        self.queue.took([job])
        return job

    def without_room(self, job: LeasedJob, *, room: bool = True) -> JobResult:
        seen = View(self.store.snapshot()).open_room() if room else None
        ending = AttemptEnd.NO_ROOM
        return JobResult(job=job, placed=0, tries=1, tasks_decided=1, ending=ending, room=seen)

    def delay_ms(self, result: JobResult) -> int:
        def dispose(one: JobResult) -> HandBack:
            return HandBack(one.job.id, one.job.token, DELAY_MS, progressed=False)

        back = self.queue.disposed(dispose)(result)
        assert isinstance(back, HandBack)
        return back.delay_ms

    def fill(self) -> None:
        for machine in self.machines:
            a_running_job(self.store, a_spec(2, cpu_milli=2_000), [machine] * 2, cpu_milli=2_000)

    def test_a_few_are_leased_before_any_size_is_known(self) -> None:
        assert JOBS_AT_FIRST == self.jobs_max()
        assert 1 == self.jobs_max(1)

    def test_no_more_are_leased_than_there_is_room_for_less_those_that_were(self) -> None:
        self.took()
        self.clock.advance(1)
        assert 6 == self.jobs_max()
        self.took()
        assert 5 == self.jobs_max()

    def test_after_a_read_that_took_long_the_view_is_soon_read_again(self) -> None:
        def answer(effect: Effect) -> object:
            self.clock.advance(60)  # the process was stopped, or the server had to be promoted
            return self.driver.answer(effect)

        self.took()
        assert 6 == drive(self.queue.jobs_max(64), answer)
        self.fill()
        assert 6 == self.jobs_max()
        self.clock.advance(PAUSE_S_MAX)

        assert 0 == self.jobs_max()

    def test_none_are_leased_while_the_cell_is_full_and_again_a_gap_after_it_is_not(self) -> None:
        self.took()
        job = a_running_job(
            self.store, a_spec(2, cpu_milli=2_000), self.machines[:1] * 2, cpu_milli=2_000
        )
        for machine in self.machines[1:]:
            a_running_job(self.store, a_spec(2, cpu_milli=2_000), [machine] * 2, cpu_milli=2_000)
        self.clock.advance(1)
        assert 0 == self.jobs_max()
        self.store.cancel(job.id)
        assert 0 == self.jobs_max()
        self.clock.advance(1)
        assert 2 == self.jobs_max()

    def test_a_large_job_that_is_tried_again_and_again_hides_no_smaller_one(self) -> None:
        self.took(cpu_milli=1_000)
        (large,) = submit_and_lease(self.store, a_spec(cpu_milli=64_000))
        for _ in range(2 * SIZES_KEPT):
            self.queue.took([large])
        self.clock.advance(1)

        assert 12 == self.jobs_max()

    def test_smaller_jobs_are_looked_for_deeper_and_seldomer_while_something_is_free(self) -> None:
        for _ in range(2 * SIZES_KEPT):
            self.took(cpu_milli=64_000)
        self.clock.advance(1)
        looks = []
        for _ in range(int(4 * LOOK_S_MAX)):
            looks.append(self.jobs_max())
            self.clock.advance(LOOK_S_MIN)

        gaps = [at for at, jobs in enumerate(looks) if jobs]
        assert [8, 16, 32, 64, 64] == [jobs for jobs in looks if jobs][:5]
        assert [0, 1, 3, 7, 15] == gaps[:5]
        assert 0 == self.delay_ms(self.without_room(self.took(cpu_milli=64_000)))
        self.took(cpu_milli=1_000)
        self.clock.advance(1)
        assert 12 == self.jobs_max()

    def test_after_as_many_as_there_is_room_for_none_are_looked_at(self) -> None:
        self.took(cpu_milli=4_000)
        self.clock.advance(1)
        assert 3 == self.jobs_max()
        for _ in range(3):
            self.took(cpu_milli=4_000)

        assert 0 == self.jobs_max()

    def test_behind_tasks_with_gpus_those_without_are_looked_for(self) -> None:
        (job,) = submit_and_lease(self.store, a_spec(cpu_milli=1_000, gpus=8))
        self.queue.took([job])
        self.clock.advance(1)

        assert JOBS_AT_FIRST == self.jobs_max()

    def test_a_scheduler_that_evicts_leases_what_it_wants(self) -> None:
        self.queue = DeadlineQueue(self.clock, GAP_MS, preempts=True)
        self.took()
        self.fill()

        assert 64 == self.jobs_max()

    def test_a_scheduler_that_evicts_does_not_try_a_job_again_at_once(self) -> None:
        self.queue = DeadlineQueue(self.clock, GAP_MS, preempts=True)
        job = self.took()
        self.fill()

        assert 0 < self.delay_ms(self.without_room(job))

    def test_on_a_full_cell_a_job_keeps_its_place_and_nothing_more_is_leased(self) -> None:
        job = self.took()
        self.clock.advance(1)
        self.jobs_max()
        self.fill()

        assert 0 == self.delay_ms(self.without_room(job))
        assert 0 == self.jobs_max()

    def test_where_others_have_room_it_is_delayed(self) -> None:
        job = self.took()

        assert DELAY_MS == self.delay_ms(self.without_room(job))
        assert DELAY_MS == self.delay_ms(self.without_room(job, room=False))

    def test_what_lost_conflicts_is_disposed_of_as_ever(self) -> None:
        job = self.took()
        self.fill()
        lost = replace(self.without_room(job), ending=AttemptEnd.CONFLICTS)

        assert DELAY_MS == self.delay_ms(lost)
