"""What ends tasks in a contest: a tide that keeps a cell at its level, or the product's nodes."""

from typing import Protocol

import numpy as np

from omega.clock import Clock
from omega.events import Event, TasksEnded
from omega.framework.retry import Retry
from omega.limits import LIMITS
from omega.nodes.live import LiveNodes
from omega.store.protocols import NodeStore, Store


class Churn(Protocol):
    """Ends tasks, and knows how many it has."""

    ended: int

    def step(self) -> None:
        """End what is to end by now."""
        ...


class ConstantLoad:
    """Ends tasks drawn at random, so many as stand above the level.

    So the cell is equally full however fast schedulers are, and what is compared differs in
    nothing else; a task's life is as long as that takes.
    """

    def __init__(self, store: NodeStore, rng: np.random.Generator, *, level: int) -> None:
        self._store = store
        self._rng = rng
        self._level = level
        self._mark = 0
        self._live: dict[tuple[int, int], int] = {}
        self.ended = 0

    def step(self) -> None:
        """Hear of new tasks, and end as many as there are too many."""
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
    """The product's virtual nodes: tasks run for as long as they said."""

    def __init__(self, store: Store, clock: Clock, retry: Retry, *, speedup: float) -> None:
        self._store = store
        self._nodes = LiveNodes(store, clock, self._hear, retry, speedup=speedup)
        self.ended = 0

    def step(self) -> None:
        """End what is over."""
        self._nodes.step(self._store.now_ms())

    def _hear(self, event: Event) -> None:
        if isinstance(event, TasksEnded):
            self.ended += event.tasks
