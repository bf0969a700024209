"""The cell in virtual time: machine rows and the judge, without leases, queue or records.

Goal     Commit by the same rule as a live store, at the speed of arrays.
Promise  Claims are judged by `omega.cell.judge`, which property tests compare with the same slow
         twin as Postgres. Claims that all fit together are granted without the judge. All
         schedulers share one view, the cell as it is now, in place of a copy for each. While one of
         them places, the view shows the cell as that one last saw it, by a log of changes
         (`omega/sim/rows.py`).
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
from omega.model.outcomes import NO_IDS, Outcome
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
    """Machines, and the amounts used on them."""

    def __init__(
        self,
        machines: Machines,
        used: Amounts,
        *,
        machines_change: bool = False,
        compiled: bool = False,
    ) -> None:
        """`used` is (machines, kinds). `set_state` and `resize` need `machines_change`.

        With `machines_change` nothing is compiled. Raises ModuleNotFoundError if `compiled` is
        asked for and the extra `fast` is not installed.
        """
        self._made_of = machines
        self._compiled = compiled
        table = MachineTable()
        table.add(machines, 0)
        table.used += used
        self.view = _rows(table.snapshot(0), machines_change=machines_change, compiled=compiled)
        """All machines as they are now; `view.as_of` shows an earlier moment."""
        self.total: Amounts = table.capacity.sum(axis=0)
        """Capacity of the open machines: (kinds,)."""
        self.cpu_used = int(used[:, CPU].sum())
        """CPU that tasks use."""
        self.cpu_locked = 0
        """Free CPU that is locked by offers."""

    def rows(self, machine: Ids) -> MachineRows:
        """Return the rows of these machines as they are now, in order of id."""
        return self.view.at(machine)

    def commit(self, transaction: Transaction, job: LeasedJob) -> Outcome:
        """Judge the claims of one job against the cell as it is now; apply the accepted ones.

        The outcome may lack fresh rows. Nobody needs them, since the view is the cell itself.
        """
        claims = transaction.claims
        if self._fit_together(transaction, job):
            self.cpu_used += len(claims) * int(claims.shapes[0, CPU])
            nothing_refused = np.zeros(len(claims), np.int8)
            return Outcome(nothing_refused, claims.machine, NO_IDS, NO_IDS, NO_ROWS)
        context = CommitContext(
            lease_held=np.ones(1, dtype=np.bool_),
            minimum=integers([job.spec.minimum]),
            placed=integers([job.placed]),
            precedence=integers([job.spec.precedence]),
            unplaced=np.ones(len(claims), dtype=np.bool_),
        )
        outcome = judge(self.view.at(claims.machines), transaction, context)
        if np.count_nonzero(outcome.accepted):
            self.view.write(outcome.fresh)
            landed = claims.demand_on(outcome.machine)
            self.cpu_used += int(landed[outcome.accepted, CPU].sum())
        return outcome

    def _fit_together(self, transaction: Transaction, job: LeasedJob) -> bool:
        """Grant all claims if they have one shape and all of them fit; return whether it did.

        If not, nothing changes. `judge` would grant claims that all fit, too, in whatever order.
        """
        claims, (part,) = transaction.claims, transaction.jobs
        if (
            len(claims.shapes) != 1
            or len(claims.alternates)
            or len(claims.evictions)
            or len(claims) < max(part.grants_min, job.lacking)
            or not ascends(claims.task)
        ):
            return False
        seen = claims.seen if transaction.rule is ConflictRule.SEQUENCE else None
        return self.view.claim(claims.machine, seen, claims.shapes[0])

    def draw_and_claim(
        self, job: LeasedJob, seed: bytes, look: Look | None, *, by_sequence: bool
    ) -> Ids | None:
        """Place all tasks of a job on machines drawn at random, and claim them.

        The job has one group, which any machine with enough CPU, memory and disk may take
        (`JobSpec.is_plain`).
        Machines are drawn from the cell as it was at `look`, or as it is now if that is None.
        Returns the machine id of each task: (tasks,). Returns None, and changes nothing, if not
        all of them are drawn or their claims do not all fit.
        """
        machine = self.view.draw_and_claim(job, seed, look, by_sequence=by_sequence)
        if machine is not None:
            self.cpu_used += len(machine) * job.spec.groups[0].cpu_milli
        return machine

    def claim_one_shape(self, machine: Ids, demand: Amounts) -> None:
        """Grant tasks of one shape, all of which fit; the machine ids ascend, one for each task."""
        self.view.claim_one_shape(machine, demand)
        self.cpu_used += len(machine) * int(demand[CPU])

    def release(self, machine: Ids, amounts: Amounts) -> None:
        """Free what ended tasks used: (tasks, kinds), or (kinds,) if all tasks have one shape."""
        if amounts.ndim == 1:
            self.view.release_one_shape(machine, amounts)
        else:
            self.view.release(machine, amounts)
        self.cpu_used -= int(sum_of(machine, amounts)[CPU])

    def lose(self, job: Ids, task: Index, machine: Ids, amounts: Amounts) -> None:
        """Free what lost tasks used. `job` and `task` are for a subclass."""
        del job, task
        SimulatedCell.release(self, machine, amounts)  # a subclass's own may do more

    def set_state(self, machine: int, state: MachineState) -> None:
        """Set the state of a machine to open or down."""
        if self.view.set_state(machine, state):
            capacity = self.view.capacity[machine - 1]
            is_open = state is MachineState.OPEN
            self.total = self.total + (capacity if is_open else -capacity)

    def resize(self, machine: int, capacity: Amounts) -> None:
        """Change the capacity of a machine; tasks that use more than it go on until they end."""
        if self.view.state[machine - 1] == MachineState.OPEN:
            self.total = self.total + capacity - self.view.capacity[machine - 1]
        self.view.resize(machine, capacity)

    @property
    def free(self) -> Amounts:
        """What is not used, as a new array: (machines, kinds)."""
        return self.view.free.copy()

    def copy(self) -> "SimulatedCell":
        """Return another cell of the same machines with the same free amounts."""
        used = self.view.capacity - self.view.free
        return SimulatedCell(self._made_of, used, compiled=self._compiled)

    def filled_copy(self) -> "SimulatedCell":
        """Return another cell of the same machines, on which nothing is free."""
        return SimulatedCell(self._made_of, self.view.capacity.copy(), compiled=self._compiled)

    def move_free(self, machine: Ids, other: "SimulatedCell") -> None:
        """Move what is free of some machines to the same machines of another cell."""
        cpu_milli = self.view.move_free(machine, other.view)
        self.cpu_used += cpu_milli
        other.cpu_used -= cpu_milli

    @property
    def cpu_there(self) -> int:
        """CPU capacity of the open machines."""
        return int(self.total[CPU])

    @property
    def free_cpu_milli(self) -> int:
        """CPU that is neither used nor offered."""
        return self.cpu_there - self.cpu_used - self.cpu_locked


def _rows(snapshot: Snapshot, *, machines_change: bool, compiled: bool) -> CellRows:
    if compiled and not machines_change:
        from omega.sim.compiled_rows import CompiledRows  # noqa: PLC0415 - needs an optional extra

        return CompiledRows(snapshot)
    return CellRows(snapshot, machines_change=machines_change)
