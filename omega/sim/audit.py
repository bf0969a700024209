"""An audited cell: a simulated cell that is compared with a shadow state.

Goal     Make it possible to check all invariants in any run, at the event that breaks one.
Promise  The audit does not change the run. After each commit, end, loss and change of a machine the
         machines concerned are compared. All machines are compared at intervals and at the end.
         Each offer that is given back is compared with what was offered.
Source   omega.sim.shadow_state; docs/decisions/0023-sweeps-and-audits.md.
"""

from math import inf
from typing import Final

from omega.model.arrays import Amounts, Ids, Index, integers
from omega.model.claims import Claims, Transaction
from omega.model.jobs import LeasedJob
from omega.model.machines import Machines, MachineState
from omega.model.outcomes import ACCEPTED, Outcome
from omega.model.resources import Kind
from omega.sim.allocator import Allocator, Offer, OfferPolicy
from omega.sim.cell import SimulatedCell
from omega.sim.engine import Engine
from omega.sim.ledger import SimulatedJob
from omega.sim.prefill import StartState
from omega.sim.running import Lose, Running, Tell
from omega.sim.shadow_state import ShadowState, Task
from omega.sim.world import World

EVENTS_BETWEEN: Final = 512
"""How many events lie between two comparisons of the whole cell."""
OFFERS_BETWEEN: Final = 16
"""How many offers are taken back between two comparisons of everything that can be offered."""


class AuditedCell(SimulatedCell):
    """A simulated cell with a shadow state."""

    def __init__(
        self, machines: Machines, used: Amounts, engine: Engine, *, machines_change: bool = False
    ) -> None:
        super().__init__(machines, used, machines_change=machines_change)
        self._ids = integers(range(1, len(machines) + 1))
        self.shadow = ShadowState(self.rows(self._ids), lambda: engine.now_s)
        self.events = 0
        """How many events have been audited."""

    def commit(self, transaction: Transaction, job: LeasedJob) -> Outcome:
        """Commit, and enter the granted claims in the shadow state."""
        outcome = super().commit(transaction, job)
        self.shadow.commit(transaction, job, outcome)
        self._compare(transaction.claims.machines)
        return outcome

    def release(self, machine: Ids, amounts: Amounts) -> None:
        """Release, and remove the ended tasks from the shadow state."""
        super().release(machine, amounts)
        held = zip(machine.tolist(), map(tuple, amounts.tolist()), strict=True)
        self.shadow.end(held)
        self._compare(machine)

    def lose(self, job: Ids, task: Index, machine: Ids, amounts: Amounts) -> None:
        """Free what lost tasks held, and remove them from the shadow state."""
        super().lose(job, task, machine, amounts)
        tasks = zip(job.tolist(), task.tolist(), strict=True)
        held = zip(machine.tolist(), map(tuple, amounts.tolist()), strict=True)
        self.shadow.lose(dict(zip(tasks, held, strict=True)))
        self._compare(machine)

    def set_state(self, machine: int, state: MachineState) -> None:
        """Change the state of a machine, in the shadow state too."""
        super().set_state(machine, state)
        self.shadow.set_state(machine, state)
        self._compare(integers([machine]))

    def resize(self, machine: int, capacity: Amounts) -> None:
        """Change the capacity of a machine, in the shadow state too."""
        super().resize(machine, capacity)
        self.shadow.resize(machine, capacity)
        self._compare(integers([machine]))

    def audit(self) -> None:
        """Compare all machines and the cell's sums with the shadow state."""
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
    """A world that enters in the shadow state when each task is due to end."""

    def __init__(self, engine: Engine, cell: AuditedCell, running: Running | None = None) -> None:
        super().__init__(engine, cell, running)
        self._shadow = cell.shadow

    def start(self, state: StartState) -> None:
        """Start the start state's tasks, and enter when each is due to end."""
        tasks = list(zip(state.job.tolist(), state.task.tolist(), strict=True))
        held = list(zip(state.machine.tolist(), map(tuple, state.amounts.tolist()), strict=True))
        self._shadow.start(zip(tasks, held, strict=True))
        self._shadow.expect_ends(
            (ends_s, [tasks[row] for row in rows.tolist()])
            for ends_s, rows in state.by_end()
            if ends_s < inf
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
        """Start the granted tasks, and enter when each is due to end."""
        groups = job.lease.spec.groups
        group_of = [number for number, group in enumerate(groups) for _ in range(group.tasks)]
        by_group: dict[int, list[Task]] = {}
        for task, verdict in zip(claims.task.tolist(), outcome.verdicts.tolist(), strict=True):
            if verdict == ACCEPTED:
                by_group.setdefault(group_of[task], []).append((job.lease.id, task))
        self._shadow.expect_ends(
            (self.engine.now_s + duration_s, by_group[group])
            for group, duration_s in enumerate(job.durations_s)
            if duration_s is not None and group in by_group
        )
        super().run(job, claims, outcome, tell=tell, lose=lose)


class AuditedAllocator(Allocator):
    """An allocator that enters its offers, and what is given back of them, in the shadow state."""

    def __init__(self, world: World, offering: OfferPolicy) -> None:
        assert isinstance(world.cell, AuditedCell)
        super().__init__(world, offering)
        self._cell = world.cell
        self._taken_back = 0

    def take_back(self, left: Offer, cpu_milli: int) -> None:
        """Enter what is given back of an offer; compare what is free at every 16th offer."""
        self._cell.shadow.take_back(left.cell.free)
        super().take_back(left, cpu_milli)
        if self._taken_back % OFFERS_BETWEEN == 0:
            self._cell.shadow.compare_free(self._free.cell.free)
        self._taken_back += 1
        self._cell.events += 1

    def _offer(self) -> None:
        before = self._free
        super()._offer()
        if self._free is not before:  # an offer was made: it is the cell that was free before
            self._cell.shadow.offer(before.cell.free)
