"""What every store must do for agents besides exits: what runs, outputs, and registration.

Goal     Each answer that an agent relies on, as tests that read as stories.
Promise  An output only grows. A machine that registers again is the machine that it was.
Source   docs/decisions/0044-programs-and-agents.md.
"""

import numpy as np
import pytest

from omega.errors import BadInput
from omega.model.arrays import Index, integers
from omega.model.exits import TaskOutput
from omega.model.machines import Machines, MachineState, Snapshot
from omega.store.protocols import Store
from omega.testing.builders import a_cell, a_spec
from omega.testing.contract import Contract
from omega.testing.elastic_contract import an_elastic_job, some_helpers
from omega.testing.exit_contract import BADLY, report, started
from omega.testing.steps import a_running_job, add_a_cell, end, places, row_of


def indexes(*numbers: int) -> Index:
    """Return task indexes."""
    return np.array(numbers, dtype=np.intp)


def one_machine(name: str, *, cpu_milli: int = 4_000, **attributes: str) -> Machines:
    """Return one machine of this name."""
    cell = a_cell(1, cpu_milli=cpu_milli)
    return Machines((name,), cell.capacity, {key: [value] for key, value in attributes.items()})


def attributes_of(snapshot: Snapshot, at: int) -> dict[str, str]:
    """Return the attributes of a machine by its position."""
    catalogue = snapshot.catalogue
    codes = snapshot.codes[at].tolist()
    values = [catalogue.value(column, code) for column, code in enumerate(codes)]
    named = zip(catalogue.names, values, strict=True)
    return {name: value for name, value in named if value is not None}


