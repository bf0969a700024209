"""What every store must do about machines, allocations and the ends of tasks.

Goal     The cell's amounts, from adding machines to ends of tasks, as tests that read as stories.
Promise  Bad input changes nothing. An end that is reported twice counts once.
Source   docs/glossary.md: sequence, revision, generation and mark.
"""

import numpy as np
import pytest

from omega.errors import BadInput
from omega.lifecycle.states import State
from omega.model.arrays import integers
from omega.model.machines import Machines, MachineState
from omega.model.resources import Kind, amounts, machine_capacity
from omega.store.protocols import Store
from omega.testing.builders import (
    a_cell,
    a_claim,
    a_group,
    a_spec,
    a_transaction,
    claims_of_job,
    join_cells,
)
from omega.testing.contract import Contract
from omega.testing.steps import (
    a_leased_job,
    a_running_job,
    add_a_cell,
    end,
    grant,
    row_of,
    status_of,
    submit_and_lease,
)
from omega.testing.twin import row_differences


class MachineContract(Contract):
    """Adding machines to the cell."""

    def test_an_empty_store_is_an_empty_cell(self, store: Store) -> None:
        snapshot = store.snapshot()

        assert 0 == len(snapshot.rows) == len(store.allocations())
        assert () == snapshot.names == snapshot.catalogue.names

    def test_added_machines_are_open_and_unused(self, store: Store) -> None:
        small, large = a_cell(2, cpu_milli=1_000), a_cell(1, cpu_milli=64_000, gpus=8, first=3)
        cell = join_cells(small, large)

        ids = store.add_machines(cell)

        snapshot = store.snapshot()
        assert ids.tolist() == snapshot.rows.id.tolist()
        assert cell.names == snapshot.names
        assert cell.capacity.tolist() == snapshot.rows.capacity.tolist()
        assert machine_capacity(64_000, 16_384, 100_000, 8).tolist() == cell.capacity[2].tolist()
        assert not snapshot.rows.used.any()
        assert (snapshot.rows.state == MachineState.OPEN).all()

    def test_later_machines_have_higher_ids(self, store: Store) -> None:
        first = store.add_machines(a_cell(2))
        second = store.add_machines(a_cell(3, first=3))

        assert [*first.tolist(), *second.tolist()] == store.snapshot().rows.id.tolist()
        assert tuple(f"machine-{n}" for n in range(1, 6)) == store.snapshot().names

    def test_attributes_are_read_back_as_they_were_given(self, store: Store) -> None:
        zones, models = ["east", None, "west"], ["T4", "T4", None]
        store.add_machines(a_cell(3, attributes={"zone": zones, "gpu_model": models}))
        store.add_machines(a_cell(2, first=4, attributes={"rack": ["r1", None]}))
        store.add_machines(a_cell(1, first=6, attributes={"zone": ["north"]}))

        nothing = [None] * 3
        assert {
            "zone": [*zones, None, None, "north"],
            "gpu_model": [*models, *nothing],
            "rack": [*nothing, "r1", None, None],
        } == attributes_of(store)

    def test_machines_without_attributes_are_fine(self, store: Store) -> None:
        add_a_cell(store, 2)

        assert {} == attributes_of(store)

    @pytest.mark.parametrize(
        "names",
        [
            pytest.param(("new", "machine-2"), id="taken before"),
            pytest.param(("new", "other", "new"), id="twice in one call"),
        ],
    )
    def test_a_name_that_is_taken_is_refused_and_nothing_changes(
        self, store: Store, names: tuple[str, ...]
    ) -> None:
        store.add_machines(a_cell(2, attributes={"zone": ["east", "west"]}))
        before = store.snapshot()
        wrong = Machines(names, a_cell(len(names)).capacity, {"rack": ["r1"] * len(names)})

        with pytest.raises(BadInput, match=names[-1]):
            store.add_machines(wrong)

        after = store.snapshot()
        assert [] == row_differences(before.rows, after.rows)
        assert before.generation == after.generation
        assert before.catalogue == after.catalogue

    def test_a_store_takes_machines_after_it_refused_some(self, store: Store) -> None:
        add_a_cell(store, 1)
        with pytest.raises(BadInput):
            add_a_cell(store, 1)

        store.add_machines(a_cell(1, first=2))

        assert ("machine-1", "machine-2") == store.snapshot().names

    def test_a_snapshot_is_not_moved_by_what_happens_later(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        before = store.snapshot()

        grant(store, a_leased_job(store), [0], [machine])
        store.add_machines(a_cell(1, first=2))

        assert 1 == len(before.rows)
        assert not before.rows.used.any()


class AllocationContract(Contract):
    """Reading which task runs on which machine."""

    def test_an_allocation_says_what_was_granted(self, store: Store) -> None:
        one, two = store.add_machines(a_cell(2, gpus=2)).tolist()
        groups = [a_group(2, duration_ms=5_000), a_group(1, gpus=1)]
        job = a_leased_job(store, a_spec(groups=groups))
        shapes = [{"cpu_milli": 700}, {"memory_mib": 64}, {"cpu_milli": 1, "gpu_1": 1_000}]
        claims = [
            a_claim(task, machine=machine, **shape)
            for task, (machine, shape) in enumerate(zip([one, two, two], shapes, strict=True))
        ]
        store.commit(a_transaction(claims_of_job(job, *claims)))

        live = store.allocations()
        order = np.argsort(live.task)
        assert [job.id] * 3 == live.job.tolist()
        assert [0, 1, 2] == live.task[order].tolist()
        assert [one, two, two] == live.machine[order].tolist()
        assert [5_000, 5_000, -1] == live.duration_ms[order].tolist()
        assert [amounts(s).tolist() for s in shapes] == live.amounts[order].tolist()
        assert (live.started_ms >= status_of(store, job).submitted_ms).all()

    def test_allocations_are_told_by_their_machines(self, store: Store) -> None:
        one, two, three = add_a_cell(store, 3)
        job = a_running_job(store, a_spec(3), [one, two, two])
        a_running_job(store, a_spec(), [three])

        on_two = store.allocations_on(integers([two, two + 900]))

        assert [(job.id, 1), (job.id, 2)] == sorted(
            zip(on_two.job.tolist(), on_two.task.tolist(), strict=True)
        )
        assert [two, two] == on_two.machine.tolist()
        assert 2_000 == on_two.amounts.sum()
        assert 3 == len(store.allocations_on(integers([one, two])))
        assert 0 == len(store.allocations_on(integers()))

    def test_allocations_and_jobs_are_dated_by_the_stores_clock(self, store: Store) -> None:
        before = store.now_ms()
        (machine,) = add_a_cell(store, 1)
        job = a_running_job(store, a_spec(), [machine])

        started = int(store.allocations().started_ms[0])
        assert before <= status_of(store, job).submitted_ms <= started <= store.now_ms()

    def test_placements_name_the_machine_of_each_running_task(self, store: Store) -> None:
        one, two = add_a_cell(store, 2)
        job = a_leased_job(store, a_spec(4))
        grant(store, job, [0, 1, 3], [two, one, two])
        end(store, job, 1)

        assert {0: "machine-2", 3: "machine-2"} == dict(store.placements(job.id))

    def test_a_job_without_a_place_and_no_job_at_all_have_no_placements(self, store: Store) -> None:
        (pending,) = store.submit([a_spec()])

        assert {} == dict(store.placements(pending))
        assert {} == dict(store.placements(1_000_000))

    def test_allocations_are_told_from_a_mark_on(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_leased_job(store, a_spec(4))
        grant(store, job, [0], [machine])
        first, mark = store.allocations_since(0)
        grant(store, job, [1, 2], [machine] * 2)
        end(store, job, 2)

        second, _ = store.allocations_since(mark)

        assert [0] == first.task.tolist()
        assert {1} <= set(second.task.tolist()) <= {0, 1}  # repeats are allowed, ended tasks not

    def test_nothing_new_since_a_mark_moves_no_mark_back(self, store: Store) -> None:
        _, mark = store.allocations_since(0)
        nothing, again = store.allocations_since(mark)

        assert 0 == len(nothing)
        assert again >= mark


class EndContract(Contract):
    """Ending tasks."""

    def test_an_end_frees_room_and_leaves_the_sequence(self, store: Store) -> None:
        one, two = add_a_cell(store, 2)
        job = a_leased_job(store, a_spec(4))
        before = grant(store, job, [0, 1, 2], [one, one, two]).fresh

        assert 2 == end(store, job, 0, 1)

        after = store.snapshot().rows
        assert [0, 1_000] == after.used[:, Kind.CPU_MILLI].tolist()
        assert before.sequence.tolist() == after.sequence.tolist()
        assert [True, False] == (after.revision > before.revision).tolist()

    def test_freed_room_is_sold_again(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1, cpu_milli=1_000)
        first, second = submit_and_lease(store, a_spec(), a_spec())
        grant(store, first, [0], [machine])
        end(store, first, 0)

        grant(store, second, [0], [machine])

        assert {0: "machine-1"} == dict(store.placements(second.id))

    def test_ending_a_task_twice_is_harmless(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_leased_job(store, a_spec(2))
        grant(store, job, [0, 1], [machine] * 2)

        ended = [end(store, job, 0, 0), end(store, job, 0), end(store, job, 0, 1)]

        assert [1, 0, 1] == ended
        assert not row_of(store, machine).used.any()

    def test_ends_of_what_does_not_run_are_harmless(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_leased_job(store, a_spec(3))
        grant(store, job, [0], [machine])
        before = row_of(store, machine)
        strangers = integers([job.id, job.id, 1_000_000])

        assert 0 == store.end_tasks(strangers, np.array([1, 1_000, 0], dtype=np.intp))
        assert 0 == end(store, job)
        assert [] == row_differences(before, row_of(store, machine))

    def test_ends_of_several_jobs_are_told_in_one_call(self, store: Store) -> None:
        machines = add_a_cell(store, 2)
        jobs = submit_and_lease(store, a_spec(2), a_spec(2))
        for job in jobs:
            grant(store, job, [0, 1], machines)
        of = integers([jobs[1].id, jobs[0].id, jobs[1].id])

        assert 3 == store.end_tasks(of, np.array([1, 0, 0], dtype=np.intp))

        assert State.RUNNING is status_of(store, jobs[0]).state
        assert State.SUCCEEDED is status_of(store, jobs[1]).state
        assert [0, 1_000] == store.snapshot().rows.used[:, Kind.CPU_MILLI].tolist()

    def test_a_job_succeeds_with_its_last_task(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_running_job(store, a_spec(2), [machine] * 2)
        end(store, job, 0)
        before = status_of(store, job)
        end(store, job, 1)

        after = status_of(store, job)
        assert (State.RUNNING, 1, None) == (before.state, before.ended, before.finished_ms)
        assert (State.SUCCEEDED, 2) == (after.state, after.ended)
        assert after.finished_ms is not None
        assert after.finished_ms >= after.submitted_ms

    def test_a_job_with_tasks_to_place_is_not_over(self, store: Store) -> None:
        (machine,) = add_a_cell(store, 1)
        job = a_leased_job(store, a_spec(2))
        grant(store, job, [0], [machine])
        end(store, job, 0)

        assert State.PLANNING is status_of(store, job).state
        grant(store, job, [1], [machine])
        assert State.RUNNING is status_of(store, job).state
        end(store, job, 1)
        assert State.SUCCEEDED is status_of(store, job).state


class CellContract(MachineContract, AllocationContract, EndContract):
    """Machines, allocations and ends of tasks."""


def attributes_of(store: Store) -> dict[str, list[str | None]]:
    """Return the attributes of all machines, by name, each with a value for each machine."""
    snapshot = store.snapshot()
    return {
        name: [snapshot.catalogue.value(column, int(code)) for code in snapshot.codes[:, column]]
        for column, name in enumerate(snapshot.catalogue.names)
    }
