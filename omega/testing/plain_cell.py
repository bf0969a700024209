"""A whole cell in plain words: what a store must hold after each call, in dictionaries.

Goal     The model that random histories compare a store with, call by call.
Promise  Commits by the slow twin, moves by the table; nothing else decides anything.
Source   omega/testing/twin.py, omega/lifecycle/states.py.
"""

from dataclasses import dataclass, field
from uuid import UUID

import numpy as np

from omega.cell.judge import Standing
from omega.lifecycle.states import FINAL, MOVES, State, Trigger
from omega.model.arrays import Ids, integers
from omega.model.claims import JobPart, Transaction
from omega.model.jobs import JobSpec
from omega.model.machines import MachineRows
from omega.model.outcomes import Outcome
from omega.testing.twin import PlainMachine, judge_slowly, machine_rows, plain_machines


@dataclass
class PlainJob:
    """One job, as plain as can be."""

    spec: JobSpec
    state: State = State.PENDING
    token: UUID | None = None
    lease_is_over: bool = False
    """Whether the lease has run out, which matters to nobody but a rescuer."""
    runs: dict[int, tuple[int, list[int]]] = field(default_factory=dict)
    """By task, the machine and the amounts."""
    over: set[int] = field(default_factory=set)

    @property
    def placed(self) -> int:
        """Tasks that have a place or are over."""
        return len(self.runs) + len(self.over)

    @property
    def unplaced(self) -> set[int]:
        """Tasks without a place."""
        return set(range(self.spec.tasks)) - self.runs.keys() - self.over

    def move(self, trigger: Trigger) -> None:
        """Go where the table says; a lease ends with the state it belongs to."""
        self.state = MOVES[self.state, trigger]
        self.token = None

    def is_held_by(self, token: UUID) -> bool:
        """Say whether this is the token of the current lease."""
        return self.token == token


@dataclass
class PlainCell:
    """Machines and jobs by id."""

    machines: dict[int, PlainMachine] = field(default_factory=dict)
    jobs: dict[int, PlainJob] = field(default_factory=dict)

    def rows(self) -> MachineRows:
        """Return all machines as rows."""
        return machine_rows(self.machines)

    def waiting(self) -> list[int]:
        """Return the pending jobs in the order in which they are to be leased."""
        pending = [job for job, about in self.jobs.items() if about.state is State.PENDING]
        return sorted(pending, key=lambda job: (-self.jobs[job].spec.precedence, job))

    def in_state(self, *states: State) -> list[int]:
        """Return the jobs in these states."""
        return [job for job, about in self.jobs.items() if about.state in states]

    def judge(self, transaction: Transaction) -> Outcome:
        """Say what a store must answer to a transaction that it has not seen before."""
        return judge_slowly(self.rows_named(transaction), transaction, self._standing(transaction))

    def apply(self, transaction: Transaction, outcome: Outcome) -> None:
        """Enter what was granted."""
        self.machines.update(plain_machines(outcome.fresh))
        claims = transaction.claims
        for part in transaction.jobs:
            granted = [at for at in _claims_of(part) if outcome.accepted[at]]
            for at in granted:
                asked = claims.shapes[claims.shape[at]].tolist()
                self.jobs[part.job].runs[int(claims.task[at])] = int(claims.machine[at]), asked
            if granted and not self.jobs[part.job].unplaced:
                self.jobs[part.job].move(Trigger.PLACE_ALL)

    def end(self, job: int, task: int) -> bool:
        """End a task if it runs; say whether it did. Revisions are left to `adopt_revisions`."""
        about = self.jobs.get(job)
        if about is None or task not in about.runs:
            return False
        machine, asked = about.runs.pop(task)
        about.over.add(task)
        self.machines[machine].give_back(asked)
        if len(about.over) == about.spec.tasks:
            about.move(Trigger.END_ALL)
        return True

    def cancel(self, job: int) -> bool:
        """End a job; say whether it was not over before."""
        about = self.jobs[job]
        if about.state in FINAL:
            return False
        for machine, asked in about.runs.values():
            self.machines[machine].give_back(asked)
        about.over |= about.runs.keys()
        about.runs.clear()
        about.move(Trigger.CANCEL)
        return True

    def adopt_revisions(self, rows: MachineRows, freed: set[int]) -> None:
        """Take over the revisions of a store: they rose where room was freed, and only there."""
        told = dict(zip(rows.id.tolist(), rows.revision.tolist(), strict=True))
        for machine, about in self.machines.items():
            rose = told[machine] > about.revision

            assert rose == (machine in freed), f"machine {machine}: {told[machine]}, {about}"
            about.revision = told[machine]

    def rows_named(self, transaction: Transaction) -> MachineRows:
        """Return the rows of the machines that a transaction names."""
        rows = self.rows()
        wanted: Ids = np.unique(transaction.claims.machine)
        at = rows.where(wanted)
        return rows.take(at[at >= 0])

    def _standing(self, transaction: Transaction) -> Standing:
        held = [
            part.job in self.jobs and self.jobs[part.job].is_held_by(part.token)
            for part in transaction.jobs
        ]
        lacking = [
            max(0, self.jobs[part.job].spec.minimum - self.jobs[part.job].placed) if is_held else 0
            for part, is_held in zip(transaction.jobs, held, strict=True)
        ]
        unplaced = [
            part.job in self.jobs
            and int(transaction.claims.task[at]) in self.jobs[part.job].unplaced
            for part in transaction.jobs
            for at in _claims_of(part)
        ]
        return Standing(
            np.array(held, dtype=np.bool_), integers(lacking), np.array(unplaced, dtype=np.bool_)
        )


def _claims_of(part: JobPart) -> range:
    return range(part.claims.start, part.claims.stop)
