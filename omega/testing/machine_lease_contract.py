"""What every store must do for machine leases: which agent may run tasks on a machine.

Goal     Two agents never hold one machine at a time, and a silent agent's machine is taken down.
Promise  An agent that comes back finds its machine as the owner left it.
Source   docs/decisions/0045-machine-leases.md.
"""

from uuid import UUID

import pytest

from omega.errors import BadInput
from omega.limits import LIMITS
from omega.model.arrays import integers
from omega.model.machines import MachineState
from omega.store.protocols import Store
from omega.testing.agent_contract import one_machine
from omega.testing.builders import a_spec
from omega.testing.contract import Contract
from omega.testing.steps import (
    LONG_MS,
    OVER_AT_ONCE_MS,
    a_running_job,
    add_a_cell,
    places,
    row_of,
)

ANN, BOB = UUID(int=1), UUID(int=2)
"""Two agents."""
STATES_OF_LIFE = [MachineState.OPEN, MachineState.DRAINING]


def state_of(store: Store, machine: int) -> MachineState:
    """Return the state of a machine."""
    return MachineState(row_of(store, machine).state[0])


def hold(store: Store, machine: int, holder: UUID = ANN, *, lease_ms: int = LONG_MS) -> None:
    """Have an agent hold a machine; fail unless it does."""
    assert store.hold_machine(machine, holder, lease_ms=lease_ms)


def fall_silent(store: Store, *machines: int, holder: UUID = ANN) -> None:
    """Have an agent hold machines for no time at all."""
    for machine in machines:
        hold(store, machine, holder, lease_ms=OVER_AT_ONCE_MS)


