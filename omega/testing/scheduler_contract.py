"""The contract for schedulers, and a check of claims for other tests.

Goal     Show the author of a scheduler, by one sentence for each test, what a runner relies on.
Promise  No store is needed, because a scheduler is a function of a view. `faults` is plain loops
         over claims, and uses none of the code in `omega.placement` that it checks.
Source   The interface in `omega.framework.scheduler`; contract suites of River and Oban.
"""

from collections import Counter
from typing import ClassVar

import numpy as np

from omega.cell.view import View
from omega.framework.scheduler import Scheduler
from omega.limits import LIMITS
from omega.model.claims import Claims
from omega.model.jobs import Constraint, LeasedJob, Operator, TaskGroup
from omega.model.machines import MachineState
from omega.model.resources import DEVICES, Kind
from omega.testing.builders import a_cell, a_group, a_job, a_spec, a_view, join_cells

A100 = Constraint("gpu_model", Operator.IN, ("A100",))
NOT_A100 = Constraint("gpu_model", Operator.NOT_IN, ("A100",))
NO_GPU_MODEL = Constraint("gpu_model", Operator.MISSING)
SOME_RACK = Constraint("rack", Operator.EXISTS)


def plan(scheduler: Scheduler, view: View, job: LeasedJob, *, seed: int = 7) -> Claims:
    """Return the scheduler's claims for one job; fail if placing has changed the view."""
    before = view.free.copy()
    claims = scheduler.place(view, job, np.random.default_rng(seed))
    assert (before == view.free).all(), "placing a job must leave the view as it was"
    return claims


def faults(view: View, job: LeasedJob, claims: Claims) -> list[str]:
    """Return what is wrong with claims that were made on this view for this job."""
    found = [
        f"task {task} is claimed twice"
        for task, n in Counter(claims.task.tolist()).items()
        if n > 1
    ]
    if 0 < len(claims) < job.lacking:
        found.append(f"{len(claims)} claims for a gang that lacks {job.lacking}")
    left = {int(machine): free.copy() for machine, free in zip(view.id, view.free, strict=True)}
    held = [
        (int(m), _group_of(job, int(t)))
        for m, t in zip(job.placed_machine, job.placed_task, strict=True)
    ]
    for at, (task, machine) in enumerate(
        zip(claims.task.tolist(), claims.machine.tolist(), strict=True)
    ):
        claim = f"claim {at} (task {task} on machine {machine})"
        if task not in job.unplaced:
            found.append(f"{claim}: the task is not unplaced")
            continue
        if machine not in left:
            found.append(f"{claim}: there is no such machine")
            continue
        group = _group_of(job, task)
        left[machine] -= claims.demand[at]
        if (left[machine] < 0).any():
            found.append(f"{claim}: the machine has not got that")
        if job.spec.groups[group].different_machines and (machine, group) in held:
            found.append(f"{claim}: the machine has a task of the group")
        held.append((machine, group))
    return found + faults_of_each(view, job, claims)


def faults_of_each(view: View, job: LeasedJob, claims: Claims) -> list[str]:
    """Return what is wrong with claims one by one, whatever else is claimed or runs."""
    found = []
    for at, machine in enumerate(claims.machine.tolist()):
        row = int(view.where(np.array([machine]))[0])
        if row < 0:
            continue
        task = int(claims.task[at])
        group = job.spec.groups[_group_of(job, task)]
        found += [
            f"claim {at} (task {task} on machine {machine}): {what}"
            for what in _faults_of_one(view, row, group, claims, at)
        ]
    return found


def _faults_of_one(view: View, row: int, group: TaskGroup, claims: Claims, at: int) -> list[str]:
    found = [
        f"does not meet {constraint}"
        for constraint in group.constraints
        if not _meets(view, row, constraint)
    ]
    if view.state[row] != MachineState.OPEN:
        found.append("the machine is not open")
    if claims.seen[at] != view.sequence[row]:
        found.append("carries another sequence than the view")
    demand = claims.demand[at]
    if demand[: Kind.GPU_0].tolist() != group.demand[: Kind.GPU_0].tolist():
        found.append("asks for other amounts than its group")
    slots = sorted(amount for amount in demand[DEVICES].tolist() if amount)
    if slots != [group.gpu_slices] * group.gpus:
        found.append("asks for other GPUs than its group")
    return found


def _group_of(job: LeasedJob, task: int) -> int:
    ends = np.cumsum([group.tasks for group in job.spec.groups])
    return int(np.searchsorted(ends, task, side="right"))


