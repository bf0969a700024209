"""The common form of workloads, and the start state as claims."""

import numpy as np
import pytest

from omega.model.jobs import JobSpec, TaskGroup
from omega.model.resources import KINDS, amounts
from omega.workload.arrivals import Arrival, Prefill, Workload
from omega.workload.synthetic import uniform_machines

SMALL, LARGE = amounts(cpu_milli=100), amounts(cpu_milli=900)


def job(name: str, tasks: int) -> JobSpec:
    return JobSpec(name=name, scheduler="batch", groups=(TaskGroup(tasks=tasks, cpu_milli=100),))


def index(*values: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    return np.array(values, dtype=np.intp)


@pytest.fixture
def prefill() -> Prefill:
    return Prefill(
        jobs=(job("a", 5), job("b", 1), job("c", 2)),
        job=index(0, 0, 0, 0, 0, 1, 2, 2),
        task=index(0, 1, 2, 3, 4, 0, 0, 1),
        machine=index(0, 1, 0, 1, 0, 1, 2, 2),
        shape=index(0, 0, 0, 0, 0, 1, 0, 0),
        shapes=np.stack([SMALL, LARGE]),
    )


def test_use_is_summed_by_machine(prefill: Prefill) -> None:
    assert [300, 1_100, 200, 0] == prefill.used(4)[:, 0].tolist()


def test_stretches_cut_large_jobs_and_keep_within_both_limits(prefill: Prefill) -> None:
    assert [
        ((0, slice(0, 3)),),
        ((0, slice(3, 5)), (1, slice(5, 6))),
        ((2, slice(6, 8)),),
    ] == list(prefill.batches(jobs_max=8, claims_max=3))
    assert [
        ((0, slice(0, 5)), (1, slice(5, 6))),
        ((2, slice(6, 8)),),
    ] == list(prefill.batches(jobs_max=2, claims_max=100))


def test_claims_name_machines_by_id_and_carry_only_their_own_shapes(prefill: Prefill) -> None:
    claims = prefill.claims(slice(5, 6), np.array([70, 80, 90]))

    assert [80] == claims.machine.tolist()
    assert [0] == claims.task.tolist()
    assert 1 == len(claims.shapes)
    assert 900 == claims.demand[0, 0]


def test_no_prefill_has_no_stretches_and_takes_nothing() -> None:
    none = Prefill.none()

    assert [] == list(none.batches(jobs_max=1, claims_max=1))
    assert (3, KINDS) == none.used(3).shape
    assert not none.used(3).any()


def test_a_start_state_that_does_not_fit_is_no_workload(prefill: Prefill) -> None:
    roomy = uniform_machines(3, cpus=2, memory_gib=1)
    tight = uniform_machines(3, cpus=1, memory_gib=1)

    assert 3 == len(Workload("fits", roomy, prefill, ()).machines)
    with pytest.raises(AssertionError, match="fits"):
        Workload("does not", tight, prefill, ())


def test_arrivals_out_of_order_are_no_workload() -> None:
    machines = uniform_machines(1, cpus=1, memory_gib=1)
    late_first = (Arrival(2.0, job("late", 1)), Arrival(1.0, job("early", 1)))

    with pytest.raises(AssertionError, match="ordered"):
        Workload("unordered", machines, Prefill.none(), late_first)


def test_a_workload_can_be_played_faster_or_evenly() -> None:
    machines = uniform_machines(1, cpus=1, memory_gib=1)
    arrivals = (Arrival(0.0, job("a", 2)), Arrival(0.0, job("b", 3)), Arrival(30.0, job("c", 1)))
    workload = Workload("w", machines, Prefill.none(), arrivals)

    assert 6 == workload.tasks
    assert [0.0, 0.0, 3.0] == [a.submit_s for a in workload.faster(10).arrivals]
    assert [0.0, 4.0, 8.0] == [a.submit_s for a in workload.evenly_over(12).arrivals]
    assert [a.spec for a in arrivals] == [a.spec for a in workload.evenly_over(12).arrivals]
