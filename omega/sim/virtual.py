"""A driver that answers processes in virtual time, with a memory store and an engine.

Goal     Run the live scheduler processes and nodes in virtual time.
Promise  Waiting and deciding are events. A call takes effect when it is made, and is answered after
         its latency. A commit takes effect when it is answered: others see none before its end,
         and it is judged by what they have committed until then. Leases are renewed as by a live
         process. A process that is killed makes no further call, and its leases stay as they are.
         The same seed gives the same run.
Source   docs/decisions/0031-one-process-two-drivers.md; docs/decisions/0021-virtual-time.md.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from omega.cell.view import View
from omega.config import Settings
from omega.errors import StoreUnavailable
from omega.events import Sink, StoreCallFailed, ignore
from omega.framework.effects import (
    Call,
    Commit,
    Effect,
    Effects,
    PlaceAtRandom,
    Refresh,
    Think,
    Wait,
)
from omega.framework.heartbeat import renew
from omega.framework.process import Process
from omega.lifecycle.backoff import delay_ms
from omega.sim.actor import Actor, Resume
from omega.sim.engine import Engine, Order
from omega.store.protocols import Store
from omega.sync.refresher import Refresher
from omega.workload.arrivals import MS_PER_S

Latency = Callable[[Effect], float]
"""The seconds that an answer to an effect takes."""
Thinks = Callable[[float], object]
"""Is called with the decision time, in seconds, of a decision that begins."""


def ignore_it(_: float) -> None:
    """Do nothing."""


def no_latency(_: Effect) -> float:
    """Return 0: the answer comes at once."""
    return 0.0


class StoreActor(Actor):
    """A generator of effects that a memory store answers: a process, or virtual nodes."""

    def __init__(
        self,
        engine: Engine,
        store: Store,
        rng: np.random.Generator,
        *,
        refresher: Refresher | None = None,
        settings: Settings | None = None,
        sink: Sink = ignore,
        latency: Latency = no_latency,
        thinks: Thinks = ignore_it,
    ) -> None:
        """`settings` has the delays of calls to a store that is away; `rng` draws their jitter."""
        super().__init__()
        self._engine = engine
        self._store = store
        self._rng = rng
        self._refresher = refresher
        self._settings = settings or Settings.model_construct()
        self._sink = sink
        self._latency = latency
        self._thinks = thinks
        self._view: View | None = None
        self._failures = 0
        self._due: Commit | None = None
        """The commit whose latency has passed."""

    def begin(self, life: Effects[None]) -> None:
        """Start a generator of effects now; the one before must have ended."""
        assert not self.is_alive
        self._steps, self._view, self._failures, self._due = life, None, 0, None
        self._after(0.0, life, partial(next, life))

    def _after(self, seconds: float, life: Effects[None], go_on: Resume) -> None:
        """Resume a generator later, unless it has ended or was killed by then."""
        at_s = self._engine.now_s + seconds
        self._engine.at(at_s, Order.DECISION, partial(self._live, life, go_on))

    def _next(self, life: Effects[None], effect: Effect) -> Resume | None:
        if isinstance(effect, Think | PlaceAtRandom | Wait):  # this driver does not draw
            if not isinstance(effect, Wait):
                self._thinks(effect.seconds)
            self._after(effect.seconds, life, partial(life.send, None))
            return None
        if effect is self._due:  # its latency has passed
            self._due = None
            return self._called(life, effect, 0.0)
        seconds = self._latency(effect)
        if isinstance(effect, Commit) and seconds > 0:
            self._due = effect
            self._after(seconds, life, lambda: effect)
            return None
        return self._called(life, effect, seconds)

    def _called(
        self, life: Effects[None], effect: Refresh | Commit | Call[Any], seconds: float
    ) -> Resume | None:
        """Have an effect answered by the store, and the answer be there so many seconds later."""
        try:
            answer = self._answer(effect)
        except StoreUnavailable as error:
            if not self._gives_up():
                self._after(self._delay_s(effect, error), life, lambda: effect)
                return None
            return partial(life.throw, error)
        except Exception as error:  # the generator handles its own errors
            return partial(life.throw, error)
        self._failures = 0
        if seconds > 0:
            self._after(seconds, life, partial(life.send, answer))
            return None
        return partial(life.send, answer)

    def _gives_up(self) -> bool:
        """Return whether to stop repeating calls to a store that is away."""
        return False

    def _answer(self, effect: Refresh | Commit | Call[Any]) -> object:
        match effect:
            case Commit(transaction):
                return self._store.commit(transaction)
            case Call(_, make):
                return make(self._store)
            case Refresh():
                assert self._refresher is not None, "somebody asks for a view and has none"
                self._view = self._refresher.refresh(self._view)
                return self._view

    def _delay_s(self, effect: Effect, error: StoreUnavailable) -> float:
        """Report that the store is away; return the seconds until the next call."""
        self._failures += 1
        operation = effect.operation if isinstance(effect, Call) else type(effect).__name__.lower()
        self._sink(StoreCallFailed(operation, str(error)))
        wait_ms = delay_ms(
            self._failures,
            initial_ms=self._settings.backoff_initial_ms,
            longest_ms=self._settings.backoff_max_ms,
            rng=self._rng,
        )
        return wait_ms / MS_PER_S


class VirtualProcess(StoreActor):
    """A scheduler process in virtual time."""

    def __init__(
        self,
        process: Process,
        engine: Engine,
        store: Store,
        refresher: Callable[[Sink], Refresher],
        *,
        latency: Latency = no_latency,
        thinks: Thinks = ignore_it,
    ) -> None:
        super().__init__(
            engine,
            store,
            process.rng,
            refresher=refresher(process.emit),
            settings=process.settings,
            sink=process.emit,
            latency=latency,
            thinks=thinks,
        )
        self.process = process
        self._has_run = False

    def run(self) -> None:
        """Start the process now; once only, because leases of a killed one are not yet free."""
        assert not self._has_run, "another process takes its place, by the same name"
        self._has_run = True
        life = self._life()
        self.begin(life)
        self._beat_later(life)

    def _life(self) -> Effects[None]:
        try:
            yield from self.process.life()
            yield from self.process.end()
        except StoreUnavailable as error:
            if not self.process.stop.is_set():
                raise
            self._sink(StoreCallFailed("finish", str(error)))  # the leases expire

    def _gives_up(self) -> bool:
        return self.process.stop.is_set()

    def _beat_later(self, life: Effects[None]) -> None:
        at_s = self._engine.now_s + self._settings.heartbeat_interval_ms / MS_PER_S
        self._engine.at(at_s, Order.DECISION, partial(self._beat, life))

    def _beat(self, life: Effects[None]) -> None:
        """Renew the leases, as a live process's heartbeat does."""
        if life is not self._steps:
            return
        try:
            renew(self.process.leases, self._store, lease_ms=self._settings.lease_ms)
        except StoreUnavailable as error:
            self._sink(StoreCallFailed("renew", str(error)))
        self._beat_later(life)
