"""A small system in one process: ten machines, schedulers, and chance from one seed."""

import threading
from collections import Counter
from collections.abc import Callable, Generator
from uuid import UUID

import numpy as np

from omega.cell.view import View
from omega.clock import ManualClock
from omega.config import Settings
from omega.errors import StoreUnavailable
from omega.events import Event, TransactionJudged
from omega.framework.aftermath import aftermath
from omega.framework.attempt import Replica, attempt
from omega.framework.effects import Commit, Effect, Refresh
from omega.framework.patience import Patience
from omega.framework.progress import Attempted
from omega.framework.runner import SchedulerProcess
from omega.framework.scheduler import DecisionTime, Scheduler
from omega.lifecycle.states import State
from omega.model.claims import Granularity, Transaction
from omega.model.jobs import JobSpec, LeasedJob
from omega.model.outcomes import Outcome
from omega.nodes.live import LiveNodes
from omega.store.base import HandBack, Parking, Store
from omega.store.memory import MemoryStore
from omega.testing.auditor import Auditor
from omega.testing.builders import a_spec
from omega.testing.pass_through import PassThrough
from omega.testing.steps import add_a_cell
from tests.unit.framework.loops import Anywhere, InOrder

SETTINGS = Settings()
TURNS_MAX = 40_000
SEEDS = range(4)


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

    def __init__(self, store: Store, chance: np.random.Generator) -> None:
        super().__init__(store)
        self.chance = chance

    def commit(self, transaction: Transaction) -> Outcome:
        self._lose("request")
        outcome = super().commit(transaction)
        self._lose("reply")
        return outcome

    def lease(
        self, scheduler: str, *, holder: str, jobs_max: int, lease_ms: int
    ) -> list[LeasedJob]:
        jobs = super().lease(scheduler, holder=holder, jobs_max=jobs_max, lease_ms=lease_ms)
        self._lose("reply")
        return jobs

    def _lose(self, what: str) -> None:
        if self.chance.random() < 0.1:
            raise StoreUnavailable(f"the {what} was lost")


def random_specs(chance: np.random.Generator, jobs: int) -> list[JobSpec]:
    """Return jobs of a few tasks each that run for a few seconds, for all three schedulers."""
    specs = []
    for number in range(jobs):
        tasks = int(chance.integers(1, 9))
        specs.append(
            a_spec(
                tasks,
                name=f"job-{number}",
                scheduler=str(chance.choice(["batch", "gangs", "greedy"])),
                cpu_milli=int(chance.integers(1, 5)) * 500,
                duration_ms=int(chance.integers(500, 8_000)),
                precedence=int(chance.integers(3)),
                minimum=int(chance.choice([0, 0, tasks])),
            )
        )
    return specs


def ids_from(chance: np.random.Generator) -> Callable[[], UUID]:
    return lambda: UUID(bytes=chance.bytes(16))


class World:
    """Ten machines with virtual nodes, a store with an auditor, and chance from one seed."""

    def __init__(self, seed: int, *, unreliable: bool = False) -> None:
        self.seed = seed
        self.chance = np.random.default_rng(seed)
        self.clock = ManualClock()
        self.events: list[Event] = []
        self.audited = Auditor(MemoryStore(self.clock, new_token=ids_from(self.chance)))
        self.store: Store = self.audited
        if unreliable:
            self.store = Unreliable(self.audited, self.chance)
        add_a_cell(self.audited, 10)
        patience = Patience(
            self.clock, self.events.append, SETTINGS, self.chance, threading.Event()
        )
        self.nodes = LiveNodes(self.store, self.clock, self.events.append, patience, speedup=1.0)

    def states(self) -> Counter[State]:
        return Counter(job.state for job in self.audited.jobs(jobs_max=10_000))

    def run(self, *actors: Callable[[], object]) -> None:
        """Let the actors and the nodes take turns, as chance has it, until every job is over."""
        everybody = [*actors, self.end_tasks]
        for turn in range(TURNS_MAX):
            self.clock.advance(0.02)
            everybody[int(self.chance.integers(len(everybody)))]()
            if turn % 100 == 0 and set(self.states()) == {State.SUCCEEDED}:
                return
        raise AssertionError(f"not over after {TURNS_MAX} turns: {self.states()}")

    def end_tasks(self) -> None:
        self.nodes.step(self.store.now_ms())

    def conflicts(self) -> int:
        judged = [event for event in self.events if isinstance(event, TransactionJudged)]
        return sum(event.jobs_conflicted for event in judged)


def a_process(world: World, scheduler: Scheduler) -> SchedulerProcess:
    return SchedulerProcess(
        scheduler=scheduler,
        store=world.store,
        open_store=lambda: world.store,
        clock=world.clock,
        settings=SETTINGS,
        sink=world.events.append,
        replica="0",
        run_seed=world.seed,
        decision_time=DecisionTime(job_s=0.02, task_s=0.001),
        stop=threading.Event(),
        new_id=ids_from(world.chance),
    )


class Lane:
    """A scheduler driven by hand, an effect a turn, so that attempts overlap; it may be killed."""

    def __init__(self, world: World, scheduler: Scheduler, name: str, dies: float) -> None:
        self.world = world
        self.dies = dies
        """How likely it is to die in each turn."""
        self.replica = Replica(
            scheduler=scheduler, name=name, run_seed=world.seed, new_id=ids_from(world.chance)
        )
        self.turns = self.live()
        self.deaths = 0

    def turn(self) -> None:
        if self.world.chance.random() < self.dies:
            self.turns.close()
            self.turns = self.live()
            self.deaths += 1
        next(self.turns)

    def live(self) -> Generator[None, None, None]:
        """Lease, attempt and settle for ever, one effect at a time."""
        store, view = self.world.store, View(self.world.store.snapshot())
        kind = self.replica.scheduler.kind
        while True:
            yield
            jobs = store.lease(kind, holder=self.replica.name, jobs_max=4, lease_ms=5_000)
            steps = attempt(self.replica, jobs)
            effect = next(steps)
            while True:
                yield
                answer, view = self.answer(effect, view)
                try:
                    effect = steps.send(answer)
                except StopIteration as end:
                    self.settle(end.value)
                    break

    def answer(self, effect: Effect, view: View) -> tuple[object, View]:
        match effect:
            case Refresh():
                view.catch_up(self.world.store.changes_since(view.mark))
                return view, view
            case Commit(transaction):
                outcome = self.world.store.commit(transaction)
                self.world.events.append(effect.judged(outcome, thought_s=0.0, took_s=0.0))
                return outcome, view
        return None, view

    def settle(self, attempted: list[Attempted]) -> None:
        fates = [aftermath(one, SETTINGS, self.world.chance) for one in attempted]
        self.world.store.hand_back([fate for fate in fates if isinstance(fate, HandBack)])
        parked = [fate.job for fate in fates if isinstance(fate, Parking)]
        self.world.store.park([fate for fate in fates if isinstance(fate, Parking)])
        self.world.store.wake(parked)


def lanes(world: World, *, dies: float = 0.0) -> list[Lane]:
    schedulers: list[Scheduler] = [Anywhere(), Anywhere(), Gangs(), Greedy(), Greedy()]
    return [
        Lane(world, scheduler, f"{number}", dies) for number, scheduler in enumerate(schedulers)
    ]
