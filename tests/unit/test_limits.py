"""Limits check each other, so that a contradiction cannot be shipped."""

from dataclasses import FrozenInstanceError, fields

import pytest

from omega.limits import LIMITS, Limits


def test_limits_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        LIMITS.tries_max = 1  # type: ignore[misc]


@pytest.mark.parametrize("name", [field.name for field in fields(Limits)])
def test_every_limit_is_positive(name: str) -> None:
    with pytest.raises(AssertionError, match=f"{name} must be positive"):
        Limits(**{name: 0})


@pytest.mark.parametrize(
    "contradiction",
    [
        {"lock_wait_ms_max": 5_000},
        {"jobs_per_transaction_max": 10_001},
        {"task_groups_per_job_max": 100_001},
        {"amount_max": 2**31},
        {"claims_per_transaction_max": 2**33},
        {"tasks_per_job_max": 2**33},
        {"steps_max": 2**53},
        {"yaml_values_max": 499_999},
    ],
)
def test_limits_that_do_not_fit_each_other_are_refused(contradiction: dict[str, int]) -> None:
    with pytest.raises(AssertionError):
        Limits(**contradiction)
