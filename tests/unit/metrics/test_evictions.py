"""What evictions add up to: who lost tasks to whom, and for how long."""

from omega.clock import ManualClock
from omega.events import JobAttempted, TasksEvicted, TasksLost
from omega.metrics.evictions import EvictionFold

WORKLOADS = {1: "batch", 2: "batch", 3: "service", 4: "service"}


class Watched:
    """A fold, and which jobs are whole."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.whole: set[int] = set()
        self.fold = EvictionFold(self.clock, WORKLOADS.__getitem__, self.whole.__contains__)

    def evict(self, job: int, tasks: int, evictor: int) -> None:
        self.whole.discard(job)
        self.fold(TasksEvicted(job, tasks, evictor))

    def attempt(self, job: int, *, after_s: float, whole: bool) -> None:
        self.clock.advance(after_s)
        if whole:
            self.whole.add(job)
        self.fold(JobAttempted(job, tries=1, placed=1, left=0, thought_s=0.0))


def test_tasks_are_counted_by_who_lost_them_and_for_whom() -> None:
    watched = Watched()
    watched.evict(1, 5, 3)
    watched.evict(2, 2, 3)
    watched.evict(1, 1, 2)
    watched.evict(4, 7, 3)
    watched.fold(TasksLost(9, "failed"))

    fold = watched.fold
    assert (8, 7, 0) == tuple(fold.tasks(name) for name in ("batch", "service", "start"))
    assert (7, 1) == (fold.tasks("batch", "service"), fold.tasks("batch", "batch"))
    assert (2, 1) == (fold.jobs("batch"), fold.jobs("service"))


def test_a_job_waits_from_its_first_eviction_until_an_attempt_leaves_it_whole() -> None:
    watched = Watched()
    watched.evict(1, 5, 3)
    watched.attempt(1, after_s=10.0, whole=False)
    watched.evict(1, 1, 3)
    assert 1 == watched.fold.not_whole("batch")

    watched.attempt(1, after_s=5.0, whole=True)
    watched.attempt(1, after_s=5.0, whole=True)

    assert [15.0] == watched.fold.waits_s("batch")
    assert 0 == watched.fold.not_whole("batch")


def test_who_is_evicted_again_later_waits_again() -> None:
    watched = Watched()
    for _ in range(2):
        watched.evict(4, 1, 3)
        watched.attempt(4, after_s=3.0, whole=True)

    assert [3.0, 3.0] == watched.fold.waits_s("service")
    assert 1 == watched.fold.jobs("service")


def test_attempts_at_others_end_no_wait() -> None:
    watched = Watched()
    watched.evict(1, 1, 3)
    watched.attempt(2, after_s=3.0, whole=True)

    assert [] == watched.fold.waits_s("batch")
    assert (1, 0) == (watched.fold.not_whole("batch"), watched.fold.not_whole("service"))
