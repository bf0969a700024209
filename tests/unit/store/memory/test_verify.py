"""The second set of books finds what is wrong, whatever made it so."""

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

import numpy as np
import pytest

from omega.lifecycle.states import ParkReason, State, Trigger
from omega.model.elastic import Workers
from omega.model.machines import MachineState
from omega.model.resources import Kind, amounts
from omega.store.memory.allocations import ROW, AllocationTable
from omega.store.memory.job_records import JobRecord
from omega.store.memory.machine_leases import MachineLease, broken_leases
from omega.store.memory.machines import MachineTable
from omega.store.memory.verify import broken_invariants
from omega.testing.builders import a_cell, a_spec


class Cell:
    """Two machines, and a job with two of its three tasks on the first."""

    def __init__(self) -> None:
        self.machines, self.allocations = MachineTable(), AllocationTable()
        self.machines.add(a_cell(2), number=1)
        self.job = JobRecord.submitted(1, a_spec(3, minimum=2), now_s=0.0)
        self.job.move(Trigger.TAKE)
        self.job.token = UUID(int=1)
        rows = np.zeros(2, dtype=ROW)
        rows["job"], rows["task"], rows["machine"] = 1, [0, 1], 1
        rows["amounts"], rows["granted_by"] = amounts(cpu_milli=1_000), 1
        self.slots = self.allocations.add(rows)
        self.job.place(np.array([0, 1]), self.slots)
        self.machines.used[0] = amounts(cpu_milli=2_000)

    def broken(self) -> set[str]:
        jobs = [self.job]
        found = broken_invariants(self.machines, self.allocations, jobs)
        return {violation.invariant for violation in found}


def test_a_sound_cell_breaks_nothing() -> None:
    assert set() == Cell().broken()


def test_use_above_capacity_is_sound_as_far_as_a_notice_goes() -> None:
    cell = Cell()
    cell.machines.resize(1, amounts(cpu_milli=1_500), ends_s=9.0, number=2)

    assert set() == cell.broken()


def test_a_gang_that_fell_is_sound_with_what_was_over_by_then() -> None:
    cell = Cell()
    cell.machines.free(np.ones(2, dtype=np.int64), cell.allocations.rows["amounts"][cell.slots], 2)
    cell.job.end(0, now_s=1.0)
    cell.job.unplace(np.array([1]))
    cell.allocations.end(cell.slots)

    assert (1, 1) == (cell.job.placed, cell.job.ended)
    assert set() == cell.broken()


def test_an_empty_cell_breaks_nothing() -> None:
    assert [] == broken_invariants(MachineTable(), AllocationTable(), [])


def use_more(cell: Cell) -> None:
    cell.machines.used[1, Kind.GPU_3] += 1


def shrink(cell: Cell) -> None:
    cell.machines.capacity[0, Kind.CPU_MILLI] = 1_999


def outlast_the_notice(cell: Cell) -> None:
    cell.machines.resize(1, amounts(cpu_milli=1_500), ends_s=9.0, number=2)
    cell.machines.capacity[0, Kind.CPU_MILLI] = 1_499


def use_less_than_nothing(cell: Cell) -> None:
    cell.machines.used[1, Kind.CPU_MILLI] = -1


def allocate_twice(cell: Cell) -> None:
    cell.allocations.add(cell.allocations.rows[cell.slots[:1]])


def lose_an_allocation(cell: Cell) -> None:
    cell.allocations.end(cell.slots[:1])


def run_for_nobody(cell: Cell) -> None:
    cell.allocations.rows["job"][cell.slots[0]] = 99


def outlive_the_job(cell: Cell) -> None:
    cell.job.finish(Trigger.CANCEL, now_s=1.0)


def split_the_gang(cell: Cell) -> None:
    cell.job.placed = 1


def miscount_the_ended(cell: Cell) -> None:
    cell.job.ended = 1


def swap_the_slots(cell: Cell) -> None:
    cell.job.slot[:2] = cell.job.slot[[1, 0]]


def plan_without_a_lease(cell: Cell) -> None:
    cell.job.token = None


def keep_a_lease_in_the_queue(cell: Cell) -> None:
    cell.job.state = State.PENDING


def park_without_a_reason(cell: Cell) -> None:
    cell.job.move(Trigger.PARK)


def give_a_reason_without_parking(cell: Cell) -> None:
    cell.job.park_reason = ParkReason.NO_ROOM


