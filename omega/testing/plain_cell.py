"""The model of a cell in dictionaries: what a store must hold after each call.

Goal     Random histories compare a store with this model, call by call.
Promise  Commits are judged by the slow twin, and states change by the table of moves.
Source   omega/testing/twin.py, omega/lifecycle/states.py.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from uuid import UUID

import numpy as np

from omega.cell.commit_context import CommitContext
from omega.lifecycle.states import FINAL, MOVES, State, Trigger
from omega.model.allocations import Allocations
from omega.model.claims import JobSlice, Transaction
from omega.model.jobs import JobSpec
from omega.model.machines import MachineRows, MachineState
from omega.model.outcomes import Outcome
from omega.model.quotas import Budget, Quota, QuotaScope
from omega.testing.builders import KnownJob, a_context, some_balances
from omega.testing.twin import (
    PlainMachine,
    TaskName,
    evicted_by,
    judge_slowly,
    machine_rows,
    plain_machines,
)


@dataclass
class PlainJob:
    """One job of the model."""

    spec: JobSpec
    state: State = State.PENDING
    token: UUID | None = None
    lease_is_over: bool = False
    """Whether the lease has expired; this matters only when jobs are rescued."""
    round: int | None = None
    """The number of the round that recalled it, if one did."""
    runs: dict[int, tuple[int, list[int]]] = field(default_factory=dict)
    """By task, its machine id and its amounts of all kinds."""
    over: set[int] = field(default_factory=set)
    failed: int = 0
    """How many tasks are over because their programs failed."""
    started_ms: dict[int, int] = field(default_factory=dict)
    """By task, when it was last placed, as the store reports it."""
    parent: int | None = None
    """The elastic job that its tasks help."""

    @property
    def placed(self) -> int:
        """How many tasks have a place or have ended."""
        return len(self.runs) + len(self.over)

    @property
    def unplaced(self) -> set[int]:
        """The tasks without a place that have not ended."""
        return set(range(self.spec.tasks)) - self.runs.keys() - self.over

    def move(self, trigger: Trigger) -> None:
        """Change the state by the table of moves; the lease ends with the old state."""
        if trigger is Trigger.END_ALL and self.failed:
            trigger = Trigger.FAIL
        before, self.state = self.state, MOVES[self.state, trigger]
        if self.state is not before:
            self.token = None

    def end_lease(self, trigger: Trigger) -> None:
        """End the lease; a recalled job that has lost no task runs again, and so do helpers."""
        if self.parent is not None and self.give_up(self.unplaced):
            return
        self.move(trigger if self.unplaced else Trigger.GO_ON)

    def give_up(self, tasks: Iterable[int]) -> bool:
        """End those of these tasks of helpers that have no place; return whether all are over."""
        self.over |= self.unplaced.intersection(tasks)
        if len(self.over) < self.spec.tasks:
            return False
        self.move(Trigger.END_ALL)
        return True

    def is_held_by(self, token: UUID) -> bool:
        """Return whether this is the token of the current lease."""
        return self.token == token


@dataclass
class PlainCell:
    """The model of a cell: machines and jobs by id."""

    machines: dict[int, PlainMachine] = field(default_factory=dict)
    jobs: dict[int, PlainJob] = field(default_factory=dict)
    notices: dict[int, bool] = field(default_factory=dict)
    """By machine that may be used above its capacity, whether its notice has ended."""
    quotas: dict[tuple[QuotaScope, str], Quota] = field(default_factory=dict)
    precedence_gap: int = 10

    def rows(self) -> MachineRows:
        """Return all machines as rows."""
        return machine_rows(self.machines)

    def waiting(self, kind: str) -> list[int]:
        """Return the pending jobs of a kind in the order in which they are leased."""
        pending = [job for job in self.in_state(State.PENDING) if self.kind(job) == kind]
        return sorted(pending, key=lambda job: (-self.jobs[job].spec.precedence, job))

    def in_state(self, *states: State) -> list[int]:
        """Return the jobs in these states."""
        return [job for job, about in self.jobs.items() if about.state in states]

    def kind(self, job: int) -> str:
        """Return which kind of scheduler a job is for."""
        return self.jobs[job].spec.scheduler

    def places(self) -> list[tuple[int, int, int]]:
        """Return job, task and machine of every running task."""
        return sorted(
            (job, task, machine)
            for job, about in self.jobs.items()
            for task, (machine, _) in about.runs.items()
        )

    def used(self, quota: Quota) -> dict[Budget, int]:
        """Return what the jobs of a quota hold, by budget."""
        known = {job: self._known(job) for job in self.jobs}
        nothing = Quota(quota.scope, quota.name, dict.fromkeys(Budget, 0))
        (left,) = some_balances(known, [nothing]).left.tolist()
        return {budget: -left[budget] for budget in Budget}

    def judge(self, transaction: Transaction) -> Outcome:
        """Return what a store must answer to a transaction with a new id."""
        return judge_slowly(self.rows(), transaction, self._context(transaction))

    def apply(self, transaction: Transaction, outcome: Outcome) -> None:
        """Enter evictions first and grants afterwards, because one task may have both."""
        self._unplace(evicted_by(outcome))
        self.machines.update(plain_machines(outcome.fresh))
        claims, shape = transaction.claims, transaction.claims.shape_on(outcome.machine)
        for part in transaction.jobs:
            granted = [at for at in _claims_of(part) if outcome.accepted[at]]
            for at in granted:
                asked = claims.shapes[shape[at]].tolist()
                self.jobs[part.job].runs[int(claims.task[at])] = int(outcome.machine[at]), asked
            if granted and not self.jobs[part.job].unplaced:
                self.jobs[part.job].move(Trigger.PLACE_ALL)
        self._give_up(evicted_by(outcome))

    def end_all(self, tasks: Iterable[TaskName]) -> int:
        """End these tasks; return how many of them ran. `adopt_revisions` updates revisions."""
        running = [name for name in sorted(set(tasks)) if name in self._running()]
        for job, task in running:  # a parent comes before its helpers, which end with it
            self.end(job, task)
        return len(running)

    def end(self, job: int, task: int) -> bool:
        """End a task; return whether it ran. `adopt_revisions` updates the revisions."""
        about = self.jobs.get(job)
        if about is None or task not in about.runs:
            return False
        machine, asked = about.runs.pop(task)
        about.over.add(task)
        self.machines[machine].give_back(asked)
        if len(about.over) == about.spec.tasks:
            about.move(Trigger.END_ALL)
            self._finish_helpers(job, Trigger.END_ALL)
        return True

    def cancel(self, job: int) -> bool:
        """Cancel a job; return False if it has ended already."""
        if self.jobs[job].state in FINAL:
            return False
        self._stop(job, Trigger.CANCEL, of_helpers=Trigger.CANCEL)
        return True

    def exit_all(self, exits: Iterable[tuple[TaskName, bool]]) -> int:
        """Enter exits, failed ones or not, the first of each task; return how many ran."""
        first: dict[TaskName, bool] = {}
        running = set(self._running())
        for name, has_failed in exits:
            if name in running:
                first.setdefault(name, has_failed)
        for (job, _), has_failed in first.items():
            self.jobs[job].failed += has_failed
        for job in sorted({job for job, _ in first}):
            if self.jobs[job].failed and self.jobs[job].spec.minimum:
                self._stop(job, Trigger.FAIL, of_helpers=Trigger.END_ALL)
        self.end_all(first)
        return len(first)

    def _stop(self, job: int, trigger: Trigger, *, of_helpers: Trigger) -> None:
        about = self.jobs[job]
        for machine, asked in about.runs.values():
            self.machines[machine].give_back(asked)
        about.over |= about.runs.keys()
        about.runs.clear()
        about.move(trigger)
        self._finish_helpers(job, of_helpers)

    def live_helpers(self, job: int) -> list[PlainJob]:
        """Return the jobs of helpers of a job that go on."""
        return [it for it in self.jobs.values() if it.parent == job and it.state not in FINAL]

    def helpers(self) -> list[TaskName]:
        """Return the helpers that run."""
        return [(job, task) for job, task in self._running() if self.jobs[job].parent is not None]

    def helpers_granted(self, job: int, tasks: int) -> int:
        """Return how many of so many helpers a job may have now."""
        about = self.jobs[job]
        is_planned = about.state is State.PLANNING and about.round is None
        if about.spec.workers is None or not (about.state is State.RUNNING or is_planned):
            return 0
        others = sum(it.spec.tasks - len(it.over) for it in self.live_helpers(job))
        return max(0, min(tasks, about.spec.workers.at_most - about.spec.tasks - others))

    def _finish_helpers(self, job: int, trigger: Trigger) -> None:
        for about in self.live_helpers(job):
            for machine, asked in about.runs.values():
                self.machines[machine].give_back(asked)
            about.runs.clear()
            about.over = set(range(about.spec.tasks))
            about.move(trigger)

    def set_state(self, machine: int, state: MachineState) -> bool:
        """Change a machine's state; return whether it changed."""
        about = self.machines[machine]
        if about.state in (state, MachineState.GONE):
            return False
        about.state = state
        about.sequence += 1
        about.revision += 1
        return True

    def resize(self, machine: int, capacity: list[int], *, is_over: bool) -> None:
        """Change a machine's capacity; `is_over` says whether its notice ends at once."""
        about = self.machines[machine]
        about.capacity = capacity
        about.sequence += 1
        about.revision += 1
        self.notices.pop(machine, None)
        if not about.has_room_for([0] * len(capacity)):
            self.notices[machine] = is_over

    def lose_tasks(self, machines: Iterable[int]) -> int:
        """Evict the tasks on those of the machines that are down or gone; return how many."""
        dead = {
            m for m in machines if self.machines[m].state in (MachineState.DOWN, MachineState.GONE)
        }
        return self._force_end([name for name in self._running() if self._place(name)[0] in dead])

    def enforce_notices(self) -> int:
        """Evict tasks above capacity where a notice has ended, by machine; return how many."""
        ended = 0
        for machine in sorted(self.notices):
            if self.notices[machine]:
                ended += self._force_end(self._in_excess(machine))
            if self.machines[machine].has_room_for([0] * len(self.machines[machine].capacity)):
                del self.notices[machine]
        return ended

    def _in_excess(self, machine: int) -> list[TaskName]:
        used = list(self.machines[machine].used)
        capacity = self.machines[machine].capacity
        ending = []
        here = [name for name in self._running() if self._place(name)[0] == machine]
        for name in sorted(here, key=self._worth):
            amounts = self._place(name)[1]
            if any(
                held and total > most
                for held, total, most in zip(amounts, used, capacity, strict=True)
            ):
                used = [total - held for total, held in zip(used, amounts, strict=True)]
                ending.append(name)
        return ending

    def _worth(self, name: TaskName) -> tuple[int, int, int, int]:
        job, task = name
        about = self.jobs[job]
        return about.spec.precedence, -about.started_ms[task], -job, -task

    def _force_end(self, names: list[TaskName]) -> int:
        """Evict these tasks, and all tasks of gangs that this breaks; return how many."""
        falling = set(names)
        for job in {job for job, _ in names}:
            about = self.jobs[job]
            if about.placed - sum(name[0] == job for name in names) < about.spec.minimum:
                falling |= {(job, task) for task in about.runs}
        self._unplace(falling)
        self._give_up(falling)
        return len(falling)

    def _unplace(self, names: Iterable[TaskName]) -> None:
        names = list(names)
        for job, task in names:
            machine, amounts = self.jobs[job].runs.pop(task)
            self.machines[machine].give_back(amounts)
        for job in {job for job, _ in names}:
            if self.jobs[job].parent is None:
                self.jobs[job].move(Trigger.EVICT)

    def _give_up(self, names: Iterable[TaskName]) -> None:
        """End those of these tasks that are helpers and have lost their places."""
        tasks: dict[int, list[int]] = {}
        for job, task in names:
            if self.jobs[job].parent is not None:
                tasks.setdefault(job, []).append(task)
        for job, its in tasks.items():
            self.jobs[job].give_up(its)

    def _running(self) -> list[TaskName]:
        return [(job, task) for job, about in self.jobs.items() for task in about.runs]

    def _place(self, name: TaskName) -> tuple[int, list[int]]:
        return self.jobs[name[0]].runs[name[1]]

    def adopt_starts(self, allocations: Allocations) -> None:
        """Copy from a store when its running tasks were placed."""
        started = zip(
            allocations.job.tolist(),
            allocations.task.tolist(),
            allocations.started_ms.tolist(),
            strict=True,
        )
        for job, task, started_ms in started:
            self.jobs[job].started_ms[task] = started_ms

    def adopt_revisions(self, rows: MachineRows, freed: set[int]) -> None:
        """Copy a store's revisions; assert that they rose exactly on the machines in `freed`."""
        told = dict(zip(rows.id.tolist(), rows.revision.tolist(), strict=True))
        for machine, about in self.machines.items():
            rose = told[machine] > about.revision

            assert rose == (machine in freed), f"machine {machine}: {told[machine]}, {about}"
            about.revision = told[machine]

    def _known(self, job: int) -> KnownJob:
        about = self.jobs[job]
        return KnownJob(
            precedence=about.spec.precedence,
            minimum=about.spec.minimum,
            runs=about.runs,
            over=frozenset(about.over),
            tenant=about.spec.tenant,
            scheduler=about.spec.scheduler,
            preemptible=about.spec.preemptible,
            precedence_gap=self.precedence_gap,
        )

    def _context(self, transaction: Transaction) -> CommitContext:
        known = {job: self._known(job) for job in self.jobs}
        lost = [
            part.job
            for part in transaction.jobs
            if part.job not in self.jobs or not self.jobs[part.job].is_held_by(part.token)
        ]
        unplaced = [
            part.job in self.jobs
            and int(transaction.claims.task[at]) in self.jobs[part.job].unplaced
            for part in transaction.jobs
            for at in _claims_of(part)
        ]
        quotas = list(self.quotas.values())
        context = a_context(transaction, lost=lost, jobs=known, quotas=quotas)
        return replace(context, unplaced=np.array(unplaced, dtype=np.bool_))


def _claims_of(part: JobSlice) -> range:
    return range(part.claims.start, part.claims.stop)
