"""Ends tasks in a contest: at random to keep a cell's level, or by the product's nodes."""

from typing import Protocol

import numpy as np

from omega.clock import Clock
from omega.events import Event, TasksEnded
from omega.framework.retry import Retry
from omega.limits import LIMITS
from omega.nodes.live import LiveNodes
from omega.store.protocols import NodeStore, Store


class Churn(Protocol):
    """Ends tasks, and counts them."""

    ended: int

    def step(self) -> None:
        """End the tasks that are due."""
        ...


class ConstantLoad:
    """Ends tasks drawn at random, as many as exceed the level.

    The cell is then equally full however fast the schedulers are, so that compared runs differ in
    nothing else. Durations of tasks follow from the level.
    """

    def __init__(self, store: NodeStore, rng: np.random.Generator, *, level: int) -> None:
        self._store = store
        self._rng = rng
        self._level = level
        self._mark = 0
        self._live: dict[tuple[int, int], int] = {}
        self.ended = 0

    def step(self) -> None:
        """Read the new tasks, and end as many as exceed the level."""
        heard, self._mark = self._store.allocations_since(self._mark)
        keys = zip(heard.job.tolist(), heard.task.tolist(), strict=True)
        self._live.update(zip(keys, heard.started_ms.tolist(), strict=True))
        too_many = min(len(self._live) - self._level, LIMITS.tasks_per_release_max)
        if too_many > 0:
            self._end(too_many)

    def _end(self, tasks: int) -> None:
        live = list(self._live)
        drawn = self._rng.choice(len(live), tasks, replace=False).tolist()
        job, task, started_ms = (
            np.array(column, dtype=np.int64)
            for column in zip(*((*live[n], self._live[live[n]]) for n in drawn), strict=True)
        )
        self.ended += self._store.end_tasks(job, task, started_ms)
        for number in drawn:
            del self._live[live[number]]


class Nodes:
    """The product's virtual nodes: tasks run for the durations of their specs."""

    def __init__(self, store: Store, clock: Clock, retry: Retry, *, speedup: float) -> None:
        self._store = store
        self._nodes = LiveNodes(store, clock, self._hear, retry, speedup=speedup)
        self.ended = 0

    def step(self) -> None:
        """End the tasks whose time is up."""
        self._nodes.step(self._store.now_ms())

    def _hear(self, event: Event) -> None:
        if isinstance(event, TasksEnded):
            self.ended += event.tasks