def _meets(view: View, row: int, constraint: Constraint) -> bool:
    column = view.catalogue.column(constraint.attribute)
    value = None if column is None else view.catalogue.value(column, int(view.codes[row, column]))
    match constraint.operator:
        case Operator.IN:
            return value in constraint.values
        case Operator.NOT_IN:
            return value not in constraint.values
        case Operator.EXISTS:
            return value is not None
        case Operator.MISSING:
            return value is None


def a_mixed_view() -> View:
    """Return a view of six machines: two with four A100, two with two T4, two without GPUs."""
    return a_view(
        join_cells(
            a_cell(2, gpus=4, attributes={"gpu_model": ["A100"] * 2, "rack": ["a", "b"]}),
            a_cell(2, gpus=2, first=3, attributes={"gpu_model": ["T4"] * 2, "rack": ["a", None]}),
            a_cell(2, first=5, attributes={"rack": ["b", None]}),
        ),
        sequence={number: 10 * number for number in range(1, 7)},
    )


class SchedulerContract:
    """What every scheduler must do. Subclass it and provide the fixture `scheduler`.

    For a scheduler with rounds subclass `omega.testing.rounds_contract.RoundsContract` instead.
    """

    covers_rounds: ClassVar[bool] = False

    def test_rounds_are_held_to_the_contract_of_rounds(self, scheduler: Scheduler) -> None:
        assert scheduler.rounds is None or self.covers_rounds, "it has rounds: see RoundsContract"

    def test_it_says_which_jobs_it_takes(self, scheduler: Scheduler) -> None:
        assert scheduler.kind
        assert 1 <= scheduler.jobs_per_transaction <= LIMITS.jobs_per_transaction_max
        assert 1 <= scheduler.claims_per_transaction <= LIMITS.claims_per_transaction_max

    def test_ordering_neither_loses_nor_repeats_a_job(self, scheduler: Scheduler) -> None:
        jobs = [
            a_job(job=number, spec=a_spec(precedence=number % 3, tenant=f"tenant-{number % 2}"))
            for number in (3, 1, 4, 5, 2)
        ]

        assert [1, 2, 3, 4, 5] == sorted(job.id for job in scheduler.order(jobs, a_view()))
        assert [] == list(scheduler.order([], a_view()))

    def test_planning_twice_gives_the_same_claims(self, scheduler: Scheduler) -> None:
        for job in (a_job(9), a_job(3, gpus=2, minimum=3), a_job(5, gpus=1, gpu_slices=300)):
            first, second = (plan(scheduler, a_mixed_view(), job) for _ in range(2))

            assert len(first) > 0
            assert first.task.tolist() == second.task.tolist()
            assert first.machine.tolist() == second.machine.tolist()
            assert first.demand.tolist() == second.demand.tolist()

    def test_it_places_all_that_there_is_room_for(self, scheduler: Scheduler) -> None:
        view = a_view(a_cell(5, cpu_milli=4_000), used={2: {"cpu_milli": 2_500}})
        job = a_job(30, cpu_milli=1_000)
        claims = plan(scheduler, view, job)

        assert 4 * 4 + 1 == len(claims)
        assert [] == faults(view, job, claims)

    def test_a_full_cell_yields_no_claims(self, scheduler: Scheduler) -> None:
        view = a_view(a_cell(2), used={1: {"cpu_milli": 3_500}, 2: {"memory_mib": 16_384}})

        assert 0 == len(plan(scheduler, view, a_job(3, cpu_milli=1_000, memory_mib=1)))

    def test_a_cell_without_machines_yields_no_claims(self, scheduler: Scheduler) -> None:
        assert 0 == len(plan(scheduler, a_view(a_cell(0)), a_job(3)))

    def test_it_claims_on_open_machines_only(self, scheduler: Scheduler) -> None:
        closed = [MachineState.DRAINING, MachineState.DOWN, MachineState.GONE]
        view = a_view(a_cell(4), state=dict(enumerate(closed, start=1)))

        assert [4] * 4 == plan(scheduler, view, a_job(9)).machine.tolist()

    def test_claims_carry_the_sequence_of_the_view(self, scheduler: Scheduler) -> None:
        view = a_mixed_view()
        claims = plan(scheduler, view, a_job(20))

        assert claims.seen.tolist() == (10 * claims.machine).tolist()

    def test_it_claims_for_unplaced_tasks_only(self, scheduler: Scheduler) -> None:
        claims = plan(scheduler, a_view(a_cell(3)), a_job(5, runs_on={0: 1, 3: 2}))

        assert [1, 2, 4] == sorted(claims.task.tolist())

    def test_jobs_tried_on_before_are_counted(self, scheduler: Scheduler) -> None:
        view = a_view(a_cell(2, cpu_milli=4_000))
        with view.tentative():
            first = plan(scheduler, view, a_job(6, job=1))
            view.assume_claims(first)
            second = plan(scheduler, view, a_job(6, job=2))

        assert (6, 2) == (len(first), len(second))
        assert (view.free == view.capacity).all()

    def test_it_honours_constraints(self, scheduler: Scheduler) -> None:
        where = {
            (A100,): {1, 2},
            (NOT_A100,): {3, 4, 5, 6},
            (NO_GPU_MODEL,): {5, 6},
            (SOME_RACK,): {1, 2, 3, 5},
            (SOME_RACK, NOT_A100): {3, 5},
        }
        for constraints, machines in where.items():
            claims = plan(scheduler, a_mixed_view(), a_job(24, constraints=constraints))

            assert machines == set(claims.machine.tolist())

    def test_what_no_machine_has_yields_no_claims(self, scheduler: Scheduler) -> None:
        for constraint in (
            Constraint("gpu_modle", Operator.EXISTS),
            Constraint("gpu_model", Operator.IN, ("H100",)),
        ):
            job = a_job(2, constraints=(constraint,))

            assert 0 == len(plan(scheduler, a_mixed_view(), job))

    def test_different_machines_are_different(self, scheduler: Scheduler) -> None:
        view = a_view(a_cell(5))
        job = a_job(9, different_machines=True, runs_on={0: 2, 1: 4})

        assert [1, 3, 5] == sorted(plan(scheduler, view, job).machine.tolist())

    def test_whole_gpus_are_on_one_machine_and_shared_with_nobody(
        self, scheduler: Scheduler
    ) -> None:
        view = a_view(a_cell(3, gpus=5), used={1: {"gpu_1": 1}, 2: {"gpu_0": 1_000, "gpu_4": 999}})
        job = a_job(9, cpu_milli=100, gpus=2)
        claims = plan(scheduler, view, job)

        assert {1: 2, 2: 1, 3: 2} == Counter(claims.machine.tolist())
        assert [] == faults(view, job, claims)

    def test_a_fraction_of_a_gpu_is_of_one_gpu(self, scheduler: Scheduler) -> None:
        view = a_view(a_cell(2, gpus=2), used={1: {"gpu_0": 500, "gpu_1": 600}})
        job = a_job(9, cpu_milli=100, gpus=1, gpu_slices=300)
        claims = plan(scheduler, view, job)

        assert {1: 2, 2: 6} == Counter(claims.machine.tolist())
        assert [] == faults(view, job, claims)

    def test_gpus_are_no_use_without_the_other_kinds(self, scheduler: Scheduler) -> None:
        view = a_view(a_cell(1, cpu_milli=2_500, gpus=8))
        job = a_job(9, cpu_milli=1_000, gpus=1, gpu_slices=100)
        claims = plan(scheduler, view, job)

        assert 2 == len(claims)
        assert [] == faults(view, job, claims)

    def test_a_gang_gets_what_it_lacks_or_nothing(self, scheduler: Scheduler) -> None:
        view = a_view(a_cell(2, cpu_milli=4_000))

        assert 8 == len(plan(scheduler, view, a_job(10, minimum=8)))
        assert 0 == len(plan(scheduler, view, a_job(10, minimum=9)))
        assert 8 == len(plan(scheduler, view, a_job(12, minimum=9, runs_on={0: 7})))

    def test_a_gang_that_stands_grows_as_room_is_found(self, scheduler: Scheduler) -> None:
        view = a_view(a_cell(1, cpu_milli=1_000))

        assert 1 == len(plan(scheduler, view, a_job(6, minimum=3, runs_on={0: 7, 1: 8, 2: 9})))

    def test_a_gang_of_several_groups_stands_or_falls_together(self, scheduler: Scheduler) -> None:
        view = a_view(a_cell(2, cpu_milli=4_000))
        groups = [a_group(2, cpu_milli=3_000), a_group(2, cpu_milli=1_000)]
        job = a_job(spec=a_spec(groups=groups, minimum=4))
        claims = plan(scheduler, view, job)

        assert 4 == len(claims)
        assert [] == faults(view, job, claims)
        too_much = [*groups, a_group(1, cpu_milli=1)]
        assert 0 == len(plan(scheduler, view, a_job(spec=a_spec(groups=too_much, minimum=5))))

    def test_groups_are_placed_beside_one_another(self, scheduler: Scheduler) -> None:
        view = a_mixed_view()
        groups = [a_group(6, gpus=1, gpu_slices=600), a_group(4, gpus=2), a_group(20)]
        job = a_job(spec=a_spec(groups=groups))
        claims = plan(scheduler, view, job)

        assert len(claims) > 0
        assert [] == faults(view, job, claims)
