"""Virtual nodes: stand for all machines of the cell, end tasks when their time is up, and train.

Goal     Give a cell without machines the life that schedulers need: room that becomes free again.
Promise  A task ends no earlier than its duration after its grant, by the store's clock and divided
         by the speed-up. Ends are reported in bulk. Outlives restarts of the store; a second set of
         virtual nodes beside the first does no harm.
Source   Omega (EuroSys 2013), section 4: tasks run for a known time from their own placement.
"""

import threading
from collections.abc import Callable

from omega.clock import Clock
from omega.errors import StoreUnavailable
from omega.events import Sink, TasksEnded
from omega.framework.patience import Patience
from omega.limits import LIMITS
from omega.model.arrays import Ids, Index
from omega.nodes.running import RunningTasks
from omega.nodes.trainer import NO_RATES, Trainer, TrainingRates
from omega.store.base import Store

STEP_S = 0.1
RELEASES_PER_STEP = 20
"""Calls that end tasks in one step: with a backlog, news and the stop event still get a look in."""


class VirtualNodes:
    """Ends tasks that are over. Call `run`, or `step` for one round at a time."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        sink: Sink,
        patience: Patience,
        *,
        speedup: float,
        rates: TrainingRates = NO_RATES,
    ) -> None:
        self._store = store
        self._clock = clock
        self._sink = sink
        self._patiently = patience
        self._running = RunningTasks(speedup)
        self._trainer = Trainer(store, sink, patience, self._release, rates=rates, speedup=speedup)
        self._mark = 0  # everything that is live, the first time

    def run(self, stop: threading.Event, after_each: Callable[[], None] = lambda: None) -> None:
        """Work until the stop event is set; the clock's sleeps must end with it.

        What else there is to do after each step may raise StoreUnavailable, too.
        """
        try:
            while not stop.is_set():
                now_ms = self._patiently("now_ms", self._store.now_ms)
                ended = self.step(now_ms)
                after_each()
                if ended < RELEASES_PER_STEP * LIMITS.tasks_per_release_max:
                    self._clock.sleep(STEP_S)
        except StoreUnavailable:
            if not stop.is_set():
                raise

    def step(self, now_ms: int) -> int:
        """Hear of new tasks and end those that are over at that time; return how many ended."""
        heard, self._mark = self._patiently(
            "allocations", lambda: self._store.allocations_since(self._mark)
        )
        self._running.hear(heard)
        self._trainer.hear(heard)
        released = self._trainer.step(now_ms)
        for _ in range(RELEASES_PER_STEP):
            due = self._running.due(now_ms, LIMITS.tasks_per_release_max)
            if not due.any():
                break
            released += self._release(*self._running.named(due))
            self._running.forget(due)
        return released

    def _release(self, job: Ids, task: Index, started_ms: Ids) -> int:
        """End these tasks, as they were started; return how many we asked for.

        Others may have ended some before, or evicted them: the store passes those over.
        """
        ended = self._patiently("end_tasks", lambda: self._store.end_tasks(job, task, started_ms))
        if ended:
            self._sink(TasksEnded(ended))
        return len(job)
