"""The demonstration's jobs: every kind has work that could run, and the cell gets full."""

import numpy as np
import pytest

from omega.model.resources import DEVICES, Kind
from omega.workload.arrivals import Workload
from omega.workload.demo import Demo, demo_workload

THREE_KINDS = {"batch": 2, "service": 1, "ml-gpu": 1}


def draw(machines: int = 1_000, seed: int = 0, **more: float) -> Workload:
    demo = Demo(schedulers=THREE_KINDS, machines=machines, **more)
    return demo_workload(demo, np.random.default_rng(seed))


def of_kind(workload: Workload, kind: str) -> list[int]:
    """Positions of the arrivals for one kind of scheduler."""
    return [at for at, a in enumerate(workload.arrivals) if a.spec.scheduler == kind]


def test_the_same_seed_draws_the_same_demonstration() -> None:
    one, two, other = draw(100), draw(100), draw(100, seed=1)

    assert one.arrivals == two.arrivals
    assert one.prefill.jobs == two.prefill.jobs
    assert one.arrivals != other.arrivals


def test_each_kind_of_scheduler_gets_jobs_as_there_are_schedulers() -> None:
    workload = draw(seconds=60)

    assert len(of_kind(workload, "batch")) == pytest.approx(60 * 2 * 10, rel=0.1)
    assert len(of_kind(workload, "service")) == pytest.approx(60 * 2, rel=0.3)
    assert len(of_kind(workload, "ml-gpu")) == pytest.approx(60 * 5, rel=0.2)


def test_a_kind_without_schedulers_gets_no_jobs() -> None:
    demo = Demo(schedulers={"batch": 1}, machines=50)

    assert {"batch"} == {
        a.spec.scheduler for a in demo_workload(demo, np.random.default_rng(0)).arrivals
    }


def test_batch_asks_for_more_than_is_left_in_the_long_run() -> None:
    workload = draw(seconds=60, pressure=1.6)
    machines = workload.machines
    left = (machines.capacity - workload.prefill.used(len(machines))).sum(axis=0)
    groups = [workload.arrivals[at].spec.groups[0] for at in of_kind(workload, "batch")]
    cpu_ms = sum(g.tasks * g.cpu_milli * (g.duration_ms or 0) for g in groups)

    assert cpu_ms / 60_000 / left[Kind.CPU_MILLI] == pytest.approx(1.6, rel=0.25)


def test_services_have_constraints_that_machines_meet_and_some_are_gangs() -> None:
    workload = draw(seconds=60)
    specs = [workload.arrivals[at].spec for at in of_kind(workload, "service")]

    for spec in specs:
        for constraint in spec.groups[0].constraints:
            assert set(constraint.values) <= set(workload.machines.attributes[constraint.attribute])
        assert spec.minimum in (0, spec.tasks)
    assert {None, "rack", "zone"} == {spec.groups[0].spread_over for spec in specs}
    assert any(spec.minimum for spec in specs)
    assert any(spec.groups[0].constraints for spec in specs)


def test_every_gpu_job_finds_a_machine_that_could_hold_its_tasks() -> None:
    workload = draw(seconds=60)
    capacity = workload.machines.capacity
    gpus = np.count_nonzero(capacity[:, DEVICES], axis=1)
    models = np.array(workload.machines.attributes["gpu_model"], dtype=object)
    patterns = set()
    for at in of_kind(workload, "ml-gpu"):
        group = workload.arrivals[at].spec.groups[0]
        fits = (capacity >= group.demand).all(axis=1) & (gpus >= group.gpus)
        for constraint in group.constraints:
            fits &= np.isin(models, constraint.values)
        patterns.add((group.gpus, group.gpu_slices))
        assert fits.any()

    assert {(1, 250), (1, 500), (1, 1_000), (4, 1_000), (8, 1_000)} == patterns


def test_gpu_jobs_are_the_larger_the_more_gpus_are_free() -> None:
    def tasks_mean(machines: int) -> float:
        workload = draw(machines, seconds=60)
        specs = [workload.arrivals[at].spec for at in of_kind(workload, "ml-gpu")]
        return float(np.mean([spec.tasks for spec in specs]))

    assert 2 < tasks_mean(100) < 4 < 2 * tasks_mean(1_000) < tasks_mean(10_000)


@pytest.mark.parametrize("machines", [1, 3, 10, 99])
def test_a_small_cell_is_still_a_demonstration(machines: int) -> None:
    workload = draw(machines, seconds=120)

    assert machines == len(workload.machines)
    assert workload.arrivals
