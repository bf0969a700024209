"""What it costs to keep leases: looks at the view, and notes of jobs that were placed."""

from collections.abc import Sequence

import pytest

from omega.clock import ManualClock
from omega.events import Event
from omega.framework import kept_leases
from omega.framework.job_attempt import AttemptEnd, JobResult
from omega.framework.kept_leases import LOOK_SHARE, WAIT_S, KeptLeases
from omega.framework.leasing import Leasing
from omega.framework.waking import Waker
from omega.model.jobs import LeasedJob
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_spec, a_view
from omega.testing.steps import add_a_cell, submit_and_lease

LOOK_S = 0.004
"""How long it takes to see whether one job has room."""
JOBS = 5


class TestKeptLeasesCost:
    """Jobs that keep their leases, in a view that takes time to look at."""

    @pytest.fixture(autouse=True)
    def _slow_looks(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = ManualClock()
        store = MemoryStore(self.clock)
        add_a_cell(store, 1)
        self.jobs = submit_and_lease(store, *(a_spec(2) for _ in range(JOBS)))
        events: list[Event] = []
        waker = Waker("batch", events.append)
        self.kept = KeptLeases(self.clock, Leasing("batch", "a", 60_000, events.append, waker))
        self.looked = 0
        self.room_for: Sequence[int] = ()

        def has_room(view: object, job: LeasedJob) -> bool:
            self.looked += 1
            self.clock.advance(LOOK_S)
            return job.id in self.room_for

        monkeypatch.setattr(kept_leases, "has_room", has_room)
        self.view = a_view()

    def keep(self, job: LeasedJob, *, placed: int = 1, ending: AttemptEnd) -> bool:
        result = JobResult(job=job, placed=placed, tries=1, tasks_decided=2, ending=ending)
        return self.kept.keep(result)

    def keep_all(self) -> None:
        for job in self.jobs:
            assert self.keep(job, ending=AttemptEnd.NO_ROOM)

    def test_the_next_look_at_any_job_waits_for_what_the_last_one_took(self) -> None:
        last = self.jobs.pop()
        self.keep_all()

        assert [] == self.kept.with_room(self.view)

        took_s = (JOBS - 1) * LOOK_S
        assert self.keep(last, ending=AttemptEnd.NO_ROOM)
        pause_s = took_s / LOOK_SHARE - took_s
        assert pytest.approx(pause_s) == self.kept.pause_s()
        self.clock.advance(pause_s - 1e-6)
        assert [] == self.kept.with_room(self.view)
        assert JOBS - 1 == self.looked, "not even at the one that was placed meanwhile"
        self.clock.advance(2e-6)
        assert [] == self.kept.with_room(self.view)
        assert self.looked == JOBS

    def test_a_job_with_room_is_due_until_it_is_attempted(self) -> None:
        self.keep_all()
        self.room_for = [self.jobs[2].id]
        for _ in range(2):
            assert self.room_for == [job.id for job in self.kept.with_room(self.view)]
            self.clock.advance(JOBS * LOOK_S / LOOK_SHARE)

        self.room_for = []
        assert self.keep(self.jobs[2], ending=AttemptEnd.NO_ROOM)

        assert [] == self.kept.with_room(self.view)

    def test_jobs_that_are_placed_whole_are_not_remembered(self) -> None:
        job = self.jobs[0]
        assert not self.keep(job, placed=2, ending=AttemptEnd.DONE)
        assert not self.keep(job, placed=0, ending=AttemptEnd.NO_ROOM)

    def test_jobs_are_remembered_since_tasks_were_placed_last(self) -> None:
        first, second = self.jobs[:2]
        assert not self.keep(first, ending=AttemptEnd.CONFLICTS)
        self.clock.advance(WAIT_S / 2)
        assert not self.keep(second, ending=AttemptEnd.CONFLICTS)
        self.clock.advance(WAIT_S / 4)
        assert not self.keep(first, ending=AttemptEnd.CONFLICTS)
        self.clock.advance(WAIT_S / 2)

        assert self.keep(first, placed=0, ending=AttemptEnd.NO_ROOM)
        assert self.keep(second, placed=0, ending=AttemptEnd.NO_ROOM)
        self.clock.advance(WAIT_S / 4)
        assert self.keep(first, placed=0, ending=AttemptEnd.NO_ROOM)
        assert not self.keep(second, placed=0, ending=AttemptEnd.NO_ROOM)