class HoldingMachineContract(Contract):
    """Who holds a machine."""

    def test_a_machine_is_held_by_one_agent(self, store: Store) -> None:
        here, there, _ = add_a_cell(store)

        hold(store, here, ANN)

        assert not store.hold_machine(here, BOB, lease_ms=LONG_MS)
        assert store.hold_machine(here, ANN, lease_ms=LONG_MS)
        assert store.hold_machine(there, BOB, lease_ms=LONG_MS)
        assert not store.hold_machine(here, BOB, lease_ms=LONG_MS)

    def test_a_lease_that_has_run_out_is_taken_over(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        fall_silent(store, machine, holder=ANN)

        hold(store, machine, BOB)

        assert not store.hold_machine(machine, ANN, lease_ms=LONG_MS)

    def test_an_agent_prolongs_a_lease_that_has_run_out(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        fall_silent(store, machine)

        hold(store, machine)

        assert [] == store.expire_machines()
        assert not store.hold_machine(machine, BOB, lease_ms=LONG_MS)

    def test_holding_a_machine_changes_nothing_of_it(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        before = row_of(store, machine)

        hold(store, machine)
        hold(store, machine)

        assert before.revision.tolist() == row_of(store, machine).revision.tolist()

    @pytest.mark.parametrize("state", [MachineState.DOWN, MachineState.GONE])
    def test_holding_a_machine_that_was_taken_out_leaves_it_there(
        self, store: Store, state: MachineState
    ) -> None:
        (machine,) = add_a_cell(store, 1)
        store.set_state(integers([machine]), state)

        hold(store, machine)

        assert state == state_of(store, machine)

    @pytest.mark.parametrize("machine", [0, 99, -1])
    def test_a_machine_that_never_was_is_held_and_left_by_nobody(
        self, store: Store, machine: int
    ) -> None:
        add_a_cell(store, 1)

        with pytest.raises(BadInput, match=f"there is no machine {machine}"):
            store.hold_machine(machine, ANN, lease_ms=LONG_MS)
        with pytest.raises(BadInput, match=f"there is no machine {machine}"):
            store.leave_machine(machine, ANN)
        with pytest.raises(BadInput, match=f"there is no machine {machine}"):
            store.free_machine(machine, ANN)

    @pytest.mark.parametrize("lease_ms", [-1, LIMITS.lease_ms_max + 1])
    def test_a_lease_has_a_reasonable_length(self, store: Store, lease_ms: int) -> None:
        (machine,) = add_a_cell(store, 1)

        with pytest.raises(BadInput, match=f"bad length of a lease: {lease_ms} ms"):
            store.hold_machine(machine, ANN, lease_ms=lease_ms)

        assert store.hold_machine(machine, BOB, lease_ms=LIMITS.lease_ms_max)


class ExpiredMachineContract(Contract):
    """What becomes of a machine whose agent is silent."""

    def test_machines_whose_leases_have_run_out_are_taken_down(self, store: Store) -> None:
        a, b, c, d = add_a_cell(store, 4)
        fall_silent(store, c, a)
        hold(store, b)

        assert [a, c] == store.expire_machines()

        down, up = MachineState.DOWN, MachineState.OPEN
        assert [down, up, down, up] == [state_of(store, it) for it in (a, b, c, d)]

    def test_a_machine_that_expires_is_a_change_of_the_cell(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        fall_silent(store, machine)
        before = store.snapshot()

        store.expire_machines()

        changes = store.changes_since(before.mark)
        assert [machine] == changes.rows.id.tolist()
        assert (before.rows.sequence + 1).tolist() == changes.rows.sequence.tolist()
        assert (before.rows.revision + 1).tolist() == changes.rows.revision.tolist()

    def test_a_machine_expires_once(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        fall_silent(store, machine)

        assert [[machine], [], []] == [store.expire_machines() for _ in range(3)]

    def test_a_machine_that_no_agent_has_held_never_expires(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)

        assert [] == store.expire_machines()

        assert MachineState.OPEN == state_of(store, machine)

    def test_tasks_of_a_machine_that_expired_are_left_to_clearing(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        a_running_job(store, a_spec(2), [machine] * 2)
        fall_silent(store, machine)

        store.expire_machines()

        assert 2 == len(places(store))
        assert 2 == store.lose_tasks(integers([machine]))

    @pytest.mark.parametrize("state", STATES_OF_LIFE)
    @pytest.mark.parametrize("holder", [ANN, BOB])
    def test_a_machine_returns_to_its_state_when_an_agent_holds_it(
        self, store: Store, state: MachineState, holder: UUID
    ) -> None:
        (machine,) = add_a_cell(store, 1)
        store.set_state(integers([machine]), state)
        fall_silent(store, machine, holder=ANN)
        store.expire_machines()
        mark = store.snapshot().mark

        hold(store, machine, holder)

        assert state == state_of(store, machine)
        assert [machine] == store.changes_since(mark).rows.id.tolist()
        assert [] == store.expire_machines()

    def test_a_machine_expires_again_and_again(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)

        for _ in range(2):
            fall_silent(store, machine)
            assert MachineState.OPEN == state_of(store, machine)
            assert [machine] == store.expire_machines()
            assert MachineState.DOWN == state_of(store, machine)

    @pytest.mark.parametrize("state", [MachineState.DOWN, MachineState.GONE])
    def test_what_an_operator_took_out_before_stays_out(
        self, store: Store, state: MachineState
    ) -> None:
        (machine,) = add_a_cell(store, 1)
        fall_silent(store, machine)
        store.set_state(integers([machine]), state)

        assert [] == store.expire_machines()
        hold(store, machine)

        assert state == state_of(store, machine)

    @pytest.mark.parametrize("state", MachineState)
    def test_what_an_operator_says_after_it_expired_holds(
        self, store: Store, state: MachineState
    ) -> None:
        (machine,) = add_a_cell(store, 1)
        fall_silent(store, machine)
        store.expire_machines()

        store.set_state(integers([machine]), state)
        hold(store, machine)

        assert state == state_of(store, machine)

    @pytest.mark.parametrize("state", STATES_OF_LIFE)
    def test_a_machine_opened_without_an_agent_expires_again(
        self, store: Store, state: MachineState
    ) -> None:
        (machine,) = add_a_cell(store, 1)
        fall_silent(store, machine)
        store.expire_machines()
        store.set_state(integers([machine]), state)

        assert [machine] == store.expire_machines()
        hold(store, machine)

        assert state == state_of(store, machine)

    def test_a_machine_that_registers_is_down_until_it_is_held(self, store: Store) -> None:
        machine = store.register_machine(one_machine("it"))
        fall_silent(store, machine)
        store.expire_machines()

        assert machine == store.register_machine(one_machine("it", cpu_milli=9_000))

        assert MachineState.DOWN == state_of(store, machine)
        hold(store, machine, BOB)
        assert MachineState.OPEN == state_of(store, machine)


class LeftMachineContract(Contract):
    """What becomes of a machine that its agent gives up."""

    @pytest.mark.parametrize("lease_ms", [LONG_MS, OVER_AT_ONCE_MS])
    def test_an_agent_that_leaves_takes_its_tasks_along(self, store: Store, lease_ms: int) -> None:
        here, there, _ = add_a_cell(store)
        a_running_job(store, a_spec(3), [here, there, here])
        gang = a_running_job(store, a_spec(3, minimum=3), [there, there, here])
        hold(store, here, lease_ms=lease_ms)

        assert 5 == store.leave_machine(here, ANN)

        assert [there] == list(places(store).values())
        assert MachineState.DOWN == state_of(store, here)
        told = store.job(gang.id)
        assert told is not None
        assert 0 == told.placed

    def test_an_agent_leaves_once(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        a_running_job(store, a_spec(), [machine])
        hold(store, machine)

        assert [1, 0, 0] == [store.leave_machine(machine, ANN) for _ in range(3)]

        assert [] == store.expire_machines()

    @pytest.mark.parametrize("state", STATES_OF_LIFE)
    @pytest.mark.parametrize("holder", [ANN, BOB])
    def test_a_machine_that_was_left_returns_to_its_state(
        self, store: Store, state: MachineState, holder: UUID
    ) -> None:
        (machine,) = add_a_cell(store, 1)
        store.set_state(integers([machine]), state)
        hold(store, machine, ANN)
        store.leave_machine(machine, ANN)

        hold(store, machine, holder)

        assert state == state_of(store, machine)

    def test_another_agents_machine_is_not_left(self, store: Store) -> None:
        here, free, _ = add_a_cell(store)
        a_running_job(store, a_spec(2), [here, free])
        hold(store, here, ANN)

        assert [0, 0] == [store.leave_machine(it, BOB) for it in (here, free)]

        assert 2 == len(places(store))
        assert [MachineState.OPEN] * 2 == [state_of(store, it) for it in (here, free)]
        assert not store.hold_machine(here, BOB, lease_ms=LONG_MS)

    def test_a_machine_that_an_operator_took_down_is_left_for_good(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        a_running_job(store, a_spec(), [machine])
        hold(store, machine)
        store.set_state(integers([machine]), MachineState.DOWN)

        assert 1 == store.leave_machine(machine, ANN)
        hold(store, machine)

        assert MachineState.DOWN == state_of(store, machine)


class FreedMachineContract(Contract):
    """What becomes of a machine whose agent wants its tasks to go on however long it is silent."""

    @pytest.mark.parametrize("lease_ms", [LONG_MS, OVER_AT_ONCE_MS])
    def test_a_machine_that_was_freed_never_expires(self, store: Store, lease_ms: int) -> None:
        (machine,) = add_a_cell(store, 1)
        hold(store, machine, lease_ms=lease_ms)

        assert [True, True] == [store.free_machine(machine, ANN) for _ in range(2)]

        assert [] == store.expire_machines()
        assert MachineState.OPEN == state_of(store, machine)
        hold(store, machine, BOB)

    @pytest.mark.parametrize("state", STATES_OF_LIFE)
    @pytest.mark.parametrize("holder", [ANN, BOB])
    def test_a_machine_that_had_expired_returns_to_its_state_with_its_tasks(
        self, store: Store, state: MachineState, holder: UUID
    ) -> None:
        (machine,) = add_a_cell(store, 1)
        a_running_job(store, a_spec(), [machine])
        store.set_state(integers([machine]), state)
        fall_silent(store, machine)
        store.expire_machines()

        assert store.free_machine(machine, holder)

        assert state == state_of(store, machine)
        assert [machine] == list(places(store).values())

    def test_a_machine_that_another_agent_holds_is_not_freed(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        hold(store, machine, ANN)

        assert not store.free_machine(machine, BOB)

        assert not store.hold_machine(machine, BOB, lease_ms=LONG_MS)

    def test_a_machine_that_an_operator_took_down_stays_down(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        hold(store, machine)
        store.set_state(integers([machine]), MachineState.DOWN)

        assert store.free_machine(machine, ANN)

        assert MachineState.DOWN == state_of(store, machine)
