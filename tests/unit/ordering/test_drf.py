"""Dominant resource fairness."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omega.model.arrays import integers
from omega.model.resources import amounts, machine_capacity
from omega.ordering.drf import by_dominant_share, dominant_share, drf, one_gpu_kind
from omega.testing.builders import a_group, a_job, a_spec


def test_the_example_of_the_paper() -> None:
    """Nine cores and 18 GB; A's tasks need (1, 4), B's (3, 1): three of A's fit, and two of B's."""
    tenant = np.array([0] * 4 + [1] * 4)
    demand = integers([[1, 4]] * 4 + [[3, 1]] * 4)
    capacity = integers([9, 18])
    order = by_dominant_share(tenant, demand, np.zeros((2, 2), np.int64), capacity)

    served = order[:5]
    assert [3, 2] == np.bincount(tenant[served]).tolist()
    used = [demand[served[tenant[served] == who]].sum(axis=0) for who in (0, 1)]
    assert [2 / 3, 2 / 3] == [dominant_share(its, capacity) for its in used]


def test_a_tenant_who_has_much_already_waits() -> None:
    usage = integers([[50], [0]])
    order = by_dominant_share(np.array([0, 0, 1, 1]), integers([[10]] * 4), usage, integers([100]))

    assert [2, 3, 0, 1] == order.tolist()


def test_usage_is_not_written_to() -> None:
    usage = integers([[5]])
    by_dominant_share(np.array([0]), integers([[1]]), usage, integers([10]))

    assert [[5]] == usage.tolist()


def test_a_resource_that_the_cell_lacks_counts_for_nothing() -> None:
    assert 0.5 == dominant_share(integers([5, 7]), integers([10, 0]))
    assert 0.0 == dominant_share(integers([7]), integers([0]))


def test_jobs_of_one_tenant_keep_their_order() -> None:
    jobs = [a_job(job=number, tasks=number) for number in (5, 2, 9)]

    assert [5, 2, 9] == [job.id for job in drf(jobs, usage={}, capacity=amounts(cpu_milli=99))]


def test_no_jobs_have_no_order() -> None:
    assert [] == drf([], usage={}, capacity=amounts(cpu_milli=1))


def test_tenants_take_turns_by_what_their_unplaced_tasks_ask_for() -> None:
    jobs = [
        a_job(job=1, spec=a_spec(4, tenant="many")),
        a_job(job=2, spec=a_spec(1, tenant="many")),
        a_job(job=3, spec=a_spec(4, tenant="some"), runs_on={0: 1, 1: 1, 2: 1}),
        a_job(job=4, spec=a_spec(1, tenant="some")),
    ]
    capacity = amounts(cpu_milli=100_000)

    assert [1, 3, 4, 2] == [job.id for job in drf(jobs, usage={}, capacity=capacity)]


def test_usage_of_tenants_is_taken_into_account() -> None:
    jobs = [a_job(job=number, spec=a_spec(tenant=f"t{number}")) for number in (1, 2)]
    usage = {"t1": amounts(memory_mib=10)}
    capacity = amounts(cpu_milli=10_000, memory_mib=100)

    assert [2, 1] == [job.id for job in drf(jobs, usage=usage, capacity=capacity)]


@pytest.mark.parametrize("slices", [250, 1_000])
def test_gpus_are_one_resource_whichever_slot_they_are(slices: int) -> None:
    group = a_group(2, cpu_milli=1, gpus=1, gpu_slices=slices)
    jobs = [
        a_job(job=1, spec=a_spec(tenant="gpu", groups=[group])),
        a_job(job=2, spec=a_spec(tenant="gpu", groups=[group])),
        a_job(job=3, spec=a_spec(tenant="other", cpu_milli=1)),
        a_job(job=4, spec=a_spec(tenant="other", cpu_milli=1)),
    ]
    capacity = machine_capacity(1_000, 1_000, gpus=8)

    assert 8_000 == one_gpu_kind(capacity)[-1]
    assert [1, 3, 4, 2] == [job.id for job in drf(jobs, usage={}, capacity=capacity)]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 9)), max_size=12),
    st.lists(st.integers(0, 20), min_size=8, max_size=8),
)
def test_each_turn_goes_to_a_tenant_with_the_lowest_share(
    jobs: list[tuple[int, int, int]], begins_with: list[int]
) -> None:
    tenant = np.array([who for who, _, _ in jobs], dtype=np.intp)
    demand = integers([amount for _, *both in jobs for amount in both]).reshape(-1, 2)
    usage = integers(begins_with).reshape(4, 2)
    capacity = integers([30, 20])
    order = by_dominant_share(tenant, demand, usage, capacity)

    assert list(range(len(jobs))) == sorted(order.tolist())
    used, left = usage.copy(), order.tolist()
    while left:
        share = {who: dominant_share(used[who], capacity) for who in tenant[left].tolist()}
        assert share[int(tenant[left[0]])] == min(share.values())
        used[tenant[left[0]]] += demand[left[0]]
        left = left[1:]
