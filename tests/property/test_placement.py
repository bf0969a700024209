"""Placement over small crowded cells: against plain loops, and with one voice about room."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omega.cell.view import View
from omega.framework.scheduler import Scheduler
from omega.model.arrays import Amounts, integers
from omega.model.jobs import Constraint, LeasedJob, Operator, TaskGroup
from omega.model.machines import Catalogue, MachineRows, Machines, MachineState, Snapshot
from omega.model.resources import GPU_SLICES, KINDS, Kind
from omega.placement.best_fit import balance, best_fit, best_fit_slots, spread
from omega.placement.diagnosis import diagnose, has_room
from omega.placement.feasibility import Room, matching, room
from omega.testing.builders import a_group, a_job, a_spec
from omega.testing.scheduler_contract import faults
from schedulers.batch import BatchScheduler
from schedulers.ml_gpu import MlGpuScheduler
from schedulers.service import ServiceScheduler
from tests.contract.stranger import RoomiestScheduler

GPUS = (Kind.GPU_0, Kind.GPU_1, Kind.GPU_2)
schedulers = pytest.mark.parametrize(
    "scheduler", [BatchScheduler(), ServiceScheduler(), MlGpuScheduler(), RoomiestScheduler()]
)


@st.composite
def views(draw: st.DrawFn) -> View:
    """Draw up to six machines, partly used, some of them closed, with two attributes."""
    machines = draw(st.integers(0, 6))
    capacity = np.zeros((machines, KINDS), dtype=np.int64)
    used = np.zeros_like(capacity)
    for row in range(machines):
        for kind in (Kind.CPU_MILLI, Kind.MEMORY_MIB):
            capacity[row, kind] = draw(st.integers(0, 6))
            used[row, kind] = draw(st.integers(0, int(capacity[row, kind])))
        for kind in GPUS[: draw(st.integers(0, 3))]:
            capacity[row, kind] = GPU_SLICES
            used[row, kind] = draw(st.sampled_from([0, 0, 250, 500, 600, 1_000]))
    values = st.sampled_from([None, "a", "b"])
    attributes = {name: [draw(values) for _ in range(machines)] for name in ("zone", "model")}
    cell = Machines(tuple(f"machine-{row}" for row in range(machines)), capacity, attributes)
    catalogue, codes = Catalogue().encode(cell)
    states = st.sampled_from([MachineState.OPEN] * 9 + list(MachineState)[1:])
    rows = replace(
        MachineRows.empty(capacity),
        used=used,
        sequence=integers([draw(st.integers(0, 3)) for _ in range(machines)]),
        state=np.array([draw(states) for _ in range(machines)], dtype=np.int8),
    )
    return View(Snapshot(rows, cell.names, catalogue, codes, mark=0, generation=1))


constraints = st.one_of(
    st.builds(
        Constraint,
        st.sampled_from(["zone", "model", "rack"]),
        st.sampled_from([Operator.IN, Operator.NOT_IN]),
        st.sampled_from([("a",), ("a", "b"), ("c",)]),
    ),
    st.builds(
        Constraint,
        st.sampled_from(["zone", "model", "rack"]),
        st.sampled_from([Operator.EXISTS, Operator.MISSING]),
    ),
)


@st.composite
def task_groups(draw: st.DrawFn) -> TaskGroup:
    """Draw a group of up to five tasks, most of them plain."""
    gpus = draw(st.sampled_from([0, 0, 0, 1, 1, 2]))
    return a_group(
        draw(st.integers(1, 5)),
        cpu_milli=draw(st.integers(0, 4)),
        memory_mib=draw(st.integers(0, 4)),
        gpus=gpus,
        gpu_slices=draw(st.sampled_from([250, 500, 1_000])) if gpus == 1 else GPU_SLICES,
        constraints=tuple(draw(st.lists(constraints, max_size=1))),
        spread_over=draw(st.sampled_from([None, None, "zone", "zone", "rack"])),
        different_machines=draw(st.sampled_from([False, False, False, True])),
    )


@st.composite
def jobs(draw: st.DrawFn, groups_max: int = 3) -> LeasedJob:
    """Draw a job, incremental or a gang, some of whose tasks may run already."""
    groups = draw(st.lists(task_groups(), min_size=1, max_size=groups_max))
    tasks = sum(group.tasks for group in groups)
    minimum = draw(st.sampled_from([0, 0, tasks, draw(st.integers(0, tasks))]))
    running = draw(st.sets(st.integers(0, tasks - 1), max_size=2))
    spec = a_spec(groups=groups, minimum=minimum)
    return a_job(spec=spec, runs_on={task: draw(st.integers(1, 7)) for task in running})


@schedulers
@given(views(), jobs(), st.integers(0, 9))
def test_claims_are_without_fault(
    scheduler: Scheduler, view: View, job: LeasedJob, seed: int
) -> None:
    before = view.free.copy()
    claims = scheduler.place(view, job, np.random.default_rng(seed))

    assert [] == faults(view, job, claims)
    assert np.array_equal(before, view.free)


@schedulers
@given(views(), jobs(), st.integers(0, 9))
def test_there_is_room_if_and_only_if_there_are_claims(
    scheduler: Scheduler, view: View, job: LeasedJob, seed: int
) -> None:
    claims = scheduler.place(view, job, np.random.default_rng(seed))

    assert has_room(view, job) == (len(claims) > 0)


@given(views(), jobs())
def test_there_is_a_diagnosis_if_and_only_if_there_is_no_room(view: View, job: LeasedJob) -> None:
    diagnosis = diagnose(view, job)

    if len(job.unplaced):
        assert has_room(view, job) == (diagnosis is None)
    else:
        assert diagnosis is None
    assert diagnosis is None or diagnosis.detail


def emptied(view: View) -> View:
    """The cell with nothing running and all machines up that are still there."""
    state = np.where(view.state == MachineState.GONE, MachineState.GONE, MachineState.OPEN)
    rows = replace(MachineRows.empty(view.capacity), state=state.astype(np.int8))
    return View(Snapshot(rows, view.names, view.catalogue, view.codes, mark=0, generation=1))


@given(views(), jobs())
def test_a_reason_is_permanent_if_and_only_if_the_empty_cell_would_not_help(
    view: View, job: LeasedJob
) -> None:
    diagnosis = diagnose(view, job)
    if diagnosis is not None:
        alone = replace(job, placed_task=np.zeros(0, np.intp), placed_machine=integers())
        claims = BatchScheduler().place(emptied(view), alone, np.random.default_rng(1))

        assert diagnosis.reason.is_permanent == (len(claims) == 0)


@given(views(), jobs(groups_max=1))
def test_room_is_what_tasks_put_in_one_by_one_find(view: View, job: LeasedJob) -> None:
    found = room(view, job, 0)
    group = job.spec.groups[0]
    expected = {}
    for row in np.flatnonzero(view.open & matching(view, group)):
        if group.different_machines and view.id[row] in job.placed_machine:
            continue
        if tasks := put_in_one_by_one(view.free[row].copy(), group):
            expected[int(row)] = tasks

    if any(group.demand) or group.gpus or group.different_machines:
        assert expected == dict(zip(found.at.tolist(), found.tasks.tolist(), strict=True))
    else:
        assert list(expected) == found.at.tolist()


def put_in_one_by_one(free: Amounts, group: TaskGroup) -> int:
    """Count the tasks that a machine takes, at most as many as 99."""
    for tasks in range(99):
        slots = [kind for kind in GPUS if free[kind] >= group.gpu_slices][: group.gpus]
        if (free < group.demand).any() or len(slots) < group.gpus:
            return tasks
        if group.different_machines and tasks:
            return 1
        free -= group.demand
        free[slots] -= group.gpu_slices
    return 99


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=6), st.data())
def test_domains_are_balanced_as_by_one_task_at_a_time(
    domains: Sequence[tuple[int, int]], data: st.DataObject
) -> None:
    running, takes = integers([r for r, _ in domains]), integers([t for _, t in domains])
    wanted = data.draw(st.integers(0, int(takes.sum())))
    share = balance(running, takes, wanted, np.random.default_rng(1))

    level = running.copy()
    for _ in range(wanted):
        level[np.argmin(np.where(level - running < takes, level, 10**6))] += 1
    assert sorted(level.tolist()) == sorted((running + share).tolist())
    assert (share <= takes).all()
    assert (share >= 0).all()


def roomy(view: View, job: LeasedJob, data: st.DataObject) -> tuple[Room, int] | None:
    """The room of the first group, and how many tasks are wanted there; None if it is full."""
    found = room(view, job, 0)
    if not len(found.at):
        return None
    return found, data.draw(st.integers(1, min(found.total, 12)))


@given(views(), jobs(groups_max=1), st.data())
def test_spread_gives_each_domain_its_share(
    view: View, job: LeasedJob, data: st.DataObject
) -> None:
    case = roomy(view, job, data)
    if case is None or job.spec.groups[0].spread_over is None:
        return
    found, wanted = case
    given_to = spread(found, wanted, np.random.default_rng(1))

    domain = view.codes[found.at, view.catalogue.names.index("zone")]
    running = [
        sum(1 for machine in job.placed_machine if view_zone(view, int(machine)) == code)
        for code in range(3)
    ]
    counts = [running[code] + int(given_to[domain == code].sum()) for code in range(3)]
    assert wanted == given_to.sum()
    assert (given_to <= found.tasks).all()
    for low in range(3):
        for high in range(3):
            full = given_to[domain == low].sum() == found.tasks[domain == low].sum()
            given_high = int(given_to[domain == high].sum())
            assert full or not given_high or counts[high] <= counts[low] + 1


def view_zone(view: View, machine: int) -> int | None:
    """The code of a machine's zone; None if the machine is not in the view."""
    if machine > len(view):
        return None
    return int(view.codes[machine - 1, view.catalogue.names.index("zone")])