class AgentContract(Contract):
    """What an agent asks, the outputs that it reports, and the machine that it registers."""

    def test_the_revision_of_a_machine_rises_with_what_runs_there(self, store: Store) -> None:
        here, there, _ = add_a_cell(store)
        told = [store.machine_revision(here)[0]]
        job = a_running_job(store, a_spec(2), [here, here])
        told.append(store.machine_revision(here)[0])
        report(store, job, 0)
        told.append(store.machine_revision(here)[0])
        end(store, job, 1)
        told.append(store.machine_revision(here)[0])

        assert sorted(set(told)) == told
        assert told[:1] == [store.machine_revision(there)[0]]

    def test_the_mark_of_a_revision_is_one_for_deltas(self, store: Store) -> None:
        here, _, _ = add_a_cell(store)
        _, mark = store.machine_revision(here)
        job = a_running_job(store, a_spec(), [here])

        granted, _ = store.allocations_since(mark)

        assert [job.id] == granted.job.tolist()

    @pytest.mark.parametrize("machine", [0, 99, -1])
    def test_a_machine_that_never_was_has_no_revision(self, store: Store, machine: int) -> None:
        add_a_cell(store)

        with pytest.raises(BadInput, match=f"there is no machine {machine}"):
            store.machine_revision(machine)

    def test_what_runs_is_told_by_its_start(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_running_job(store, a_spec(2), [machine] * 2)
        first, second = started(store, job, 0), started(store, job, 1)
        end(store, job, 1)

        running = store.running(
            integers([job.id, job.id, job.id, job.id, 10**9, job.id]),
            indexes(1, 0, 0, 7, 0, 0),
            integers([second, first, first - 1, first, first, first]),
        )

        assert [False, True, False, False, False, True] == running.tolist()
        assert np.bool_ == running.dtype
        assert [] == store.running(integers(), indexes(), integers()).tolist()

    def test_programs_are_told_of_jobs_that_run(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        specs = [a_spec(1, name="one"), a_spec(2, name="two")]
        jobs = [a_running_job(store, spec, [machine] * spec.tasks) for spec in specs]
        over = a_running_job(store, a_spec(), [machine])
        end(store, over, 0)
        (waits,) = store.submit([a_spec()])

        told = store.programs(integers([jobs[1].id, over.id, waits, 10**9, jobs[0].id, jobs[1].id]))

        assert [job.id for job in jobs] == list(told)
        assert specs == list(told.values())
        assert {} == store.programs(integers())

    def test_a_gang_is_told_where_its_tasks_run(self, store: Store) -> None:
        here = store.register_machine(one_machine("here"), "10.0.0.1")
        there = store.register_machine(one_machine("there"))
        gang = a_running_job(store, a_spec(3, minimum=3), [there, here, there])
        free = a_running_job(store, a_spec(2, minimum=1), [here, here])
        waits = store.submit([a_spec(2, minimum=2)])

        told = store.addresses(integers([free.id, gang.id, *waits, 10**9, gang.id]))

        assert {gang.id: {0: "there", 1: "10.0.0.1", 2: "there"}} == told
        assert {} == store.addresses(integers())

        end(store, gang, 0)
        assert {gang.id: {1: "10.0.0.1", 2: "there"}} == store.addresses(integers([gang.id]))

    def test_the_end_of_each_output_is_kept(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_running_job(store, a_spec(2), [machine] * 2)
        began = started(store, job, 0)
        out = TaskOutput(job.id, 0, began, "stdout", 10, b"hello\x00\xff")
        err = TaskOutput(job.id, 0, began, "stderr", 0, b"")

        store.report_outputs([out, err])
        store.report_outputs([])

        assert out == store.output(job.id, 0, "stdout")
        assert err == store.output(job.id, 0, "stderr")
        assert store.output(job.id, 1, "stdout") is None
        assert store.output(10**9, 0, "stdout") is None

    def test_an_output_only_grows(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_running_job(store, a_spec(), [machine])
        began = started(store, job, 0)
        told = [
            TaskOutput(job.id, 0, began, "stdout", total, text)
            for total, text in ((2, b"ab"), (4, b"abcd"), (3, b"abc"))
        ]

        store.report_outputs(told[:1])
        store.report_outputs(told)
        store.report_outputs(told[2:])

        assert told[1] == store.output(job.id, 0, "stdout")

    def test_an_output_may_come_after_the_exit(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_running_job(store, a_spec(), [machine])
        last = TaskOutput(job.id, 0, started(store, job, 0), "stderr", 3, b"bye")
        report(store, job, 0, how=BADLY)

        store.report_outputs([last])

        assert last == store.output(job.id, 0, "stderr")

    def test_an_output_of_another_start_is_passed_over(self, store: Store) -> None:
        (here,) = add_a_cell(store, 1)
        job = a_running_job(store, a_spec(2), [here, here])
        began = started(store, job, 0)
        end(store, job, 1)
        strange = [
            TaskOutput(job.id, 0, began - 1, "stdout", 1, b"x"),
            TaskOutput(job.id, 1, began, "stdout", 1, b"x"),
            TaskOutput(10**9, 0, began, "stdout", 1, b"x"),
        ]

        store.report_outputs(strange)

        assert [None] * 3 == [store.output(it.job, it.task, "stdout") for it in strange]

    def test_jobs_are_found_by_their_name(self, store: Store) -> None:
        parent, _ = an_elastic_job(store)
        some_helpers(store, parent, 1)
        named = store.submit([a_spec(name="x"), a_spec(name="y"), a_spec(name="x")])

        assert [named[2], named[0]] == [job.id for job in store.jobs_named("x")]
        assert [named[2]] == [job.id for job in store.jobs_named("x", jobs_max=1)]
        assert [parent.id] == [job.id for job in store.jobs_named(parent.spec.name)]
        assert [] == store.jobs_named("X")


class RegistrationContract(Contract):
    """A machine registers itself, and again when it starts again."""

    def test_a_machine_that_is_new_is_added(self, store: Store) -> None:
        add_a_cell(store, 2)
        generation = store.snapshot().generation

        machine = store.register_machine(one_machine("late", zone="east"))

        after = store.snapshot()
        assert 3 == machine
        assert ("late", MachineState.OPEN) == (after.names[2], after.rows.state[2])
        assert one_machine("late").capacity.tolist() == after.rows.capacity[2:].tolist()
        assert {"zone": "east"} == attributes_of(after, 2)
        assert generation < after.generation

    def test_a_machine_that_registers_again_stays_as_it_is(self, store: Store) -> None:
        machine = store.register_machine(one_machine("it", zone="east"))
        before = store.snapshot()

        assert machine == store.register_machine(one_machine("it", zone="east"))

        after = store.snapshot()
        assert before.rows.revision.tolist() == after.rows.revision.tolist()
        assert before.generation == after.generation
        assert 1 == len(after.names)

    def test_capacity_and_attributes_are_brought_up_to_date(self, store: Store) -> None:
        add_a_cell(store, 1)
        machine = store.register_machine(one_machine("it", zone="east"))
        generation = store.snapshot().generation

        assert machine == store.register_machine(one_machine("it", cpu_milli=9_000, rack="r1"))

        after = store.snapshot()
        assert 9_000 == after.rows.capacity[1, 0]
        assert {"rack": "r1"} == attributes_of(after, 1)
        assert {} == attributes_of(after, 0)
        assert generation < after.generation

    def test_an_address_stays_until_another_is_given(self, store: Store) -> None:
        machine = store.register_machine(one_machine("it"), "10.0.0.1")
        job = a_running_job(store, a_spec(1, minimum=1), [machine])
        revision = store.machine_revision(machine)[0]
        told: list[str] = []
        for address in (None, "fe80::1", "node-1.example.org"):
            store.register_machine(one_machine("it"), address)
            told += store.addresses(integers([job.id]))[job.id].values()

        assert ["10.0.0.1", "fe80::1", "node-1.example.org"] == told
        assert revision == store.machine_revision(machine)[0]

    @pytest.mark.parametrize("address", ["", "a,b", "a b", "a\nb", "\u0661", "x" * 254, "a/b"])
    def test_an_address_holds_no_separator(self, store: Store, address: str) -> None:
        with pytest.raises(BadInput, match="bad address: it is 1 to 253 letters, digits"):
            store.register_machine(one_machine("it"), address)

        assert 0 == len(store.snapshot().names)

    def test_a_smaller_capacity_holds_at_once(self, store: Store) -> None:
        machine = store.register_machine(one_machine("it", cpu_milli=4_000))
        a_running_job(store, a_spec(3), [machine] * 3)

        store.register_machine(one_machine("it", cpu_milli=1_000))

        assert 2 == store.enforce_notices()
        assert 1 == len(places(store))

    @pytest.mark.parametrize("state", [MachineState.OPEN, MachineState.DOWN, MachineState.DRAINING])
    def test_a_machine_that_registers_again_keeps_its_state(
        self, store: Store, state: MachineState
    ) -> None:
        machine = store.register_machine(one_machine("it"))
        store.set_state(integers([machine]), state)

        store.register_machine(one_machine("it", cpu_milli=9_000))

        assert state == row_of(store, machine).state[0]

    def test_a_machine_that_is_gone_stays_gone(self, store: Store) -> None:
        machine = store.register_machine(one_machine("it"))
        store.set_state(integers([machine]), MachineState.GONE)

        with pytest.raises(BadInput, match=f"machine {machine} has left the cell"):
            store.register_machine(one_machine("it"))
