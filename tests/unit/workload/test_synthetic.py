"""Drawn work follows its laws, and its seed."""

import numpy as np
import pytest

from omega.model.resources import Kind
from omega.workload.synthetic import (
    W1,
    W2,
    JobClass,
    Shape,
    TwoClasses,
    arrivals_of,
    merged,
    scattered,
    two_class_workload,
    uniform_machines,
)

CLASS = JobClass(scheduler="batch", gap_mean_s=0.5, tasks_mean=20, duration_mean_s=100)


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_gaps_tasks_and_durations_have_the_means_asked_for() -> None:
    arrivals = arrivals_of(CLASS, 5_000, rng())
    tasks = [arrival.spec.tasks for arrival in arrivals]
    durations_s = [(arrival.spec.groups[0].duration_ms or 0) / 1_000 for arrival in arrivals]

    assert len(arrivals) == pytest.approx(10_000, rel=0.05)
    assert np.mean(tasks) == pytest.approx(20.5, rel=0.05)  # rounding up adds half a task
    assert np.mean(durations_s) == pytest.approx(100, rel=0.05)
    assert min(tasks) >= 1
    assert all(0 < arrival.submit_s < 5_000 for arrival in arrivals)


def test_shapes_are_drawn_by_weight() -> None:
    shapes = (Shape(cpu_milli=1, weight=3), Shape(cpu_milli=2, weight=1))
    jobs = JobClass(
        scheduler="x", gap_mean_s=1, tasks_mean=1, duration_mean_s=1, shapes=shapes, precedence=4
    )

    arrivals = arrivals_of(jobs, 4_000, rng())
    light = np.mean([arrival.spec.groups[0].cpu_milli == 1 for arrival in arrivals])

    assert light == pytest.approx(0.75, abs=0.03)
    assert {4} == {arrival.spec.precedence for arrival in arrivals}


def test_the_same_seed_draws_the_same_and_another_does_not() -> None:
    assert arrivals_of(CLASS, 50, rng(1)) == arrivals_of(CLASS, 50, rng(1))
    assert arrivals_of(CLASS, 50, rng(1)) != arrivals_of(CLASS, 50, rng(2))


def test_streams_merge_by_submission() -> None:
    merge = merged(arrivals_of(CLASS, 20, rng(1)), arrivals_of(CLASS, 20, rng(2)))
    times = [arrival.submit_s for arrival in merge]

    assert sorted(times) == times


def test_scattered_tasks_fit_and_are_spread_over_the_machines() -> None:
    machines = uniform_machines(100, cpus=4, memory_gib=16)

    prefill = scattered(machines, 240, Shape(), rng())
    used = prefill.used(100)

    assert 240_000 == used[:, Kind.CPU_MILLI].sum()
    assert used[:, Kind.CPU_MILLI].max() <= 4_000
    assert len(np.unique(used[:, Kind.CPU_MILLI])) >= 4
    assert [None] == [group.duration_ms for group in prefill.jobs[0].groups]


def test_every_last_place_can_be_taken() -> None:
    machines = uniform_machines(50, cpus=4, memory_gib=6)  # memory is the scarce one

    used = scattered(machines, 150, Shape(), rng()).used(50)

    assert {3_000} == set(used[:, Kind.CPU_MILLI].tolist())


def test_more_tasks_than_places_are_refused() -> None:
    with pytest.raises(ValueError, match="9 tasks were to be placed at the start, 8 fit"):
        scattered(uniform_machines(2, cpus=4, memory_gib=16), 9, Shape(), rng())


@pytest.mark.parametrize(("laws", "used_share"), [(W1, 0.0), (W2, 0.6)])
def test_the_two_class_cells_start_as_published(laws: TwoClasses, used_share: float) -> None:
    workload = two_class_workload(laws, rng())
    used = workload.prefill.used(len(workload.machines))[:, Kind.CPU_MILLI].sum()

    assert laws.machines == len(workload.machines)
    assert used_share == used / workload.machines.capacity[:, Kind.CPU_MILLI].sum()
    assert {"batch", "service"} == {arrival.spec.scheduler for arrival in workload.arrivals}