@given(views(), jobs(groups_max=1), st.data())
def test_best_fit_fills_the_best_machines_to_the_brim(
    view: View, job: LeasedJob, data: st.DataObject
) -> None:
    case = roomy(view, job, data)
    if case is None:
        return
    found, wanted = case
    rank = integers(data.draw(st.permutations(range(len(found.at)))))
    given_to = best_fit(
        found, wanted, np.random.default_rng(1), prefer=lambda _: -rank.astype(np.float64)
    )

    in_order = given_to[np.argsort(rank)]
    takes = found.tasks[np.argsort(rank)]
    last = np.flatnonzero(in_order)[-1]
    assert wanted == given_to.sum()
    assert in_order[:last].tolist() == takes[:last].tolist()


@given(views(), jobs(groups_max=1), st.data())
def test_fractions_leave_as_many_whole_gpus_as_one_task_at_a_time(
    view: View, job: LeasedJob, data: st.DataObject
) -> None:
    case = roomy(view, job, data)
    group = job.spec.groups[0]
    if case is None or not group.gpus or group.gpu_slices == GPU_SLICES:
        return
    found, wanted = case
    given_to = best_fit_slots(found, wanted, np.random.default_rng(1))

    assert wanted == given_to.sum()
    assert (given_to <= found.tasks).all()
    free = view.free[found.at][:, GPUS]
    broken_at_once = sum(
        broken(slots.tolist(), group.gpu_slices, tasks)
        for slots, tasks in zip(free, given_to.tolist(), strict=True)
    )
    assert broken_one_by_one(free, found.tasks.copy(), group.gpu_slices, wanted) == broken_at_once


def broken(slots: list[int], slices: int, tasks: int) -> int:
    """Whole GPUs that one machine breaks for so many tasks, fullest slot first."""
    return broken_one_by_one(np.array([slots]), np.array([tasks]), slices, tasks)


def broken_one_by_one(free: Amounts, takes: Amounts, slices: int, wanted: int) -> int:
    """Whole GPUs broken when each task in turn takes the fullest slot, on fewest whole in a tie."""
    free = free.copy()
    whole_at_first = (free == GPU_SLICES).sum(axis=1)
    count = 0
    for _ in range(wanted):
        _, _, row, slot = min(
            (free[row, slot], whole_at_first[row], row, slot)
            for row in range(len(free))
            for slot in range(free.shape[1])
            if takes[row] and free[row, slot] >= slices
        )
        count += int(free[row, slot] == GPU_SLICES)
        free[row, slot] -= slices
        takes[row] -= 1
    return count
