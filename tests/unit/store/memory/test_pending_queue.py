"""The pending jobs of one kind of scheduler, lane by lane."""

import pytest

from omega.lifecycle.states import Trigger
from omega.model.lanes import Lane
from omega.store.memory.job_records import JobRecord
from omega.store.memory.pending_queue import PendingQueue
from omega.testing.builders import a_spec


def a_record(
    tasks: int = 3, *, number: int = 1, precedence: int = 0, tenant: str = "default"
) -> JobRecord:
    spec = a_spec(tasks, precedence=precedence, tenant=tenant)
    return JobRecord.submitted(number, spec, now_s=0.0)


class TestPendingQueue:
    def test_the_most_urgent_goes_first_then_the_oldest(self) -> None:
        queue = PendingQueue()
        for number, precedence in [(3, 0), (1, 0), (4, 2), (2, -1)]:
            queue.join(a_record(number=number, precedence=precedence), not_before_s=0, now_s=0)

        assert [4, 1, 3, 2] == [job.id for job in queue.take(9, now_s=0)]
        assert [] == queue.take(9, now_s=0)

    def test_who_is_to_wait_is_taken_when_it_is_time(self) -> None:
        queue = PendingQueue()
        queue.join(a_record(number=1), not_before_s=5.0, now_s=0)
        queue.join(a_record(number=2), not_before_s=3.0, now_s=0)

        taken = [[job.id for job in queue.take(9, now_s=now)] for now in (2.9, 3.0, 5.0)]

        assert [[], [2], [1]] == taken

    def test_no_more_are_taken_than_asked_for(self) -> None:
        queue = PendingQueue()
        for number in range(1, 6):
            queue.join(a_record(number=number), not_before_s=0, now_s=0)

        taken = [[job.id for job in queue.take(2, now_s=0)] for _ in range(4)]

        assert [[1, 2], [3, 4], [5], []] == taken

    def test_the_cancelled_are_passed_over_and_count_for_nobody(self) -> None:
        queue = PendingQueue()
        jobs = [a_record(number=number) for number in (1, 2, 3)]
        for job in jobs:
            queue.join(job, not_before_s=0, now_s=0)
        jobs[0].finish(Trigger.CANCEL, now_s=0)

        assert [2, 3] == [job.id for job in queue.take(2, now_s=0)]

    def test_only_pending_jobs_are_queued(self) -> None:
        job = a_record()
        job.move(Trigger.TAKE)

        with pytest.raises(AssertionError):
            PendingQueue().join(job, not_before_s=0, now_s=0)

    def test_jobs_of_several_lanes_are_taken_as_those_of_one(self) -> None:
        queue = PendingQueue()
        for number, precedence, tenant in [(1, 0, "b"), (2, 3, "a"), (3, 3, "b"), (4, 0, "a")]:
            job = a_record(number=number, precedence=precedence, tenant=tenant)
            queue.join(job, not_before_s=0, now_s=0)

        assert [2, 3, 1] == [job.id for job in queue.take(3, now_s=0)]
        assert [4] == [job.id for job in queue.take(3, now_s=0)]

    def test_a_lane_without_jobs_is_dropped_and_begins_anew(self) -> None:
        queue = PendingQueue()
        late = a_record(number=1, tenant="late")
        queue.join(late, not_before_s=2.0, now_s=0)
        queue.join(a_record(number=2, tenant="now"), not_before_s=0, now_s=0)
        queue.take_from({Lane.of(a_spec(tenant="now")): 1}, 1, now_s=0)

        assert [] == queue.heads(now_s=1.0)
        assert [(Lane.of(a_spec(tenant="late")), late)] == queue.heads(now_s=2.0)
        assert [] == queue.take_from({Lane.of(a_spec(tenant="now")): 1}, 1, now_s=2.0)

    def test_precedence_counts_between_lanes(self) -> None:
        queue = PendingQueue()
        for number, precedence, tenant in [(1, 0, "a"), (2, 5, "b")]:
            job = a_record(number=number, precedence=precedence, tenant=tenant)
            queue.join(job, not_before_s=0, now_s=0)

        assert [2, 1] == [job.id for job in queue.take(2, now_s=0)]
