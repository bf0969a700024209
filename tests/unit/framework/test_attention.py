"""Attention: the part of a scheduler's time that its work on each tenant's jobs took lately."""

import pytest

from omega.clock import ManualClock
from omega.framework.attention import WHOLE_US, WINDOW_S, Attention
from omega.model.arrays import integers
from omega.model.jobs import LeasedJob
from omega.testing.builders import a_job, a_spec

S = 1_000_000


def job_of(tenant: str, tasks: int = 1) -> LeasedJob:
    return a_job(spec=a_spec(tasks, tenant=tenant))


def spent(attention: Attention, tenants: str) -> list[int]:
    return [int(us) for us in attention.spent_us(list(tenants))]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def attention(clock: ManualClock) -> Attention:
    return Attention(clock)


def test_time_is_divided_by_jobs_and_tasks(attention: Attention, clock: ManualClock) -> None:
    attention.begin()
    clock.advance(1.0)
    attention.note([job_of("a"), job_of("a"), job_of("b", 5)])

    assert [4 * S // 10, 6 * S // 10, 0] == spent(attention, "abc")
    assert [S // 5, S] == attention.expected_us(integers([1, 9])).tolist()


def test_time_before_the_work_began_does_not_count(
    attention: Attention, clock: ManualClock
) -> None:
    clock.advance(9.0)
    attention.begin()
    clock.advance(0.5)
    attention.note([job_of("a")])
    clock.advance(0.25)
    attention.note([job_of("b")])

    assert [S // 2, S // 4] == spent(attention, "ab")


def test_what_is_over_for_long_is_forgotten(attention: Attention, clock: ManualClock) -> None:
    for tenant in "ab":
        attention.begin()
        clock.advance(WINDOW_S / 2)
        attention.note([job_of(tenant)])
    clock.advance(WINDOW_S / 2)

    assert [0, WHOLE_US // 2] == spent(attention, "ab")
    assert [WHOLE_US // 2] == attention.expected_us(integers([1])).tolist()
    clock.advance(WINDOW_S / 2)
    assert [0, 0] == spent(attention, "ab")
    assert [0] == attention.expected_us(integers([9])).tolist()


def test_nothing_is_known_at_first(attention: Attention) -> None:
    attention.begin()
    attention.note([])

    assert [0] == spent(attention, "a") == attention.expected_us(integers([1])).tolist()
