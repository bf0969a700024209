"""The cell in virtual time: machine rows and the judge, without leases, queue or records.

Goal     Commit as a live store does, at the speed of arrays.
Promise  Judges by `omega.cell.judge`, the rule that Postgres is tested against; claims that all fit
         together are granted without it. Nothing is copied for an attempt but what changed.
Source   Omega (EuroSys 2013), section 3.4; docs/decisions/0003-the-commit-rule.md.
"""

from typing import Final

import numpy as np

from omega.cell.commit_context import CommitContext
from omega.cell.judge import judge
from omega.model.arrays import Amounts, Ids, Index, ascends, integers
from omega.model.claims import ConflictRule, Transaction
from omega.model.jobs import LeasedJob
from omega.model.machines import MachineRows, Machines, MachineState, Snapshot
from omega.model.outcomes import NOBODY, Outcome
from omega.model.resources import Kind
from omega.sim.rows import CellRows, Look
from omega.sim.running import sum_of
from omega.store.memory.machines import MachineTable

CPU: Final = int(Kind.CPU_MILLI)
NO_ROWS: Final = MachineRows.none()


def compiler_is_installed() -> bool:
    """Return whether cells can be compiled: whether the extra `fast` can be loaded."""
    try:
        import numba  # noqa: F401, PLC0415 - an optional extra
    except ImportError:
        return False
    return True


class SimulatedCell:
    """Some machines, and what is used of them."""

    def __init__(
        self,
        machines: Machines,
        used: Amounts,
        *,
        machines_change: bool = False,
        compiled: bool = False,
    ) -> None:
        """`machines_change` if `set_state` and `resize` will be called; then nothing is compiled.

        Raises ModuleNotFoundError if compiled loops are wanted and the extra `fast` is not there.
        """
        self._made_of = machines
        self._compiled = compiled
        table = MachineTable()
        table.add(machines, 0)
        table.used += used
        self.view = _rows(table.snapshot(0), machines_change=machines_change, compiled=compiled)
        """All machines as they are now; `view.as_of` shows them as they were."""
        self.total: Amounts = table.capacity.sum(axis=0)
        """Of the machines that are open."""
        self.cpu_used = int(used[:, CPU].sum())
        """By tasks."""
        self.cpu_locked = 0
        """By offers, of what is free."""

    def rows(self, machine: Ids) -> MachineRows:
        """Return the rows of these machines as they are now, in order of id."""
        return self.view.at(machine)

    def commit(self, transaction: Transaction, job: LeasedJob) -> Outcome:
        """Judge the claims of one job against the cell as it is now; apply those that stand.

        The outcome brings no fresh rows: the view has them.
        """
        claims = transaction.claims
        if self._fit_together(transaction, job):
            self.cpu_used += len(claims) * int(claims.shapes[0, CPU])
            nothing_refused = np.zeros(len(claims), np.int8)
            return Outcome(nothing_refused, claims.machine, NOBODY, NOBODY, NO_ROWS)
        context = CommitContext(
            lease_held=np.ones(1, dtype=np.bool_),
            minimum=integers([job.spec.minimum]),
            placed=integers([job.placed]),
            precedence=integers([job.spec.precedence]),
            unplaced=np.ones(len(claims), dtype=np.bool_),
        )
        outcome = judge(self.view.at(claims.machine), transaction, context)
        if np.count_nonzero(outcome.accepted):
            self.view.write(outcome.fresh)
            self.cpu_used += int(claims.demand[outcome.accepted, CPU].sum())
        return outcome

    def _fit_together(self, transaction: Transaction, job: LeasedJob) -> bool:
        """Grant claims of one shape if all of them stand, whatever their order.

        Then `judge` would grant all of them, too. Otherwise nothing is changed.
        """
        claims, (part,) = transaction.claims, transaction.jobs
        if (
            len(claims.shapes) != 1
            or len(claims.alternates)
            or len(claims.evictions)
            or len(claims) < max(part.minimum, job.lacking)
            or not ascends(claims.task)
        ):
            return False
        seen = claims.seen if transaction.rule is ConflictRule.SEQUENCE else None
        return self.view.claim(claims.machine, seen, claims.shapes[0])

    def draw_and_claim(
        self, job: LeasedJob, seed: bytes, look: Look | None, *, by_sequence: bool
    ) -> Ids | None:
        """Place a job of one plain group whole, drawing on the cell as it was at a look.

        Returns the machine of each task; None if not all fit: then nothing changes.
        """
        machine = self.view.draw_and_claim(job, seed, look, by_sequence=by_sequence)
        if machine is not None:
            self.cpu_used += len(machine) * job.spec.groups[0].cpu_milli
        return machine

    def claim_plain(self, machine: Ids, demand: Amounts) -> None:
        """Grant tasks of one shape, all of which fit; machines ascend."""
        self.view.claim_plain(machine, demand)
        self.cpu_used += len(machine) * int(demand[CPU])

    def release(self, machine: Ids, amounts: Amounts) -> None:
        """Free what tasks that end have used: an entry each, or one row for all of them."""
        if amounts.ndim == 1:
            self.view.release_plain(machine, amounts)
        else:
            self.view.release(machine, amounts)
        self.cpu_used -= int(sum_of(machine, amounts)[CPU])

    def lose(self, job: Ids, task: Index, machine: Ids, amounts: Amounts) -> None:
        """Free what tasks have used that are lost; whose they are is for the auditor."""
        del job, task
        SimulatedCell.release(self, machine, amounts)

    def set_state(self, machine: int, state: MachineState) -> None:
        """Open a machine, or let it be down."""
        if self.view.set_state(machine, state):
            capacity = self.view.capacity[machine - 1]
            is_open = state is MachineState.OPEN
            self.total = self.total + (capacity if is_open else -capacity)

    def resize(self, machine: int, capacity: Amounts) -> None:
        """Change what a machine has; what is used above it goes on until it ends."""
        if self.view.state[machine - 1] == MachineState.OPEN:
            self.total = self.total + capacity - self.view.capacity[machine - 1]
        self.view.resize(machine, capacity)

    @property
    def free(self) -> Amounts:
        """What is not used, as a new array: (machines, kinds)."""
        return self.view.free.copy()

    def copy(self) -> "SimulatedCell":
        """Return a cell of the same machines on which the same is free."""
        used = self.view.capacity - self.view.free
        return SimulatedCell(self._made_of, used, compiled=self._compiled)

    def twin(self) -> "SimulatedCell":
        """Return a cell of the same machines on which nothing is free."""
        return SimulatedCell(self._made_of, self.view.capacity.copy(), compiled=self._compiled)

    def hand_over(self, machine: Ids, other: "SimulatedCell") -> None:
        """Have what is free of some machines free on another cell of them, and not here."""
        cpu_milli = self.view.hand_over(machine, other.view)
        self.cpu_used += cpu_milli
        other.cpu_used -= cpu_milli

    @property
    def cpu_there(self) -> int:
        """CPU of the machines that are open."""
        return int(self.total[CPU])

    @property
    def free_cpu_milli(self) -> int:
        """CPU that nobody uses and nobody is offered."""
        return self.cpu_there - self.cpu_used - self.cpu_locked


def _rows(snapshot: Snapshot, *, machines_change: bool, compiled: bool) -> CellRows:
    if compiled and not machines_change:
        from omega.sim.compiled_rows import CompiledRows  # noqa: PLC0415 - needs an optional extra

        return CompiledRows(snapshot)
    return CellRows(snapshot, machines_change=machines_change)
