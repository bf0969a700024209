"""Machine leases in a memory store: which agent may run tasks on a machine, and until when.

Goal     Do what `machine_leases.sql` does, on plain records.
Promise  A machine that no agent has ever held is never declared down, and costs nothing.
Source   docs/decisions/0045-machine-leases.md.
"""

from dataclasses import dataclass
from uuid import UUID

from omega.errors import BadInput
from omega.limits import LIMITS
from omega.model.arrays import Ids, integers
from omega.model.machines import MachineState
from omega.store.memory.agents import MemoryAgents
from omega.store.memory.machines import MachineTable
from omega.store.status import Violation


@dataclass
class MachineLease:
    """The right of one agent to run tasks on a machine."""

    holder: UUID
    expires_s: float
    state_before: MachineState | None = None
    """The machine's state before its lease declared it down; None while it has not."""


class MemoryMachineLeases(MemoryAgents):
    """A cell whose machines may be held by agents."""

    _machine_leases: dict[int, MachineLease]
    """By machine id."""

    def set_state(self, machine: Ids, state: MachineState) -> int:
        """Open, drain, take down or remove machines; return how many changed."""
        changed = super().set_state(machine, state)
        if self._machine_leases:
            for number in machine.tolist():
                if number in self._machine_leases:
                    # What the owner says replaces what the machine's lease has done to it.
                    self._machine_leases[number].state_before = None
        return changed

    def hold_machine(self, machine: int, holder: UUID, *, lease_ms: int) -> bool:
        """Prolong this agent's lease of an own machine, or take it; False if another has it."""
        if not 0 <= lease_ms <= LIMITS.lease_ms_max:
            raise BadInput(
                f"bad length of a lease: {lease_ms} ms, of at most {LIMITS.lease_ms_max}"
            )
        self.machine_revision(machine)  # which refuses a machine that never existed
        now_s = self._clock.now()
        expires_s = now_s + lease_ms / 1_000
        lease = self._machine_leases.setdefault(machine, MachineLease(holder, expires_s))
        if lease.holder != holder and lease.expires_s > now_s:
            return False
        lease.holder, lease.expires_s = holder, expires_s
        if lease.state_before is not None:
            super().set_state(integers([machine]), lease.state_before)
            lease.state_before = None
        return True

    def leave_machine(self, machine: int, holder: UUID) -> int:
        """End this agent's lease, take the machine down, and evict its tasks; return how many."""
        self.machine_revision(machine)
        lease = self._machine_leases.get(machine)
        if lease is None or lease.holder != holder:
            return 0
        lease.expires_s = min(lease.expires_s, self._clock.now())
        self._declare_down([machine])
        return self.lose_tasks(integers([machine]))

    def free_machine(self, machine: int, holder: UUID) -> bool:
        """Remove the lease of an own machine; False if another agent has it."""
        self.machine_revision(machine)
        lease = self._machine_leases.get(machine)
        if lease is None:
            return True
        if lease.holder != holder and lease.expires_s > self._clock.now():
            return False
        del self._machine_leases[machine]
        if lease.state_before is not None:
            super().set_state(integers([machine]), lease.state_before)
        return True

    def expire_machines(self) -> list[int]:
        """Declare down the machines whose lease has run out; return them, ascending."""
        now_s = self._clock.now()
        return self._declare_down(
            sorted(
                number
                for number, lease in self._machine_leases.items()
                if lease.expires_s <= now_s and lease.state_before is None
            )
        )

    def _declare_down(self, machines: list[int]) -> list[int]:
        """Take down those of these machines that are open or draining; return them."""
        up = []
        for number in machines:
            state = MachineState(self._machines.state[number - 1])
            if state in (MachineState.OPEN, MachineState.DRAINING):
                self._machine_leases[number].state_before = state
                up.append(number)
        if up:
            super().set_state(integers(up), MachineState.DOWN)
        return up


def broken_leases(machines: MachineTable, leases: dict[int, MachineLease]) -> list[Violation]:
    """Return the leases that have declared a machine down that is not down."""
    return [
        Violation(
            "a machine that its lease declared down is down",
            f"machine {machines.names[number - 1]}",
            state.name,
        )
        for number, lease in sorted(leases.items())
        if lease.state_before is not None
        and (state := MachineState(machines.state[number - 1])) is not MachineState.DOWN
    ]
