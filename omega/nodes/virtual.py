"""Virtual nodes: stand for all machines of a cell, end tasks, make steps and process activities.

Goal     Give a cell without machines the life that schedulers need: room that becomes free again.
Promise  A task ends no earlier than its duration after its grant, by the store's clock and divided
         by the speed-up. Ends are reported in bulk. Outlives restarts of the store; a second set of
         virtual nodes beside the first does no harm. No I/O: whoever drives them calls the store.
Source   Omega (EuroSys 2013), section 4: tasks run for a known time from their own placement.
"""

from collections.abc import Callable
from threading import Event

from omega.events import Sink, TasksEnded
from omega.framework.effects import Effects, Wait
from omega.limits import LIMITS
from omega.model.arrays import Ids, Index
from omega.nodes.activities import Activities
from omega.nodes.calling import called
from omega.nodes.running import RunningTasks
from omega.nodes.stepper import NO_RATES, Stepper, StepRates

STEP_S = 0.1
RELEASES_PER_STEP = 20
"""Calls that end tasks in one step: with a backlog, news and the stop event still get a look in."""


class VirtualNodes:
    """Ends tasks that are over: a life without I/O, as a scheduler process has it."""

    def __init__(self, sink: Sink, *, speedup: float, rates: StepRates = NO_RATES) -> None:
        self._sink = sink
        self._running = RunningTasks(speedup)
        self._stepper = Stepper(sink, self._release, rates=rates, speedup=speedup)
        self._activities = Activities(self._release, speedup=speedup)
        self._mark = 0  # everything that is live, the first time

    def life(self, stop: Event, after_each: Callable[[], Effects[None]]) -> Effects[None]:
        """Take steps until the stop event is set, with what else there is to do after each."""
        while not stop.is_set():
            now_ms = yield from called("now_ms", lambda store: store.now_ms())
            ended = yield from self.step(now_ms)
            yield from after_each()
            if ended < RELEASES_PER_STEP * LIMITS.tasks_per_release_max:
                yield Wait(STEP_S)

    def step(self, now_ms: int) -> Effects[int]:
        """Hear of new tasks, and end those that are over at that time; return how many ended."""
        heard, self._mark = yield from called(
            "allocations", lambda store: store.allocations_since(self._mark)
        )
        self._running.hear(heard)
        self._stepper.hear(heard)
        self._activities.hear(heard)
        released = yield from self._stepper.step(now_ms)
        released += yield from self._activities.step(now_ms)
        for _ in range(RELEASES_PER_STEP):
            due = self._running.due(now_ms, LIMITS.tasks_per_release_max)
            if not due.any():
                break
            released += yield from self._release(*self._running.named(due))
            self._running.forget(due)
        return released

    def _release(self, job: Ids, task: Index, started_ms: Ids) -> Effects[int]:
        """End these tasks, as they were started; return how many we asked for.

        Others may have ended some before, or evicted them: the store passes those over.
        """
        ended = yield from called("end_tasks", lambda store: store.end_tasks(job, task, started_ms))
        if ended:
            self._sink(TasksEnded(ended))
        return len(job)


def nothing_else() -> Effects[None]:
    """Do nothing between two steps."""
    yield from ()
