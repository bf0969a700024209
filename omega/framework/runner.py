"""A live scheduler process: its main loop, driven with a store in real time.

Goal     Run any scheduler against a store until it is stopped.
Promise  It survives restarts of the store. A commit whose answer was lost is sent again under the
         same id. A thread with a store connection of its own renews its leases.
Source   docs/decisions/0031-one-process-two-drivers.md; docs/decisions/0004-the-job-queue.md.
"""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID, uuid4

from omega.clock import Clock
from omega.config import Settings
from omega.errors import NotAllowed, StoreUnavailable
from omega.events import Sink, StoreCallFailed, fan_out
from omega.framework.deciding import DecidingReporter
from omega.framework.driver import Driver
from omega.framework.effects import Commit, Effect, Wait, drive
from omega.framework.heartbeat import Heartbeat
from omega.framework.leasing import Leases
from omega.framework.process import Process
from omega.framework.retry import Retry
from omega.framework.scheduler import NO_DECISION_TIME, DecisionTime, Scheduler
from omega.metrics.facts import Facts
from omega.metrics.fold import SchedulerFold
from omega.store.protocols import SchedulerStore, SharedViewSource, Store
from omega.sync.delta import DeltaRefresher
from omega.sync.refresher import Refresher


@dataclass(kw_only=True, eq=False)
class SchedulerProcess:
    """One live replica of a scheduler. Call `run`, or `step` for one cycle at a time."""

    scheduler: Scheduler
    store: Store
    open_store: Callable[[], SchedulerStore]
    """Opens another connection to the same store, for the heartbeat."""
    clock: Clock
    """Its sleeps must end when `stop` is set."""
    settings: Settings
    sink: Sink
    replica: str
    run_seed: int
    stop: threading.Event
    """The process ends after this is set."""
    decision_time: DecisionTime = NO_DECISION_TIME
    refresher: Callable[[SharedViewSource, Clock, Sink], Refresher] = DeltaRefresher
    """Makes the refresher: the way to synchronise the view."""
    new_id: Callable[[], UUID] = uuid4

    def __post_init__(self) -> None:
        self._deciding = DecidingReporter(
            self.scheduler.kind,
            self.replica,
            os.getpid(),
            self._facts,
            self.clock,
        )
        self._process = Process(
            scheduler=self.scheduler,
            clock=self.clock,
            settings=self.settings,
            sink=fan_out(self._deciding, self.sink),
            replica=self.replica,
            run_seed=self.run_seed,
            new_id=self.new_id,
            stop=self.stop,
            pid=os.getpid(),
            decision_time=self.decision_time,
        )
        sink = self._process.emit
        self._refresher = self.refresher(self.store, self.clock, sink)
        retry = Retry(self.clock, sink, self.settings, self._process.rng, self.stop)
        self._driver = Driver(self.store, self.clock, retry, self._refresher)

    @property
    def leases(self) -> Leases:
        """The leases that the process holds."""
        return self._process.leases

    @property
    def fold(self) -> SchedulerFold:
        """The facts that this process reports to the store."""
        return self._process.fold

    def _facts(self) -> Facts:
        return self._process.facts()

    def run(self) -> None:
        """Run the main loop until the stop event is set, then `finish`.

        Raises the exception that ended the heartbeat, if one did.
        """
        heartbeat = Heartbeat(
            self.leases,
            self.open_store,
            self._process.emit,
            lease_ms=self.settings.lease_ms,
            interval_ms=self.settings.heartbeat_interval_ms,
            report=self._deciding.report,
        )

        def answer(effect: Effect) -> object:
            if isinstance(effect, Commit | Wait):  # no code catches exceptions of these effects
                heartbeat.check()
            return self._driver.answer(effect)

        with heartbeat:
            try:
                drive(self._process.life(), answer)
            except StoreUnavailable:
                if not self.stop.is_set():
                    raise
            finally:
                self.finish()

    def step(self) -> int:
        """Run one cycle; return the number of jobs planned."""
        return drive(self._process.cycle(), self._driver.answer)

    def finish(self) -> None:
        """Hand back every lease, leave the store's registry and give back the refresher's turn.

        If the store is unavailable or refuses, an event is emitted, and the leases will run out.
        """
        self._deciding.end()
        try:
            drive(self._process.end(), self._driver.answer_once)
            self._refresher.close()
        except (StoreUnavailable, NotAllowed) as error:
            self._process.emit(StoreCallFailed("finish", str(error)))
