"""Lives in virtual time: when answers come, what is repeated, and how a life ends."""

import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from omega.clock import Clock
from omega.errors import BadInput, InvariantBroken
from omega.events import Event, StoreCallFailed, ignore
from omega.framework.effects import Effects, Think, Wait, called, committed
from omega.model.jobs import JobSpec, LeasedJob
from omega.model.resources import machine_capacity
from omega.nodes.virtual import VirtualNodes, nothing_else
from omega.sim.engine import Engine, EngineClock, Order
from omega.sim.virtual import StoreActor, VirtualProcess
from omega.sim.virtual_cell import VirtualCell
from omega.store.memory.store import MemoryStore
from omega.sync.choice import Sync
from omega.testing.builders import (
    a_cell,
    a_claim,
    a_spec,
    a_transaction,
    claims_of_job,
    some_claims,
)
from omega.testing.steps import status_of, submit_and_lease
from omega.workload.arrivals import Prefill
from tests.unit.framework.loops import InOrder
from tests.unit.framework.stores import Absent


class TestActor:
    """A life on a memory store."""

    def setup_method(self) -> None:
        self.engine = Engine()
        self.clock: Clock = EngineClock(self.engine)
        self.store = Absent(MemoryStore(self.clock))
        self.events: list[Event] = []
        self.seen: list[tuple[float, object]] = []
        self.away_s: list[float] = []
        self.on_event: Callable[[], object] = list

    def an_actor(self, latency_s: float = 0.0) -> StoreActor:
        return StoreActor(
            self.engine,
            self.store,
            np.random.default_rng(1),
            sink=self.hear,
            latency=lambda _: latency_s,
        )

    def hear(self, event: Event) -> None:
        self.events.append(event)
        self.on_event()

    def note(self, what: object) -> None:
        self.seen.append((self.clock.now(), what))

    def submitting(self, spec: JobSpec | None = None) -> Effects[None]:
        jobs = yield from called("submit", lambda _: self.store.submit([spec or a_spec()]))
        self.note(jobs)

    def test_waiting_and_deciding_take_their_time(self) -> None:
        def life() -> Effects[None]:
            yield Wait(1.5)
            self.note("waited")
            yield Think(2.0)
            self.note("thought")

        actor = self.an_actor()
        actor.begin(life())
        self.engine.run(10.0)

        assert [(1.5, "waited"), (3.5, "thought")] == self.seen
        assert not actor.is_alive

    def test_a_call_takes_effect_at_once_and_is_answered_later(self) -> None:
        self.an_actor(latency_s=0.5).begin(self.submitting())

        self.engine.at(0.25, Order.MACHINE, lambda: self.note(len(self.store.jobs())))
        self.engine.run(1.0)

        assert [(0.25, 1), (0.5, [1])] == self.seen

    def test_a_commit_takes_effect_when_it_is_answered(self) -> None:
        self.store.add_machines(a_cell(1))
        first, second = submit_and_lease(self.store, a_spec(), a_spec())

        def life(job: LeasedJob, **named: int) -> Effects[None]:
            claims = claims_of_job(job, some_claims([0], [1], **named))
            outcome = yield from committed(a_transaction(claims))
            self.note(outcome.refused)

        self.an_actor(latency_s=0.5).begin(life(first, cpu_milli=3_000))
        self.an_actor(latency_s=0.2).begin(life(second, cpu_milli=2_000))
        self.engine.run(1.0)

        assert [(0.2, 0), (0.5, 1)] == self.seen, "the one that ends first is granted"

    def test_a_commit_that_found_no_store_takes_its_time_again(self) -> None:
        self.store.add_machines(a_cell(1))
        (job,) = submit_and_lease(self.store, a_spec())
        self.store.absences = 1
        self.on_event = lambda: self.away_s.append(self.clock.now())

        def life() -> Effects[None]:
            yield from committed(a_transaction(claims_of_job(job, a_claim())))
            self.note("granted")

        self.an_actor(latency_s=0.5).begin(life())
        self.engine.run(5.0)

        assert [0.5] == self.away_s
        assert self.seen[0][0] > 1.0

    def test_who_is_killed_hears_no_answer_and_calls_no_more(self) -> None:
        actor = self.an_actor(latency_s=0.5)
        actor.begin(self.submitting())

        def begin_anew() -> None:
            actor.kill()
            actor.begin(self.submitting())

        self.engine.at(0.25, Order.MACHINE, begin_anew)
        self.engine.run(2.0)

        assert 2 == len(self.store.jobs())
        assert [[2]] == [what for _, what in self.seen]

    def test_a_store_that_is_away_is_asked_again_later_and_later(self) -> None:
        self.store.absences = 3

        def life() -> Effects[None]:
            yield from called("lease", lambda store: _lease(store.lease))
            self.note("leased")

        self.on_event = lambda: self.away_s.append(self.clock.now())

        self.an_actor().begin(life())
        self.engine.run(60.0)

        assert ["lease"] * 3 == [e.what for e in self.events if isinstance(e, StoreCallFailed)]
        assert 1 == len(self.seen)
        first, second, third = np.diff([*self.away_s, self.seen[0][0]])
        assert 0 < first < second < third

    def test_what_a_call_raises_is_raised_where_it_was_asked_for(self) -> None:
        def life() -> Effects[None]:
            try:
                yield from called("refused", lambda _: _refuse())
            except BadInput as error:
                self.note(error.sentence)

        self.an_actor().begin(life())
        self.engine.run(1.0)

        assert [(0.0, "it is refused")] == self.seen

    def test_what_nobody_catches_ends_the_run(self) -> None:
        def life() -> Effects[None]:
            yield from called("refused", lambda _: _refuse())

        self.an_actor().begin(life())

        with pytest.raises(BadInput, match="it is refused"):
            self.engine.run(1.0)

    def test_a_life_that_begins_anew_within_a_call_is_not_ended_by_the_old_one(self) -> None:
        actor = self.an_actor()

        def begin_anew(_: object) -> None:
            actor.kill()
            actor.begin(self.submitting())

        def life() -> Effects[None]:
            yield from called("begin anew", begin_anew)
            self.note("not reached")

        actor.begin(life())
        self.engine.run(1.0)

        assert [(0.0, [1])] == self.seen

    def test_who_is_killed_by_what_it_does_itself_asks_no_more(self) -> None:
        actor = self.an_actor()

        def life() -> Effects[None]:
            actor.kill()
            yield from self.submitting()

        actor.begin(life())
        self.engine.run(1.0)

        assert [] == self.store.jobs()
        assert not actor.is_alive

    def test_nobody_sleeps_in_virtual_time(self) -> None:
        with pytest.raises(AssertionError, match="sleeps"):
            self.clock.sleep(1.0)