def run_with_tasks_to_place(cell: Cell) -> None:
    cell.job.move(Trigger.PLACE_ALL)


USED, WITHIN = "used is the sum of allocations", "use is within capacity"
ONE_PLACE, OWNED = "a task has one place", "what runs belongs to a live job"
GANG = "a gang is there in full or not at all"
STATE, COUNTS = "a job's state follows from its tasks", "counts of tasks are right"
MATCHED = "each running task has its allocation"


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (use_more, {USED, WITHIN}),
        (shrink, {WITHIN}),
        (use_less_than_nothing, {USED, WITHIN}),
        (allocate_twice, {USED, ONE_PLACE}),
        (lose_an_allocation, {USED, MATCHED}),
        (run_for_nobody, {OWNED, MATCHED}),
        (outlive_the_job, {OWNED, STATE}),
        (outlast_the_notice, {WITHIN}),
        (split_the_gang, {GANG, COUNTS}),
        (miscount_the_ended, {COUNTS}),
        (swap_the_slots, {MATCHED}),
        (plan_without_a_lease, {STATE}),
        (keep_a_lease_in_the_queue, {STATE}),
        (park_without_a_reason, {STATE}),
        (give_a_reason_without_parking, {STATE}),
        (run_with_tasks_to_place, {STATE}),
    ],
)
def test_what_is_broken_is_named(spoil: Callable[[Cell], None], expected: set[str]) -> None:
    cell = Cell()
    spoil(cell)

    assert expected == cell.broken()


def a_helper(parent: int, *states: Trigger) -> JobRecord:
    helper = JobRecord.submitted(2, a_spec(2), now_s=0.0, parent=parent)
    for trigger in states:
        helper.move(trigger)
    return helper


def test_a_helper_that_waits_or_outlives_its_parent_is_named() -> None:
    cell = Cell()
    cell.job.spec = replace(cell.job.spec, workers=Workers(5))
    planned = a_helper(1, Trigger.TAKE)
    planned.token = UUID(int=2)

    def broken(helper: JobRecord) -> set[str]:
        found = broken_invariants(cell.machines, cell.allocations, [cell.job, helper])
        return {violation.invariant for violation in found}

    assert set() == broken(planned)
    assert {"helpers never wait"} == broken(a_helper(1))
    planned.parent = 9
    assert {"helpers end with their parent"} == broken(planned)
    planned.parent = 1
    cell.job.spec = replace(cell.job.spec, workers=Workers(4))
    assert {"a job has the workers that it may have"} == broken(planned)


def test_a_violation_names_machine_kind_and_amounts() -> None:
    cell = Cell()
    cell.machines.used[0, Kind.CPU_MILLI] = 4_500

    found = broken_invariants(cell.machines, cell.allocations, [cell.job])

    assert [
        ("machine machine-1", "cpu_milli: 4500 used, 2000 allocated"),
        ("machine machine-1", "cpu_milli: 4500 of 4000"),
    ] == [(violation.subject, violation.detail) for violation in found]


@pytest.mark.parametrize(
    ("scheduler", "precedence", "preemptible", "expected"),
    [
        ("batch", 0, False, []),
        ("service", 1, True, []),
        ("service", 0, True, ["job 1"]),
        ("service", 99, False, ["job 1"]),
    ],
)
def test_an_eviction_is_for_a_higher_precedence_or_by_its_own_scheduler(
    scheduler: str, precedence: int, *, preemptible: bool, expected: list[str]
) -> None:
    cell = Cell()
    cell.job.spec = replace(cell.job.spec, preemptible=preemptible)
    cell.job.evicted_by = 2
    by = JobRecord.submitted(2, a_spec(scheduler=scheduler, precedence=precedence), now_s=0.0)

    found = broken_invariants(cell.machines, cell.allocations, [cell.job, by])

    assert expected == [violation.subject for violation in found]


@pytest.mark.parametrize("state", MachineState)
@pytest.mark.parametrize("before", [None, MachineState.OPEN, MachineState.DRAINING])
def test_a_machine_that_its_lease_declared_down_is_down(
    state: MachineState, before: MachineState | None
) -> None:
    machines = Cell().machines
    machines.state[1] = state
    leases = {2: MachineLease(UUID(int=1), 0.0, state_before=before)}

    broken = [(it.subject, it.detail) for it in broken_leases(machines, leases)]

    is_sound = before is None or state is MachineState.DOWN
    assert broken == ([] if is_sound else [("machine machine-2", state.name)])
