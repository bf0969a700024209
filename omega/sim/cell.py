"""The cell in virtual time: machine rows and the judge, without leases, queue or records.

Goal     Commit as a live store does, at the speed of arrays.
Promise  Judges by `omega.cell.judge`, the rule that Postgres is tested against. Views are patched
         by rows as live ones are; nothing is copied for an attempt but what changed.
Source   Omega (EuroSys 2013), section 3.4; docs/decisions/0003-the-commit-rule.md.
"""

from collections.abc import Sequence
from math import inf
from typing import Final

import numpy as np

from omega.cell.judge import judge
from omega.cell.standing import Standing
from omega.cell.view import View
from omega.model.arrays import Amounts, Counts, Ids, Index, integers
from omega.model.claims import Transaction
from omega.model.jobs import LeasedJob
from omega.model.machines import MachineRows, Machines, MachineState
from omega.model.outcomes import Outcome
from omega.model.resources import Kind
from omega.store.memory_machines import MachineTable

CPU: Final = int(Kind.CPU_MILLI)

ByKind = Sequence[Counts]
"""Amounts of all machines, kind by kind: what is contiguous is quickly added and compared."""


class SimulatedCell:
    """Some machines, and what is used of them."""

    def __init__(self, machines: Machines, used: Amounts) -> None:
        self._made_of = machines
        self._machines = MachineTable()
        self._machines.add(machines, 0)
        self._machines.used += used
        self._number = 0
        self.total: Amounts = self._machines.capacity.sum(axis=0)
        """Of the machines that are open."""
        self.cpu_used = int(used[:, CPU].sum())
        """By tasks."""
        self.cpu_locked = 0
        """By offers, of what is free."""

    def rows(self, machine: Ids) -> MachineRows:
        """Return the rows of these machines as they are now, in order of id."""
        return self._machines.rows(self._machines.named(machine))

    def view(self) -> View:
        """Return a new view of all machines."""
        return View(self._machines.snapshot(self._number))

    def catch_up(self, view: View) -> None:
        """Let a view see what has changed since it last did."""
        if view.mark < self._number:
            changes = self._machines.changes_since(view.mark, self._number, known=view.revision)
            view.catch_up(changes)

    def commit(self, transaction: Transaction, job: LeasedJob) -> Outcome:
        """Judge the claims of one job against the cell as it is now; apply those that stand."""
        claims = transaction.claims
        standing = Standing(
            lease_held=np.ones(1, dtype=np.bool_),
            minimum=integers([job.spec.minimum]),
            placed=integers([job.placed]),
            precedence=integers([job.spec.precedence]),
            unplaced=np.ones(len(claims), dtype=np.bool_),
        )
        rows = self._machines.rows(self._machines.named(claims.machine))
        outcome = judge(rows, transaction, standing)
        if np.count_nonzero(outcome.accepted):
            self._number += 1
            self._machines.write(outcome.fresh, self._number)
            self.cpu_used += int(claims.demand[outcome.accepted, CPU].sum())
        return outcome

    def release(self, machine: Ids, amounts: Amounts) -> None:
        """Free what tasks that end have used."""
        self._number += 1
        self._machines.free(machine, amounts, self._number)
        self.cpu_used -= int(amounts[:, CPU].sum())

    def lose(self, job: Ids, task: Index, machine: Ids, amounts: Amounts) -> None:
        """Free what tasks have used that are lost; whose they are is for the auditor."""
        del job, task
        SimulatedCell.release(self, machine, amounts)

    def set_state(self, machine: int, state: MachineState) -> None:
        """Open a machine, or let it be down."""
        self._number += 1
        if self._machines.set_state(integers([machine]), state, self._number):
            capacity = self._machines.capacity[machine - 1]
            is_open = state is MachineState.OPEN
            self.total = self.total + (capacity if is_open else -capacity)

    def resize(self, machine: int, capacity: Amounts) -> None:
        """Change what a machine has; what is used above it goes on until it ends."""
        if self._machines.state[machine - 1] == MachineState.OPEN:
            self.total = self.total + capacity - self._machines.capacity[machine - 1]
        self._number += 1
        self._machines.resize(machine, capacity, inf, self._number)

    @property
    def free(self) -> ByKind:
        """What is not used, as new arrays: of the kinds, the first, that some machine has."""
        kinds = int(self.total.nonzero()[0].max(initial=CPU)) + 1
        machines = self._machines
        return [machines.capacity[:, kind] - machines.used[:, kind] for kind in range(kinds)]

    def twin(self) -> "SimulatedCell":
        """Return a cell of the same machines on which nothing is free."""
        return SimulatedCell(self._made_of, self._machines.capacity.copy())

    def have_free(self, free: ByKind, at: Index) -> None:
        """Have just so much free, which is another amount than before on these machines alone."""
        machines = self._machines
        for kind, amount in enumerate(free):
            machines.used[at, kind] = machines.capacity[at, kind] - amount[at]
        self.cpu_used = int(self.total[CPU] - free[CPU].sum())
        self._number += 1
        machines.revision[at] += 1
        machines.changed(at, self._number)

    @property
    def free_cpu_milli(self) -> int:
        """CPU that nobody uses and nobody is offered."""
        return int(self.total[CPU]) - self.cpu_used - self.cpu_locked