def _lease(lease: Callable[..., object]) -> object:
    return lease("batch", holder="a", jobs_max=1, lease_ms=1_000)


def _refuse() -> None:
    raise BadInput("it is refused")


def test_a_process_that_is_stopped_hands_back_and_leaves_the_registry() -> None:
    cell = VirtualCell(a_cell(3), seed=1)
    virtual = cell.schedule(InOrder(), "a")
    cell.run(5.0)
    before = [report.replica for report in cell.store.reports()]
    virtual.process.stop.set()
    cell.run(10.0)

    assert ["a"] == before
    assert [] == cell.store.reports()
    assert not virtual.is_alive


def test_a_process_that_is_stopped_while_the_store_is_away_ends_at_once() -> None:
    cell = VirtualCell(a_cell(3), seed=1)
    away = Absent(cell.store)
    process = cell.schedule(InOrder(), "a").process
    cell.store.submit([a_spec()])
    stopped = replace(process, replica="b", stop=threading.Event())
    refresher = Sync.DELTA.refresher(away, cell.clock, ignore)
    virtual = VirtualProcess(stopped, cell.engine, away, lambda _: refresher)
    away.absences = 1_000
    virtual.run()
    cell.run(1.0)
    stopped.stop.set()
    cell.run(60.0)

    assert not virtual.is_alive


def test_a_process_that_was_killed_is_followed_by_another() -> None:
    cell = VirtualCell(a_cell(3), seed=1)
    virtual = cell.schedule(InOrder(), "a")
    cell.run(1.0)
    virtual.kill()

    with pytest.raises(AssertionError, match="another process"):
        virtual.run()


def test_jobs_arrive_run_and_end_on_a_virtual_cell() -> None:
    cell = VirtualCell(a_cell(3), seed=1)
    cell.schedule(InOrder(), "a")
    cell.live(VirtualNodes(lambda _: None, speedup=1.0).life(threading.Event(), nothing_else))
    cell.submit(2.0, [a_spec(4, duration_ms=3_000)])

    cell.run(1.9)
    before = cell.store.jobs()
    cell.run(8.0)
    cell.check()

    assert [] == before
    assert 4 == status_of(cell.store, 1).ended


def a_start_state(cores: int) -> Prefill:
    """Return a task that runs on machine 1 from the start."""
    zero = np.zeros(1, np.intp)
    shapes = machine_capacity(1_000 * cores, 1_024)[np.newaxis]
    spec = a_spec(1, cpu_milli=1_000 * cores, memory_mib=1_024, duration_ms=None)
    return Prefill((spec,), zero, zero, zero, zero, shapes)


def test_a_start_state_that_does_not_fit_is_refused() -> None:
    cell = VirtualCell(a_cell(1, cpu_milli=4_000), seed=1)

    with pytest.raises(InvariantBroken, match="start state does not fit"):
        cell.start(a_start_state(5))


@pytest.mark.slow
def test_a_start_state_is_placed_when_python_removes_assertions() -> None:
    program = (
        "from omega.sim.virtual_cell import VirtualCell\n"
        "from omega.testing.builders import a_cell\n"
        "from tests.unit.sim.test_virtual import a_start_state\n"
        "cell = VirtualCell(a_cell(1), seed=1)\n"
        "(job,) = cell.start(a_start_state(1))\n"
        "print(cell.store.job(job).placed)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-O", "-B", "-c", program], capture_output=True, text=True, check=True
    )

    assert "1\n" == ran.stdout
