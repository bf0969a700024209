"""The cell in virtual time: machine rows and the judge, without leases, queue or records.

Goal     Commit as a live store does, at the speed of arrays.
Promise  Judges by `omega.cell.judge`, the rule that Postgres is tested against. Views are patched
         by rows as live ones are; nothing is copied for an attempt but what changed.
Source   Omega (EuroSys 2013), section 3.4; docs/decisions/0003-the-commit-rule.md.
"""

import numpy as np

from omega.cell.judge import judge
from omega.cell.standing import Standing
from omega.cell.view import View
from omega.model.arrays import Amounts, Ids, integers
from omega.model.claims import Transaction
from omega.model.jobs import LeasedJob
from omega.model.outcomes import Outcome
from omega.model.resources import Kind
from omega.store.memory_machines import MachineTable
from omega.workload.arrivals import Workload


class SimulatedCell:
    """All machines, and what is used of them."""

    def __init__(self, workload: Workload) -> None:
        self._machines = MachineTable()
        self._machines.add(workload.machines, 0)
        self._machines.used += workload.prefill.used(len(workload.machines))
        self._number = 0
        self.cpu_capacity = int(self._machines.capacity[:, Kind.CPU_MILLI].sum())
        self.cpu_used = int(self._machines.used[:, Kind.CPU_MILLI].sum())

    def __len__(self) -> int:
        return len(self._machines)

    def view(self) -> View:
        """Return a new view of the whole cell."""
        return View(self._machines.snapshot(self._number))

    def catch_up(self, view: View) -> None:
        """Let a view see what has changed since it last did."""
        if view.mark < self._number:
            view.catch_up(self._machines.changes_since(view.mark, self._number))

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
        if outcome.accepted.any():
            self._number += 1
            self._machines.write(outcome.fresh, self._number)
            self.cpu_used += int(claims.demand[outcome.accepted, Kind.CPU_MILLI].sum())
        return outcome

    def release(self, machine: Ids, amounts: Amounts) -> None:
        """Free what tasks that end have used."""
        self._number += 1
        self._machines.free(machine, amounts, self._number)
        self.cpu_used -= int(amounts[:, Kind.CPU_MILLI].sum())
