"""Rules of random histories: what the owner of a cell changes while others work.

Goal     Change machines, quotas and the gap of precedence between any two calls of others.
Promise  After every change the store equals the model.
Source   Hypothesis's stateful testing; omega/testing/plain_cell.py.
"""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from omega.errors import BadInput
from omega.model.arrays import integers
from omega.model.machines import MachineState
from omega.model.quotas import Budget, Quota, QuotaScope, QuotaUse
from omega.model.resources import machine_capacity
from omega.store.protocols import Store
from omega.testing.builders import a_cell
from omega.testing.plain_cell import PlainCell
from omega.testing.steps import LONG_MS, OVER_AT_ONCE_MS
from omega.testing.twin import plain_machines

SUBJECTS = st.sampled_from(
    [(QuotaScope.TENANT, "ann"), (QuotaScope.TENANT, "bob"), (QuotaScope.SCHEDULER, "batch")]
)
"""The tenants and kinds whose quotas are drawn."""

MACHINES_MAX = 4


class ChangingCell(RuleBasedStateMachine):
    """A store and its model, and the owner who changes both."""

    def new_store(self) -> Store:
        """Return an empty store. The subclass provides it."""
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self.store = self.new_store()
        self.model = PlainCell()

    def teardown(self) -> None:
        """Close the store."""
        self.store.close()

    @rule(machines=st.integers(1, 2))
    @precondition(lambda self: self._machines_here() < MACHINES_MAX)
    def machines_join(self, machines: int) -> None:
        """Machines of four cores and one GPU join."""
        cell = a_cell(machines, cpu_milli=4_000, gpus=1, first=len(self.model.machines) + 1)
        ids = self.store.add_machines(cell)
        rows = self.store.snapshot().rows
        self.model.machines.update(plain_machines(rows.take(rows.where(ids))))

    @rule(data=st.data(), state=st.sampled_from([*[MachineState.OPEN] * 3, *MachineState]))
    def a_machine_changes_its_state(self, data: st.DataObject, state: MachineState) -> None:
        """A machine opens, drains, goes down or leaves for good."""
        machine = self._some_machine(data)
        assert self.model.set_state(machine, state) == self.store.set_state(
            integers([machine]), state
        )

    @rule(data=st.data())
    def tasks_are_lost(self, data: st.DataObject) -> None:
        """Tasks on machines that are down or gone go back to the queue; others are not affected."""
        machines = [self._some_machine(data), self._some_machine(data)]
        if data.draw(st.booleans()):
            self.a_machine_changes_its_state(data, MachineState.DOWN)
            machines = sorted(self.model.machines)
        places = self.model.places()
        assert self.model.lose_tasks(machines) == self.store.lose_tasks(integers(machines))
        self._adopt_revisions(places)

    @rule(
        data=st.data(),
        cores=st.integers(0, 5),
        notice_ms=st.sampled_from([LONG_MS, OVER_AT_ONCE_MS]),
    )
    def a_machine_is_resized(self, data: st.DataObject, cores: int, notice_ms: int) -> None:
        """A machine gets more or fewer cores, and its GPU or none; one that is gone is refused."""
        machine = self._some_machine(data)
        capacity = machine_capacity(cores * 1_000, 16_384, 100_000, data.draw(st.integers(0, 1)))
        if self.model.machines[machine].state == MachineState.GONE:
            with pytest.raises(BadInput):
                self.store.resize(machine, capacity, notice_ms=notice_ms)
        else:
            self.store.resize(machine, capacity, notice_ms=notice_ms)
            is_over = notice_ms == OVER_AT_ONCE_MS
            self.model.resize(machine, capacity.tolist(), is_over=is_over)
        if data.draw(st.booleans()):
            self.notices_are_enforced()

    @rule()
    @precondition(lambda self: self.model.notices)
    def notices_are_enforced(self) -> None:
        """Tasks above capacity go back to the queue on machines whose notice has ended."""
        places = self.model.places()
        assert self.model.enforce_notices() == self.store.enforce_notices()
        self._adopt_revisions(places)

    @rule(gap=st.sampled_from([1, 10, 10, 11]))
    def the_owner_sets_the_gap(self, gap: int) -> None:
        """Evictions are judged by another gap of precedence."""
        self.store.set_precedence_gap(gap)
        assert gap == self.store.precedence_gap()
        self.model.precedence_gap = gap

    @rule(subject=SUBJECTS, budget=st.sampled_from(Budget), more=st.integers(-2, 6))
    def an_operator_sets_a_quota(
        self, subject: tuple[QuotaScope, str], budget: Budget, more: int
    ) -> None:
        """A tenant or a kind of scheduler may hold a little more than it does, or less."""
        scale = {Budget.CPU_MILLI: 1_000, Budget.GPU_SLICES: 500, Budget.JOBS: 1}.get(budget, 0)
        limit = self.model.used(Quota(*subject, {}))[budget] + more * scale
        quota = Quota(*subject, {budget: max(0, limit)})
        self.store.set_quota(quota)
        self.model.quotas[subject] = quota

    @rule(subject=SUBJECTS)
    @precondition(lambda self: self.model.quotas)
    def an_operator_lifts_a_quota(self, subject: tuple[QuotaScope, str]) -> None:
        """A quota is removed; if there is none, the store returns False."""
        there = self.model.quotas.pop(subject, None) is not None
        assert there == self.store.remove_quota(*subject)

    @invariant()
    def quotas_are_the_models(self) -> None:
        """The balance of each quota is its limit less the use of its jobs."""
        told = {(use.quota.scope, use.quota.name): use for use in self.store.quotas()}
        assert told.keys() == self.model.quotas.keys()
        for subject, quota in self.model.quotas.items():
            used = self.model.used(quota)
            left = {budget: limit - used[budget] for budget, limit in quota.limits.items()}
            assert told[subject] == QuotaUse(quota, left)

    def _some_machine(self, data: st.DataObject) -> int:
        """Draw a machine; machines with tasks are more likely."""
        busy = [machine for _, _, machine in self.model.places()]
        return data.draw(st.sampled_from([*busy, *sorted(self.model.machines)]))

    def _machines_here(self) -> int:
        machines = self.model.machines.values()
        return sum(machine.state != MachineState.GONE for machine in machines)

    def _adopt_revisions(self, before: list[tuple[int, int, int]]) -> None:
        freed = {machine for _, _, machine in set(before) - set(self.model.places())}
        self.model.adopt_revisions(self.store.snapshot().rows, freed)
