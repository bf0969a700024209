"""Scheduler processes that plan by rounds: one a round, whoever dies in between."""

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress

import numpy as np
import pytest

from omega.clock import ManualClock
from omega.config import Settings
from omega.errors import StoreUnavailable
from omega.events import Event, JobAttempted, MemoRefused
from omega.framework.runner import SchedulerProcess
from omega.lifecycle.states import ParkReason, State
from omega.model.claims import Transaction
from omega.model.jobs import JobSpec, LeasedJob, StepWork
from omega.model.outcomes import Outcome
from omega.model.quotas import Budget, Quota, QuotaScope
from omega.store.memory.store import MemoryStore
from omega.store.rounds import Round
from omega.testing.builders import a_cell, a_spec
from omega.testing.pass_through import PassThrough
from omega.testing.steps import places, recall, status_of
from schedulers.ml_gpu import MlGpuScheduler
from tests.unit.framework.stores import RefusesMemos

SETTINGS = Settings()
POLL_S = SETTINGS.poll_interval_ms / 1_000
ROUND_S = 1.0
RESETS_AFTER = "1000"
"""So that one ledger runs through a test."""


class Alarm(ManualClock):
    """Sets the stop event, if there is one, when somebody sleeps."""

    stop: threading.Event | None = None

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if self.stop is not None:
            self.stop.set()


class Killed(BaseException):
    """What no scheduler catches."""


