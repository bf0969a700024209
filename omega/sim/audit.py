"""An audited cell: the simulated one, with a shadow state that it is compared with.

Goal     Switch on, for any run, a check of all that must hold, at the very event that breaks it.
Promise  Changes nothing of the run. After each commit, end, loss and change of a machine those that
         it touched are compared, at intervals and at the end all of them; of offers, each that is
         given back.
Source   omega.sim.shadow_state; docs/decisions/0023-sweeps-and-audits.md.
"""

from math import inf
from typing import Final

from omega.model.arrays import Amounts, Ids, Index, integers
from omega.model.claims import Claims, Transaction
from omega.model.jobs import LeasedJob
from omega.model.machines import Machines, MachineState
from omega.model.outcomes import Outcome
from omega.model.resources import Kind
from omega.sim.allocator import Allocator, Offer, Offering
from omega.sim.cell import SimulatedCell
from omega.sim.engine import Engine
from omega.sim.ledger import SimulatedJob
from omega.sim.prefill import StartState
from omega.sim.running import Lose, Running, Tell
from omega.sim.shadow_state import ShadowState, Task
from omega.sim.world import World

EVENTS_BETWEEN: Final = 512
"""From one look at the whole cell to the next."""
OFFERS_BETWEEN: Final = 16
"""From one look at all that can be offered to the next."""


class AuditedCell(SimulatedCell):
    """A cell that is watched."""

    def __init__(
        self, machines: Machines, used: Amounts, engine: Engine, *, machines_change: bool = False
    ) -> None:
        super().__init__(machines, used, machines_change=machines_change)
        self._ids = integers(range(1, len(machines) + 1))
        self.shadow = ShadowState(self.rows(self._ids), lambda: engine.now_s)
        self.events = 0
        """That have been audited."""

    def commit(self, transaction: Transaction, job: LeasedJob) -> Outcome:
        """Commit, and enter what was granted."""
        outcome = super().commit(transaction, job)
        self.shadow.commit(transaction, job, outcome)
        self._compare(transaction.claims.machine)
        return outcome

    def release(self, machine: Ids, amounts: Amounts) -> None:
        """Release, and strike out what ends."""
        super().release(machine, amounts)
        held = zip(machine.tolist(), map(tuple, amounts.tolist()), strict=True)
        self.shadow.end(held)
        self._compare(machine)

    def lose(self, job: Ids, task: Index, machine: Ids, amounts: Amounts) -> None:
        """Free what is lost, and strike it out."""
        super().lose(job, task, machine, amounts)
        tasks = zip(job.tolist(), task.tolist(), strict=True)
        held = zip(machine.tolist(), map(tuple, amounts.tolist()), strict=True)
        self.shadow.lose(dict(zip(tasks, held, strict=True)))
        self._compare(machine)

    def set_state(self, machine: int, state: MachineState) -> None:
        """Change the state, and enter it."""
        super().set_state(machine, state)
        self.shadow.set_state(machine, state)
        self._compare(integers([machine]))

    def resize(self, machine: int, capacity: Amounts) -> None:
        """Resize, and enter what the machine has now."""
        super().resize(machine, capacity)
        self.shadow.resize(machine, capacity)
        self._compare(integers([machine]))

    def audit(self) -> None:
        """Compare all machines, and the sums that the cell keeps, with the shadow state."""
        self.shadow.expect_punctual_ends()
        self.shadow.compare(self.rows(self._ids))
        for name, told, kept in (
            ("used", self.cpu_used, self.shadow.cpu_used),
            ("locked", self.cpu_locked, self.shadow.cpu_offered),
            ("there", self.total[Kind.CPU_MILLI], self.shadow.cpu_open),
        ):
            if told != kept:
                self.shadow.fail(1, f"of all CPU {kept} is {name}; the cell says {told}")

    def _compare(self, machine: Ids) -> None:
        self.shadow.expect_punctual_ends()
        self.shadow.compare(self.rows(machine))
        self.events += 1
        if self.events % EVENTS_BETWEEN == 0:
            self.audit()


class AuditedWorld(World):
    """A world whose cell is told when tasks are to end."""

    def __init__(self, engine: Engine, cell: AuditedCell, running: Running | None = None) -> None:
        super().__init__(engine, cell, running)
        self._shadow = cell.shadow

    def start(self, state: StartState) -> None:
        """Have the start state run, and note when each of its tasks is to end."""
        tasks = list(zip(state.job.tolist(), state.task.tolist(), strict=True))
        held = list(zip(state.machine.tolist(), map(tuple, state.amounts.tolist()), strict=True))
        self._shadow.start(zip(tasks, held, strict=True))
        self._shadow.expect_ends(
            {
                ends_s: [tasks[row] for row in rows.tolist()]
                for ends_s, rows in state.by_end()
                if ends_s < inf
            }
        )
        super().start(state)

    def run(
        self,
        job: SimulatedJob,
        claims: Claims,
        outcome: Outcome,
        *,
        tell: Tell | None = None,
        lose: Lose | None = None,
    ) -> None:
        """Have what was granted run, and note when each task is to end."""
        ends_s = [
            duration_s
            for group, duration_s in zip(job.lease.spec.groups, job.durations_s, strict=True)
            for _ in range(group.tasks)
        ]
        by_end: dict[float, list[Task]] = {}
        for task, verdict in zip(claims.task.tolist(), outcome.verdicts.tolist(), strict=True):
            duration_s = ends_s[task]
            if verdict == 0 and duration_s is not None:
                by_end.setdefault(self.engine.now_s + duration_s, []).append((job.lease.id, task))
        self._shadow.expect_ends(by_end)
        super().run(job, claims, outcome, tell=tell, lose=lose)


class AuditedAllocator(Allocator):
    """An allocator whose offers are entered, and what comes back of them."""

    def __init__(self, world: World, offering: Offering) -> None:
        assert isinstance(world.cell, AuditedCell)
        super().__init__(world, offering)
        self._cell = world.cell
        self._taken_back = 0

    def take_back(self, left: Offer, cpu_milli: int) -> None:
        """Strike out an offer but for what was granted of it, and compare what can be offered."""
        self._cell.shadow.take_back(left.cell.free)
        super().take_back(left, cpu_milli)
        if self._taken_back % OFFERS_BETWEEN == 0:
            self._cell.shadow.compare_free(self._free.cell.free)
        self._taken_back += 1
        self._cell.events += 1

    def _offer(self) -> None:
        before = self._free
        super()._offer()
        if self._free is not before:  # it was handed out as it was
            self._cell.shadow.offer(before.cell.free)
