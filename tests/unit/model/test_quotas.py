"""Quotas: what they limit, and what is left of them."""

import pytest

from omega.model.arrays import integers
from omega.model.quotas import (
    BUDGETS,
    UNLIMITED,
    Budget,
    Quota,
    QuotaScope,
    QuotaUse,
    cost,
)
from omega.model.resources import KINDS, Kind, amounts

ANN = (QuotaScope.TENANT, "ann")


def test_the_order_of_budgets_is_stored_and_never_changes() -> None:
    assert {"cpu_milli": 0, "memory_mib": 1, "disk_mib": 2, "gpu_slices": 3, "jobs": 4} == {
        budget.column: budget.value for budget in Budget
    }
    assert Budget.JOBS == BUDGETS - 1, "the database counts on jobs being the last"


def test_each_kind_is_charged_to_one_budget() -> None:
    charged = [kind for budget in Budget for kind in budget.kinds]

    assert sorted(Kind) == sorted(charged)
    assert () == Budget.JOBS.kinds


def test_the_slots_of_devices_are_one_budget() -> None:
    rows = [amounts(cpu_milli=500, gpu_0=1_000, gpu_7=250), amounts(memory_mib=3, disk_mib=4)]

    assert [[500, 0, 0, 1_250, 0], [0, 3, 4, 0, 0]] == cost(integers(rows)).tolist()
    assert [500, 0, 0, 1_250, 0] == cost(rows[0]).tolist()


def test_what_is_not_named_is_not_limited() -> None:
    quota = Quota(*ANN, {Budget.JOBS: 3, Budget.CPU_MILLI: 0})

    assert [0, UNLIMITED, UNLIMITED, UNLIMITED, 3] == quota.row.tolist()


def test_a_limit_of_all_jobs_that_there_can_be_does_not_overflow() -> None:
    most = integers([2**31 - 1] * KINDS)

    assert (UNLIMITED - 10_000 * cost(most) > 0).all()


@pytest.mark.parametrize(("name", "limits"), [("", {Budget.JOBS: 1}), ("ann", {Budget.JOBS: -1})])
def test_a_quota_has_a_name_and_no_limit_below_nothing(
    name: str, limits: dict[Budget, int]
) -> None:
    with pytest.raises(AssertionError):
        Quota(QuotaScope.TENANT, name, limits)


def test_only_what_is_limited_is_told_of_a_stored_quota() -> None:
    stored = QuotaUse.of_rows(
        *ANN, integers([100, UNLIMITED, UNLIMITED, 0, 7]), integers([-20, 5, UNLIMITED, 0, 6])
    )

    limits = {Budget.CPU_MILLI: 100, Budget.GPU_SLICES: 0, Budget.JOBS: 7}
    left = {Budget.CPU_MILLI: -20, Budget.GPU_SLICES: 0, Budget.JOBS: 6}
    assert QuotaUse(Quota(*ANN, limits), left) == stored
