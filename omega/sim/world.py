"""The world that simulated schedulers share: a cell, virtual time, and tasks that end.

Goal     End granted tasks when their durations are over, whichever scheduler placed them.
Promise  The tasks of one grant and one group end in one event, except those lost before. Callbacks
         are called at each such end.
Source   docs/papers/omega.md, the event model.
"""

from collections.abc import Sequence
from functools import partial
from math import inf

import numpy as np

from omega.model.arrays import Amounts, Ids, all_true
from omega.model.claims import Claims
from omega.model.outcomes import Outcome
from omega.sim.cell import SimulatedCell
from omega.sim.engine import Engine, Order
from omega.sim.ledger import SimulatedJob
from omega.sim.prefill import StartState
from omega.sim.running import Grant, Lose, Running, Tell


class World:
    """One cell in virtual time."""

    def __init__(self, engine: Engine, cell: SimulatedCell, running: Running | None = None) -> None:
        """Pass `running` for a cell whose machines change."""
        self.engine = engine
        self.cell = cell
        self.running = running
        self.start_tasks_lost = 0
        """Tasks of the start state that were lost with a machine; they are not placed again."""
        self.when_tasks_end: list[Tell] = []
        """Called at every end of tasks."""

    def start(self, state: StartState) -> None:
        """Schedule the ends of the start state's tasks, one event for each time."""
        for ends_s, rows in state.by_end():
            grant = Grant(
                state.job[rows], state.task[rows], state.machine[rows], state.amounts[rows]
            )
            self._begin(grant, ends_s)

    def run(
        self,
        job: SimulatedJob,
        claims: Claims,
        outcome: Outcome,
        *,
        tell: Tell | None = None,
        lose: Lose | None = None,
    ) -> None:
        """Schedule the ends of the granted tasks, group by group.

        `tell` is called when they end, `lose` when they are lost before.
        """
        groups = job.lease.spec.groups
        first = 0
        for group, duration_s in zip(groups, job.durations_s, strict=True):
            last = first + group.tasks
            if duration_s is not None or self.running is not None:
                mine = outcome.accepted
                if len(groups) > 1:
                    mine = mine & (claims.task >= first) & (claims.task < last)
                if np.count_nonzero(mine):
                    machine = outcome.machine
                    task, amounts = claims.task, claims.demand_on(machine)
                    if not all_true(mine):
                        task, machine, amounts = task[mine], machine[mine], amounts[mine]
                    job_id = np.full(len(task), job.lease.id)
                    grant = Grant(job_id, task, machine, amounts, job, tell, lose)
                    ends_s = inf if duration_s is None else self.engine.now_s + duration_s
                    self._begin(grant, ends_s)
            first = last

    def run_whole(self, job: SimulatedJob, machine: Ids, *, tell: Tell | None = None) -> None:
        """Schedule the end of all tasks of a job of one group.

        Only for a cell whose machines do not change.
        """
        assert self.running is None
        (duration_s,) = job.durations_s
        if duration_s is not None:
            demand = job.lease.spec.groups[0].demand
            end = partial(self._free, machine, demand, tell)
            self.engine.at(self.engine.now_s + duration_s, Order.END, end)

    def tell_of_losses(self, lost: Sequence[Grant]) -> None:
        """Call `lose` of each job with its lost tasks; count those of the start state."""
        by_job: dict[SimulatedJob, list[Grant]] = {}
        for gone in lost:
            if gone.job is None:
                self.start_tasks_lost += len(gone)
            else:
                by_job.setdefault(gone.job, []).append(gone)
        for job, its in by_job.items():
            assert its[0].lose is not None, "whose tasks can be lost wants to be told"
            its[0].lose(job, np.sort(np.concatenate([gone.task for gone in its])))

    def _begin(self, grant: Grant, ends_s: float) -> None:
        if ends_s < inf:
            self.engine.at(ends_s, Order.END, partial(self._end, grant))
        if self.running is not None:
            self.running.add(grant)

    def _end(self, grant: Grant) -> None:
        if not len(grant):
            return  # all of it was lost
        if self.running is not None:
            self.running.end(grant)
        self._free(grant.machine, grant.amounts, grant.tell)

    def _free(self, machine: Ids, amounts: Amounts, tell: Tell | None) -> None:
        """Free what ended tasks used, and call the callbacks."""
        self.cell.release(machine, amounts)
        if tell is not None:
            tell(machine, amounts)
        for one in self.when_tasks_end:
            one(machine, amounts)
