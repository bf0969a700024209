"""The world that simulated schedulers share: a cell, time, and tasks that end.

Goal     Let what was granted run for as long as it runs, whoever granted it.
Promise  Tasks of one grant and group end in one event. Whoever asked is told of each such end.
Source   docs/papers/omega.md, the event model.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from omega.model.arrays import Amounts, Ids
from omega.model.claims import Claims
from omega.model.outcomes import Outcome
from omega.sim.cell import SimulatedCell
from omega.sim.engine import Engine, Order
from omega.sim.ledger import SimulatedJob
from omega.sim.prefill import StartState

Tell = Callable[[Ids, Amounts], None]
"""Told of tasks that end: the machine of each, and what it had there."""


class World:
    """One cell in virtual time."""

    def __init__(self, engine: Engine, cell: SimulatedCell) -> None:
        self.engine = engine
        self.cell = cell
        self.when_tasks_end: list[Tell] = []
        """Told of all tasks that end."""

    def start(self, state: StartState) -> None:
        """Have what the cell begins with end when its time is up, in an event a moment."""
        for ends_s, rows in state.ending():
            end = partial(self._end, state.machine[rows], state.amounts[rows], None)
            self.engine.at(ends_s, Order.END, end)

    def run(
        self, job: SimulatedJob, claims: Claims, outcome: Outcome, *, tell: Tell | None = None
    ) -> None:
        """Have what was granted end when its time is up, group by group; tell of it, if wanted."""
        groups = job.lease.spec.groups
        first = 0
        for group, duration_s in zip(groups, job.durations_s, strict=True):
            last = first + group.tasks
            if duration_s is not None:
                mine = outcome.accepted
                if len(groups) > 1:
                    mine = mine & (claims.task >= first) & (claims.task < last)
                if np.count_nonzero(mine):
                    ends_s = self.engine.now_s + duration_s
                    end = partial(self._end, claims.machine[mine], claims.demand[mine], tell)
                    self.engine.at(ends_s, Order.END, end)
            first = last

    def _end(self, machine: Ids, amounts: Amounts, also: Tell | None) -> None:
        self.cell.release(machine, amounts)
        if also is not None:
            also(machine, amounts)
        for tell in self.when_tasks_end:
            tell(machine, amounts)
