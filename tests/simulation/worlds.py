"""A small system in one process: ten machines, schedulers, and chance from one seed."""

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from uuid import UUID

import numpy as np
import pytest

from omega.cell.view import View
from omega.config import Settings
from omega.errors import StoreUnavailable
from omega.events import Event, TransactionJudged
from omega.framework.effects import Call, Commit, Effect, PlaceAtRandom, Refresh, Think, Wait
from omega.framework.process import Process
from omega.framework.scheduler import DecisionTime, Scheduler
from omega.lifecycle.states import State
from omega.model.claims import Granularity, Transaction
from omega.model.jobs import JobSpec, LeasedJob
from omega.model.lanes import Lane
from omega.model.outcomes import Outcome
from omega.nodes.virtual import VirtualNodes, nothing_else
from omega.sim.engine import Engine, EngineClock, Order
from omega.sim.virtual import StoreActor, VirtualProcess
from omega.store.memory.store import MemoryStore
from omega.store.protocols import Store
from omega.sync.choice import Sync
from omega.testing.auditor import Auditor
from omega.testing.builders import a_spec
from omega.testing.pass_through import PassThrough
from omega.testing.steps import add_a_cell
from tests.unit.framework.loops import Anywhere, InOrder

SETTINGS = Settings(lease_ms=5_000, heartbeat_interval_ms=1_000)
ANSWER_S = 0.02
"""How long an answer takes, on the average."""
HOUR_MS = 3_600_000
CHECK_S = 2.0
OVER_S_MAX = 4_000.0
"""No test depends on this: it only turns a hang into a failure."""
SEEDS = (0, pytest.param(1, marks=pytest.mark.slow))


class Gangs(Anywhere):
    """Anywhere, a job at a time, all of its claims or none."""

    kind = "gangs"
    jobs_per_transaction = 1
    granularity = Granularity.ALL_OR_NOTHING


class Greedy(InOrder):
    """The first machine that has room."""

    kind = "greedy"


class Unreliable(PassThrough):
    """Loses requests and replies, as often as chance has it."""

    def __init__(self, store: Store, rng: np.random.Generator) -> None:
        super().__init__(store)
        self.rng = rng

    def commit(self, transaction: Transaction) -> Outcome:
        self._lose("request")
        outcome = super().commit(transaction)
        self._lose("reply")
        return outcome

    def lease(
        self,
        scheduler: str,
        *,
        holder: str,
        jobs_max: int,
        lease_ms: int,
        lanes: Mapping[Lane, int] | None = None,
        by_key: bool = False,
    ) -> list[LeasedJob]:
        jobs = super().lease(
            scheduler,
            holder=holder,
            jobs_max=jobs_max,
            lease_ms=lease_ms,
            lanes=lanes,
            by_key=by_key,
        )
        self._lose("reply")
        return jobs

    def _lose(self, what: str) -> None:
        if self.rng.random() < 0.1:
            raise StoreUnavailable(f"the {what} was lost")


def random_specs(rng: np.random.Generator, jobs: int) -> list[JobSpec]:
    """Return jobs of a few tasks each that run for a few seconds, for all three schedulers."""
    specs = []
    for number in range(jobs):
        tasks = int(rng.integers(1, 9))
        specs.append(
            a_spec(
                tasks,
                name=f"job-{number}",
                scheduler=str(rng.choice(["batch", "gangs", "greedy"])),
                cpu_milli=int(rng.integers(1, 5)) * 500,
                duration_ms=int(rng.integers(500, 8_000)),
                precedence=10 * int(rng.integers(3)),
                minimum=int(rng.choice([0, 0, tasks])),
            )
        )
    return specs


def ids_from(rng: np.random.Generator) -> Callable[[], UUID]:
    return lambda: UUID(bytes=rng.bytes(16))


