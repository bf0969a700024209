"""Tasks as columns become jobs."""

import numpy as np
import pytest

import omega.workload.tasks as module
from omega.limits import Limits
from omega.model.resources import Kind, amounts
from omega.workload.tasks import NO_END, Tasks, jobs_of, prefill_of


def tasks_of(*rows: tuple[int, int, int, dict[str, int], bool, int]) -> Tasks:
    """Build tasks from (owner, scheduler, precedence, amounts, different machines, duration)."""
    owner, scheduler, precedence, named, different, duration = zip(*rows, strict=True)
    return Tasks(
        owner=np.array(owner, np.int64),
        scheduler=np.array(scheduler, np.int32),
        precedence=np.array(precedence, np.int64),
        amounts=np.stack([amounts(row) for row in named]),
        different_machines=np.array(different, np.bool_),
        duration_ms=np.array(duration, np.int64),
    )


CPU = {"cpu_milli": 100}


def test_tasks_of_one_owner_and_shape_are_one_group() -> None:
    jobs = jobs_of(
        tasks_of(
            (7, 0, 3, {"cpu_milli": 200}, False, NO_END),
            (5, 1, 0, CPU, True, 60),
            (7, 0, 3, CPU, False, NO_END),
            (7, 0, 3, {"cpu_milli": 200}, False, NO_END),
        ),
        name=str,
    )

    assert ["5", "7"] == [spec.name for spec in jobs.specs]
    assert (5, 7) == jobs.owner
    assert ["service", "batch"] == [spec.scheduler for spec in jobs.specs]
    assert [(1, 100, 60)] == [(g.tasks, g.cpu_milli, g.duration_ms) for g in jobs.specs[0].groups]
    assert jobs.specs[0].groups[0].different_machines
    assert [(1, 100, None), (2, 200, None)] == [
        (g.tasks, g.cpu_milli, g.duration_ms) for g in jobs.specs[1].groups
    ]
    assert [1, 2, 0, 3] == jobs.order.tolist()
    assert [0, 1, 1, 1] == jobs.job.tolist()
    assert [0, 0, 1, 2] == jobs.task.tolist()


def test_tasks_of_other_precedence_are_another_job() -> None:
    jobs = jobs_of(
        tasks_of((1, 0, 0, CPU, False, 0), (1, 0, 9, CPU, False, 0), (1, 1, 9, CPU, False, 0)),
        name=str,
    )

    assert [("batch", 0), ("batch", 9), ("service", 9)] == [
        (spec.scheduler, spec.precedence) for spec in jobs.specs
    ]


def test_slots_become_a_number_of_gpus_and_their_slices() -> None:
    jobs = jobs_of(
        tasks_of(
            (1, 2, 0, {"gpu_3": 1_000, "gpu_5": 1_000}, False, 0),
            (1, 2, 0, {"gpu_0": 1_000, "gpu_1": 1_000}, False, 0),
            (1, 2, 0, {"gpu_6": 250}, False, 0),
        ),
        name=str,
    )

    assert [(1, 1, 250), (2, 2, 1_000)] == [
        (g.tasks, g.gpus, g.gpu_slices) for g in jobs.specs[0].groups
    ]


def test_no_tasks_are_no_jobs() -> None:
    none = tasks_of((1, 0, 0, CPU, False, 0)).take(np.zeros(0, np.intp))

    assert () == jobs_of(none, name=str).specs
    assert 0 == len(prefill_of(none, np.zeros(0, np.intp), str))


@pytest.mark.parametrize(
    ("limits", "cuts"),
    [
        (Limits(task_groups_per_job_max=2), [2, 2, 1]),
        (Limits(task_groups_per_job_max=3, tasks_per_job_max=3), [3, 2]),
        (Limits(), [5]),
    ],
)
def test_a_job_beyond_a_limit_is_cut(
    monkeypatch: pytest.MonkeyPatch, limits: Limits, cuts: list[int]
) -> None:
    monkeypatch.setattr(module, "LIMITS", limits)
    rows = [(1, 0, 0, {"cpu_milli": n}, False, 0) for n in range(5)]

    jobs = jobs_of(tasks_of(*rows), name=str)

    assert cuts == [spec.tasks for spec in jobs.specs]
    assert {"1"} == {spec.name for spec in jobs.specs}
    assert [n for cut in cuts for n in range(cut)] == jobs.task.tolist()


def test_a_group_beyond_the_limit_of_tasks_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LIMITS", Limits(task_groups_per_job_max=4, tasks_per_job_max=4))

    jobs = jobs_of(tasks_of(*[(1, 0, 0, CPU, False, 0)] * 10), name=str)

    assert [4, 4, 2] == [spec.tasks for spec in jobs.specs]


def test_a_prefill_puts_each_task_with_its_amounts_on_its_machine() -> None:
    tasks = tasks_of(
        (2, 0, 0, {"cpu_milli": 300, "gpu_4": 500}, False, 0),
        (1, 0, 0, CPU, False, 0),
        (2, 0, 0, CPU, False, 0),
    )

    used = prefill_of(tasks, np.array([2, 0, 2]), str).used(3)

    assert [100, 0, 400] == used[:, Kind.CPU_MILLI].tolist()
    assert [0, 0, 500] == used[:, Kind.GPU_4].tolist()