class Deadly(PassThrough):
    """Kills whoever commits, before or after the commit; lists what is recalled."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__(store)
        self.kills_before = self.kills_after = False
        self.recalled: list[list[int]] = []

    def commit(self, transaction: Transaction) -> Outcome:
        if self.kills_before:
            raise Killed
        outcome = super().commit(transaction)
        if self.kills_after:
            raise Killed
        return outcome

    def recall(
        self, scheduler: str, number: int, jobs: Sequence[int] | None, *, lease_ms: int
    ) -> list[LeasedJob]:
        self.recalled.append([] if jobs is None else list(jobs))
        return super().recall(scheduler, number, jobs, lease_ms=lease_ms)


class Away(PassThrough):
    """Cannot commit, and the operator loses patience."""

    def __init__(self, store: MemoryStore, stop: threading.Event) -> None:
        super().__init__(store)
        self._stop = stop

    def commit(self, transaction: Transaction) -> Outcome:
        self._stop.set()
        raise StoreUnavailable("away")


class Stopping(Away):
    """The operator stops the process while it commits."""

    def commit(self, transaction: Transaction) -> Outcome:
        self._stop.set()
        return PassThrough.commit(self, transaction)


class Overtaken(PassThrough):
    """Planning takes so long that somebody else begins the next round."""

    def __init__(self, store: MemoryStore, clock: ManualClock) -> None:
        super().__init__(store)
        self._clock = clock

    def note_round(self, scheduler: str, number: int, memo: Mapping[str, object]) -> bool:
        self._clock.advance(ROUND_S)
        super().begin_round(scheduler, holder="another", length_ms=0)
        return super().note_round(scheduler, number, memo)


def in_steps(gpus: int = 1) -> JobSpec:
    work = StepWork(kind="A3C", steps=10**9)
    return a_spec(gpus, scheduler="ml-gpu", minimum=gpus, gpus=1, work=work)


class TestByRounds:
    """Eight jobs of one GPU, on four GPUs of two types."""

    def setup_method(self) -> None:
        self.clock = Alarm()
        self.store = MemoryStore(self.clock)
        self.deadly = Deadly(self.store)
        self.stop = threading.Event()
        self.events: list[Event] = []
        self.had_ms: Counter[int] = Counter()
        """For how long each job has had a GPU: what we saw, not what was written down."""
        types = {"gpu_model": ["k80", "v100"]}
        self.store.add_machines(a_cell(2, gpus=2, attributes=types))
        self.jobs = self.store.submit([in_steps()] * 8)

    def a_process(
        self,
        replica: str = "a",
        *,
        length_s: float = ROUND_S,
        policy: str = "max_min_fairness",
        store: PassThrough | None = None,
    ) -> SchedulerProcess:
        told = {"round": str(length_s), "resets_after": RESETS_AFTER, "policy": policy}
        return SchedulerProcess(
            scheduler=MlGpuScheduler.configured(told),
            store=store or self.deadly,
            open_store=lambda: self.deadly,
            clock=self.clock,
            settings=SETTINGS,
            sink=self.events.append,
            replica=replica,
            run_seed=7,
            stop=self.stop,
        )

    def pass_time(self, seconds: float = ROUND_S) -> None:
        for job in self.store.allocations().job.tolist():
            self.had_ms[job] += round(seconds * 1_000)
        self.clock.advance(seconds)

    def play(self, *processes: SchedulerProcess, rounds: int) -> None:
        for _ in range(rounds):
            for process in processes:
                process.step()
            self.pass_time()
        assert [] == self.store.verify()

    def memo(self) -> Mapping[str, object]:
        """Return what the last round noted, as the next one is told: it is begun."""
        self.clock.advance(ROUND_S)
        begun = self.store.begin_round("ml-gpu", holder="test", length_ms=0)
        assert isinstance(begun, Round)
        return begun.memo

    def assert_invariants_hold(self) -> None:
        """Compare what is written down with what was seen up to the last round."""
        plan = self.memo()["plan"]
        assert isinstance(plan, dict)
        received = np.array(plan["received_s"]) - plan["credit_s"]
        booked = dict(zip(plan["jobs"], received.sum(axis=1), strict=True))
        for job in self.jobs:
            assert self.had_ms[job] / 1_000 == pytest.approx(booked[job])

    def states(self) -> Counter[State]:
        return Counter(status_of(self.store, job).state for job in self.jobs)

    def test_gpus_pass_from_job_to_job(self) -> None:
        self.play(self.a_process(), rounds=12)

        assert {State.RUNNING: 4, State.PENDING: 4} == self.states()
        assert 8 == len(self.had_ms)
        assert max(self.had_ms.values()) <= 2 * min(self.had_ms.values())

    def test_of_two_replicas_one_plays_each_round(self) -> None:
        first, second = self.a_process("a"), self.a_process("b")
        played = []
        for _ in range(6):
            played.append((first.step() > 0, second.step() > 0))
            self.pass_time()
            first, second = second, first

        assert [(True, False)] * 6 == played
        self.a_process().step()
        self.assert_invariants_hold()

    @pytest.mark.parametrize(("length_s", "sleeps_s"), [(0.05, 0.05), (360, POLL_S)])
    def test_the_next_round_is_waited_for_but_no_longer_than_the_queue(
        self, length_s: float, sleeps_s: float
    ) -> None:
        self.clock.stop = self.stop

        self.a_process(length_s=length_s).run()

        assert [sleeps_s] == self.clock.slept
        assert {State.RUNNING: 4, State.PENDING: 4} == self.states()

    @pytest.mark.parametrize("when", ["kills_before", "kills_after"])
    def test_a_successor_goes_on_from_what_ran(self, when: str) -> None:
        first, second = self.a_process("a"), self.a_process("b")
        self.play(first, rounds=3)
        setattr(self.deadly, when, True)
        with pytest.raises(Killed):
            first.step()
        setattr(self.deadly, when, False)
        assert 4 == len(places(self.store))
        self.pass_time(SETTINGS.lease_ms / 1_000 + 60)

        self.play(second, rounds=4)

        second.step()
        self.assert_invariants_hold()
        assert {State.RUNNING: 4, State.PENDING: 4} == self.states()
        assert 8 == len(self.had_ms)

    def test_killed_again_and_again_nothing_is_lost(self) -> None:
        kept = 0
        for life in range(8):
            process = self.a_process(f"r{life}")
            process.step()
            self.pass_time()
            setattr(self.deadly, "kills_after" if life % 2 else "kills_before", True)
            with suppress(Killed):
                process.step()
                kept += 1
            self.deadly.kills_after = self.deadly.kills_before = False
            self.pass_time(SETTINGS.lease_ms / 1_000 + 60)
            assert [] == self.store.verify()

        assert kept < 4, "most rounds had something to commit"
        self.a_process("last").step()
        self.assert_invariants_hold()
        assert {State.RUNNING: 4, State.PENDING: 4} == self.states()

    def test_whoever_comes_next_takes_over_from_a_replica_that_died(self) -> None:
        first, second = self.a_process("a"), self.a_process("b")
        self.play(first, rounds=2)
        self.deadly.kills_before = True
        with pytest.raises(Killed):
            first.step()
        self.deadly.kills_before = False
        ran = {job for job, _ in places(self.store)}
        self.pass_time()

        second.step()

        assert set(self.jobs) - ran == {job for job, _ in places(self.store)}
        assert {State.RUNNING: 4, State.PENDING: 4} == self.states()
        assert [] == self.store.rescue()
        self.assert_invariants_hold()

    def test_jobs_that_somebody_else_has_leased_are_not_forgotten(self) -> None:
        first, second = self.a_process("a"), self.a_process("b")
        self.play(first, rounds=2)
        running = sorted({job for job, _ in places(self.store)})
        lease_ms = SETTINGS.lease_ms
        recall(self.store, running, scheduler="ml-gpu", holder="somebody", lease_ms=lease_ms)
        recall(self.store, [], scheduler="ml-gpu", holder="nobody")
        self.store.lease("ml-gpu", holder="somebody", jobs_max=99, lease_ms=lease_ms)

        second.step()

        assert running == sorted({job for job, _ in places(self.store)})
        assert set(running) <= set(self.deadly.recalled[-1])
        self.pass_time(SETTINGS.lease_ms / 1_000 + 60)
        self.play(second, rounds=3)
        assert set(running) <= set(self.deadly.recalled[-1])
        assert {State.RUNNING: 4, State.PENDING: 4} == self.states()
        second.step()
        assert set(self.jobs) == {*self.memo_jobs()}
        self.assert_invariants_hold()

    def memo_jobs(self) -> list[int]:
        jobs = self.memo()["jobs"]
        assert isinstance(jobs, list)
        return jobs

    @pytest.mark.parametrize("fields", [("plan",), ("plan", "jobs")])
    def test_a_memo_that_is_too_long_does_not_end_the_process(self, fields: Sequence[str]) -> None:
        self.play(self.a_process(store=RefusesMemos(self.store, *fields)), rounds=3)

        assert {State.RUNNING: 4, State.PENDING: 4} == self.states()
        assert not any(self.memo().get(field) for field in fields)
        whys = {event.why for event in self.events if isinstance(event, MemoRefused)}
        assert {"this memo is too long"} == whys

    def test_stopped_in_mid_round_it_gives_everything_back(self) -> None:
        self.play(self.a_process(), rounds=2)
        before = places(self.store)
        away = Away(self.store, self.stop)
        stopped = self.a_process("b", store=away)

        stopped.run()

        assert before == places(self.store)
        assert {State.RUNNING: 4, State.PENDING: 4} == self.states()
        assert {} == stopped.leases.held()
        self.stop.clear()
        self.pass_time()
        self.play(self.a_process("c"), rounds=2)
        assert {State.RUNNING: 4, State.PENDING: 4} == self.states()

    def test_stopped_between_commits_it_plays_the_round_to_its_end(self) -> None:
        process = self.a_process(store=Stopping(self.store, self.stop))

        process.run()

        assert {State.RUNNING: 4, State.PENDING: 4} == self.states()
        assert {} == process.leases.held()

    @pytest.mark.parametrize(
        "memo",
        [
            {"x": 1},
            {"jobs": 7, "plan": [1]},
            {"jobs": [True, 0, -1, 2**63, 10**40, 1.5, "1", None, [1]], "plan": {"types": 3}},
            {"jobs": {"1": 2}, "plan": None},
        ],
    )
    def test_a_memo_of_somebody_elses_tells_nothing(self, memo: dict[str, object]) -> None:
        begun = self.store.begin_round("ml-gpu", holder="x", length_ms=0)
        assert isinstance(begun, Round)
        assert self.store.note_round("ml-gpu", begun.number, memo)

        self.play(self.a_process(), rounds=2)

        assert [] == self.deadly.recalled[0]
        assert {State.RUNNING: 4, State.PENDING: 4} == self.states()

    def test_a_round_that_another_has_overtaken_commits_nothing(self) -> None:
        slow = self.a_process(store=Overtaken(self.store, self.clock))

        assert 8 == slow.step()
        assert {} == places(self.store)
        assert {State.PENDING: 8} == self.states()
        assert {} == slow.leases.held()
        assert {} == self.memo()

    def test_a_job_that_goes_on_where_it_is_was_not_attempted(self) -> None:
        process = self.a_process(policy="fifo")
        self.play(process, rounds=1)
        first = self.attempted()
        self.events.clear()

        self.play(process, rounds=3)

        assert Counter(self.jobs) == first
        assert Counter(self.jobs[4:] * 3) == self.attempted()

    def attempted(self) -> Counter[int]:
        return Counter(event.job for event in self.events if isinstance(event, JobAttempted))

    def test_a_job_over_its_quota_is_parked(self) -> None:
        self.store.set_quota(Quota(QuotaScope.TENANT, "default", {Budget.GPU_SLICES: 2_000}))

        self.a_process().step()

        parked = [status_of(self.store, job).park_reason for job in self.jobs]
        assert 2 == parked.count(ParkReason.OVER_QUOTA)
        assert {State.RUNNING: 2, State.PARKED: 2, State.PENDING: 4} == self.states()

    def test_a_job_that_can_never_fit_is_parked(self) -> None:
        (job,) = self.store.submit([in_steps(gpus=5)])

        self.a_process().step()

        assert ParkReason.GANG_TOO_LARGE is status_of(self.store, job).park_reason

    def test_a_round_that_is_due_in_less_than_a_millisecond_is_waited_for(self) -> None:
        process = self.a_process()
        process.step()
        self.clock.advance(ROUND_S - 0.0001)
        self.stop.clear()
        self.clock.stop = self.stop

        process.run()

        assert [0.001] == self.clock.slept
