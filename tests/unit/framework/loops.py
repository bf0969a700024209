"""What the tests of the loop share: two plain schedulers, a replica, and answers from a store."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from uuid import UUID

import numpy as np

from omega.cell.view import View
from omega.clock import Clock, ManualClock
from omega.config import Settings
from omega.events import Sink, ignore
from omega.framework.attempt import PlanningContext
from omega.framework.driver import Driver
from omega.framework.effects import Call, Commit, Effect, Refresh
from omega.framework.retry import Retry
from omega.framework.scheduler import NO_DECISION_TIME, DecisionTime, Scheduler
from omega.limits import LIMITS
from omega.model.arrays import Counts
from omega.model.claims import Claims, Granularity, Transaction
from omega.model.jobs import LeasedJob
from omega.placement.best_fit import fill
from omega.placement.feasibility import Room
from omega.placement.first_fit import first_fit
from omega.placement.groups import place_groups
from omega.store.protocols import SchedulerStore, Store
from omega.sync.delta import DeltaRefresher


def in_order(room: Room, wanted: int, rng: np.random.Generator) -> Counts:
    return fill(np.arange(len(room.tasks)), room.tasks, wanted)


class InOrder(Scheduler):
    """Fills the first machine, then the second: all of its replicas want the same."""

    kind = "batch"

    def __init__(
        self,
        *,
        together: int = 1,
        granularity: Granularity = Granularity.INCREMENTAL,
    ) -> None:
        self.jobs_per_transaction = together
        self.granularity = granularity
        self.asked: list[list[int]] = []

    def place(self, view: View, job: LeasedJob, rng: np.random.Generator) -> Claims:
        self.asked.append(job.unplaced.tolist())
        return place_groups(view, job, in_order, rng)


class Anywhere(Scheduler):
    """Places at random, several jobs in one transaction."""

    kind = "batch"
    jobs_per_transaction = 4

    def place(self, view: View, job: LeasedJob, rng: np.random.Generator) -> Claims:
        return place_groups(view, job, first_fit, rng)


def numbered_ids() -> Callable[[], UUID]:
    """Return a source of ids that are the same in each run."""
    numbers = iter(range(1, 1_000_000))
    return lambda: UUID(int=next(numbers))


def a_replica(
    scheduler: Scheduler | None = None,
    *,
    name: str = "0",
    decision_time: DecisionTime = NO_DECISION_TIME,
    tries_max: int = LIMITS.tries_max,
    claims_max: int = LIMITS.claims_per_transaction_max,
) -> PlanningContext:
    return PlanningContext(
        scheduler=InOrder() if scheduler is None else scheduler,
        name=name,
        run_seed=7,
        new_id=numbered_ids(),
        decision_time=decision_time,
        limits=replace(
            LIMITS,
            tries_max=tries_max,
            claims_per_transaction_max=claims_max,
            jobs_per_transaction_max=min(claims_max, LIMITS.jobs_per_transaction_max),
        ),
    )


def a_driver(
    store: Store, clock: Clock | None = None, sink: Sink = ignore, *, seed: int = 1
) -> Driver:
    """Return a driver that answers from a store, by a clock that is moved by hand."""
    clock = ManualClock() if clock is None else clock
    retry = Retry(clock, sink, Settings(), np.random.default_rng(seed), threading.Event())
    return Driver(store, clock, retry, DeltaRefresher(store, clock, sink))


class AnswersFrom:
    """Answers effects from a store, and keeps them; rivals may act just before a commit."""

    def __init__(self, store: SchedulerStore, rivals: Sequence[Callable[[], object]] = ()) -> None:
        self.effects: list[Effect] = []
        self._store = store
        self._rivals = list(rivals)

    def __call__(self, effect: Effect) -> object:
        self.effects.append(effect)
        if isinstance(effect, Refresh):
            return View(self._store.snapshot())
        if isinstance(effect, Commit):
            if self._rivals:
                self._rivals.pop(0)()
            return self._store.commit(effect.transaction)
        return effect.make(self._store) if isinstance(effect, Call) else None

    @property
    def transactions(self) -> list[Transaction]:
        return [effect.transaction for effect in self.effects if isinstance(effect, Commit)]
