"""How effects are answered with a store and a clock, and what a meter tells of them."""

from collections.abc import Sequence

import pytest

from omega.clock import ManualClock
from omega.events import Event, JobAttempted, StoreCallFailed, TransactionJudged, ViewRefreshed
from omega.framework.attempt import PlanningContext, attempt
from omega.framework.attempt_meter import AttemptMeter
from omega.framework.effects import Commit, Effect, Effects, drive, thought
from omega.framework.job_attempt import JobResult
from omega.framework.scheduler import DecisionTime
from omega.model.claims import Transaction
from omega.model.jobs import LeasedJob
from omega.model.outcomes import Outcome
from omega.store.memory.store import MemoryStore
from omega.testing.builders import a_spec
from omega.testing.steps import add_a_cell, grant, submit_and_lease
from tests.unit.framework.loops import InOrder, a_driver, a_replica
from tests.unit.framework.stores import Absent


class Slow(Absent):
    """Takes a quarter of a second for a commit."""

    def __init__(self, store: MemoryStore, clock: ManualClock) -> None:
        super().__init__(store)
        self.clock = clock

    def commit(self, transaction: Transaction) -> Outcome:
        self.clock.advance(0.25)
        return super().commit(transaction)


class TestDriver:
    """A driver on a memory store and a clock that is moved by hand."""

    def setup_method(self) -> None:
        self.clock = ManualClock()
        self.store = Slow(MemoryStore(self.clock), self.clock)
        self.events: list[Event] = []
        add_a_cell(self.store)
        sink = self.events.append
        self.driver = a_driver(self.store, self.clock, sink)
        self.meter = AttemptMeter(self.clock, sink)

    def attempt(self, context: PlanningContext, jobs: Sequence[LeasedJob]) -> list[JobResult]:
        attempted = drive(self.meter.over(attempt(context, jobs)), self.driver.answer)
        self.meter.report(attempted)
        return attempted

    def judged(self) -> list[TransactionJudged]:
        return [event for event in self.events if isinstance(event, TransactionJudged)]

    def test_it_tells_of_the_view_the_transaction_and_each_job(self) -> None:
        jobs = submit_and_lease(self.store, a_spec(2), a_spec(1))

        self.attempt(a_replica(InOrder(together=2)), jobs)

        assert [ViewRefreshed, TransactionJudged, JobAttempted, JobAttempted] == [
            type(event) for event in self.events
        ]

    def test_decision_time_is_slept_and_told_apart_from_the_commit(self) -> None:
        jobs = submit_and_lease(self.store, a_spec(4))
        context = a_replica(decision_time=DecisionTime(job_s=1.0, task_s=0.25))

        self.attempt(context, jobs)

        (judged,) = self.judged()
        assert [2.0] == self.clock.slept
        assert (2.0, 0.25) == (judged.thought_s, judged.took_s)
        assert JobAttempted(jobs[0].id, 1, 4, 0, thought_s=2.0) == self.events[-1]

    def test_the_decision_time_of_a_refused_try_is_told_once(self) -> None:
        (job,) = submit_and_lease(self.store, a_spec(1))
        rivals = submit_and_lease(self.store, a_spec(4))
        steps = self.meter.over(attempt(a_replica(decision_time=DecisionTime(job_s=1.0)), [job]))
        commits = 0

        def answer(effect: Effect) -> object:
            nonlocal commits
            if isinstance(effect, Commit):
                commits += 1
                if commits == 1:
                    grant(self.store, rivals[0], [0, 1, 2, 3], [1, 1, 1, 1])
            return self.driver.answer(effect)

        (attempted,) = drive(steps, answer)

        assert (1, 2) == (attempted.placed, attempted.tries)
        assert [1.0, 1.0] == [event.thought_s for event in self.judged()]

    def test_an_attempt_that_finds_no_room_has_thought_all_the_same(self) -> None:
        jobs = submit_and_lease(self.store, a_spec(1, cpu_milli=64_000))
        context = a_replica(decision_time=DecisionTime(job_s=1.0))

        self.attempt(context, jobs)

        assert [] == self.judged()
        assert JobAttempted(jobs[0].id, 1, 0, 1, thought_s=1.0) == self.events[-1]

    def test_without_decision_time_nobody_sleeps(self) -> None:
        self.attempt(a_replica(), submit_and_lease(self.store, a_spec(4)))

        assert [] == self.clock.slept

    @pytest.mark.parametrize("away", ["before", "after"])
    def test_a_commit_without_an_answer_is_sent_again_under_its_id(self, away: str) -> None:
        jobs = submit_and_lease(self.store, a_spec(3))
        if away == "before":
            self.store.absences = 2
        else:
            self.store.replies_lost = 2

        (attempted,) = self.attempt(a_replica(), jobs)

        faults = [event.what for event in self.events if isinstance(event, StoreCallFailed)]
        assert ["commit", "commit"] == faults
        assert 1 == len(set(self.store.committed))
        assert 3 == attempted.placed
        assert 3 == len(self.store.allocations())
        assert [] == list(self.store.verify())

    def test_the_view_is_kept_between_attempts(self) -> None:
        for _ in range(2):
            self.attempt(a_replica(), submit_and_lease(self.store, a_spec(1)))

        full = [event.full for event in self.events if isinstance(event, ViewRefreshed)]
        assert [True, False] == full

    def test_what_an_answer_raises_is_raised_in_the_loop_that_is_measured(self) -> None:
        def careful() -> Effects[str]:
            try:
                yield from thought(1.0)
            except ZeroDivisionError:
                return "caught"
            return "not reached"

        def answer(effect: Effect) -> object:
            raise ZeroDivisionError

        assert "caught" == drive(self.meter.over(careful()), answer)
