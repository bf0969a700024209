"""Jobs as submitted, and as leased."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from omega.model.arrays import integers
from omega.model.jobs import Constraint, JobSpec, Operator, StepWork, TaskGroup
from omega.model.resources import named
from omega.testing.builders import a_group, a_job, a_spec


def test_a_constraint_reads_as_a_sentence() -> None:
    zone = Constraint("zone", Operator.NOT_IN, ("east", "west"))
    gpu = Constraint("gpu_model", Operator.EXISTS)

    assert ["zone not_in east|west", "gpu_model exists"] == [str(zone), str(gpu)]


@pytest.mark.parametrize(
    ("operator", "values"),
    [
        (Operator.IN, ()),
        (Operator.NOT_IN, ()),
        (Operator.EXISTS, ("x",)),
        (Operator.MISSING, ("x",)),
    ],
)
def test_a_constraint_takes_values_only_where_it_compares(
    operator: Operator, values: tuple[str, ...]
) -> None:
    with pytest.raises(AssertionError, match="take values"):
        Constraint("zone", operator, values)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: a_group(0),
        lambda: a_group(cpu_milli=-1),
        lambda: a_group(memory_mib=-1),
        lambda: a_group(disk_mib=-1),
        lambda: a_group(gpus=-1),
        lambda: a_group(gpus=9),
        lambda: a_group(gpus=1, gpu_slices=0),
        lambda: a_group(gpus=1, gpu_slices=1_001),
        lambda: a_group(gpus=2, gpu_slices=500),
        lambda: a_group(duration_ms=-1),
    ],
)
def test_a_group_that_makes_no_sense_is_refused(wrong: Callable[[], TaskGroup]) -> None:
    with pytest.raises(AssertionError):
        wrong()


def test_the_demand_of_a_group_leaves_out_its_gpus() -> None:
    group = a_group(cpu_milli=500, memory_mib=64, disk_mib=3, gpus=2)

    assert {"cpu_milli": 500, "memory_mib": 64, "disk_mib": 3} == named(group.demand)


def test_a_job_counts_the_tasks_of_its_groups() -> None:
    assert 5 == a_spec(groups=[a_group(2), a_group(3)]).tasks


@pytest.mark.parametrize("minimum", [-1, 3])
def test_a_gang_is_no_larger_than_its_job(minimum: int) -> None:
    with pytest.raises(AssertionError):
        a_spec(2, minimum=minimum)


def test_a_job_has_a_group() -> None:
    with pytest.raises(AssertionError):
        JobSpec(name="empty", scheduler="batch", groups=())


@pytest.mark.parametrize("steps", [0, -1, 10**15 + 1])
def test_work_has_so_many_steps(steps: int) -> None:
    with pytest.raises(AssertionError):
        StepWork("ResNet-18 (batch size 64)", steps)


def test_a_job_in_steps_does_not_end_by_time() -> None:
    work = StepWork("ResNet-18 (batch size 64)", 120_000)

    assert work == a_spec(2, work=work).work
    with pytest.raises(AssertionError, match="steps end a job in steps"):
        a_spec(groups=[a_group(), a_group(duration_ms=1)], work=work)


class TestLeasedJob:
    def test_what_a_gang_lacks_falls_with_what_is_placed(self) -> None:
        lacking = [
            a_job(4, minimum=minimum, runs_on=dict.fromkeys(range(placed), 1)).lacking
            for minimum, placed in [(0, 0), (3, 0), (3, 2), (3, 3), (3, 4)]
        ]

        assert [0, 3, 1, 0, 0] == lacking

    def test_unplaced_tasks_are_told_by_group(self) -> None:
        spec = a_spec(groups=[a_group(2), a_group(3), a_group(1)])
        job = a_job(spec=spec, runs_on={1: 7, 3: 8})

        assert [[0], [2, 4], [5]] == [job.unplaced_in(group).tolist() for group in range(3)]

    def test_machines_are_told_by_group_with_their_counts(self) -> None:
        spec = a_spec(groups=[a_group(3), a_group(2)])
        job = a_job(spec=spec, runs_on={0: 9, 1: 4, 2: 9, 4: 4})

        told = [[array.tolist() for array in job.machines_of(group)] for group in range(2)]

        assert [[[4, 9], [1, 2]], [[4], [1]]] == told

    def test_its_arrays_are_read_only(self) -> None:
        job = a_job(2, runs_on={0: 1})

        assert not any(
            array.flags.writeable for array in (job.unplaced, job.placed_task, job.placed_machine)
        )

    def test_unplaced_tasks_are_ascending(self) -> None:
        with pytest.raises(AssertionError):
            replace(a_job(2), unplaced=np.array([1, 0]))

    def test_it_knows_no_places_unless_told(self) -> None:
        assert integers().tolist() == a_job().placed_machine.tolist()