class World:
    """Ten machines with virtual nodes, a store with an auditor, and chance from one seed.

    Answers take time, so that calls of all processes interleave.
    """

    def __init__(
        self, seed: int, *, unreliable: bool = False, settings: Settings = SETTINGS
    ) -> None:
        self.seed = seed
        self.settings = settings
        self.rng = np.random.default_rng(seed)
        self.engine = Engine()
        self.clock = EngineClock(self.engine)
        self.events: list[Event] = []
        self.audited = Auditor(MemoryStore(self.clock, new_token=ids_from(self.rng)))
        self.store: Store = self.audited
        if unreliable:
            self.store = Unreliable(self.audited, self.rng)
        add_a_cell(self.audited, 10)

    def states(self) -> Counter[State]:
        return Counter(job.state for job in self.audited.jobs(jobs_max=10_000))

    def latency(self, _: Effect) -> float:
        return float(self.rng.exponential(ANSWER_S))

    def begin(self, *processes: Process, refresh: Sync = Sync.DELTA) -> list[VirtualProcess]:
        """Let processes begin to live."""
        begun = []
        for process in processes:
            begun.append(
                VirtualProcess(
                    process,
                    self.engine,
                    self.store,
                    lambda sink: refresh.refresher(self.store, self.clock, sink),
                    latency=self.latency,
                )
            )
            begun[-1].run()
        return begun

    def begin_nodes(self) -> None:
        """Let tasks end from now on."""
        nodes = VirtualNodes(self.events.append, speedup=1.0)
        actor = StoreActor(
            self.engine, self.store, self.rng, sink=self.events.append, latency=self.latency
        )
        actor.begin(nodes.life(threading.Event(), nothing_else))

    def every(self, seconds: float, deed: Callable[[], object]) -> None:
        """Have something done again and again."""

        def do() -> None:
            deed()
            self.engine.at(self.engine.now_s + seconds, Order.MACHINE, do)

        self.engine.at(self.engine.now_s + seconds, Order.MACHINE, do)

    def run(self) -> None:
        """Let time pass until every job is over."""
        self.begin_nodes()
        while set(self.states()) != {State.SUCCEEDED}:
            assert self.engine.now_s < OVER_S_MAX, f"not over: {self.states()}"
            self.pass_time(CHECK_S)

    def pass_time(self, seconds: float) -> None:
        self.engine.run(self.engine.now_s + seconds)

    def conflicts(self) -> int:
        judged = [event for event in self.events if isinstance(event, TransactionJudged)]
        return sum(event.jobs_conflicted for event in judged)


def a_process(world: World, scheduler: Scheduler, replica: str = "0") -> Process:
    return Process(
        scheduler=scheduler,
        clock=world.clock,
        settings=world.settings,
        sink=world.events.append,
        replica=replica,
        run_seed=world.seed,
        decision_time=DecisionTime(job_s=0.02, task_s=0.001),
        stop=threading.Event(),
        new_id=ids_from(world.rng),
    )


def one_of_each(world: World) -> list[Process]:
    """Return a process of each kind."""
    return [a_process(world, scheduler) for scheduler in (Anywhere(), Gangs(), Greedy())]


def rivals(world: World) -> list[Process]:
    """Return two processes of each of two kinds, and one of another, on one cell."""
    schedulers: list[Scheduler] = [Anywhere(), Anywhere(), Gangs(), Greedy(), Greedy()]
    return [a_process(world, scheduler, f"{n}") for n, scheduler in enumerate(schedulers)]


class Reaper:
    """Kills processes, whatever they are about; another of the same name begins at once."""

    def __init__(self, world: World, processes: Sequence[VirtualProcess], *, dies: float) -> None:
        """`dies`: how likely each is to die at each visit."""
        self.world = world
        self.alive = list(processes)
        self.dies = dies
        self.deaths = 0

    def visit(self) -> None:
        for at, one in enumerate(self.alive):
            if self.world.rng.random() < self.dies:
                one.kill()
                self.deaths += 1
                (self.alive[at],) = self.world.begin(
                    a_process(self.world, one.process.scheduler, one.process.replica)
                )


class ByHand:
    """A process driven effect by effect, which may be left at any of them."""

    def __init__(self, world: World, scheduler: Scheduler) -> None:
        self.process = a_process(world, scheduler, "by hand")
        self._store = world.store
        self._refresher = Sync.DELTA.refresher(world.store, world.clock, self.process.sink)
        self._view: View | None = None
        self._life = self.process.life()
        self.asks: Effect = next(self._life)
        """The effect that is not answered yet."""

    def answer(self) -> Effect:
        """Answer what it asks; return what it asks then."""
        self.asks = self._life.send(self._answered(self.asks))
        return self.asks

    def until(self, *wanted: str) -> None:
        """Answer until it asks for one of these: the name of a call, or of another effect."""
        while self.name not in wanted:
            self.answer()

    def leave(self) -> None:
        """Let it die."""
        self._life.close()

    @property
    def name(self) -> str:
        """What it asks for."""
        if isinstance(self.asks, Call):
            return self.asks.operation
        return type(self.asks).__name__.lower()

    def _answered(self, effect: Effect) -> object:
        match effect:
            case Refresh():
                self._view = self._refresher.refresh(self._view)
                return self._view
            case Commit(transaction):
                return self._store.commit(transaction)
            case Call(_, make):
                return make(self._store)
            case Think() | PlaceAtRandom() | Wait():
                return None
