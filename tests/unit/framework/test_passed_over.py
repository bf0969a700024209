"""Lanes that are passed over, because one of their jobs has found no room."""

import pytest

from omega.clock import ManualClock
from omega.framework.passed_over import PAUSE_S, PAUSE_S_MAX, SIZES_MAX, PassedOver
from omega.model.jobs import JobSpec, LeasedJob
from omega.model.lanes import Lane, job_demand
from omega.store.lanes import LaneHead
from omega.testing.builders import a_job, a_spec

WANTED = 8


def a_head(spec: JobSpec) -> LaneHead:
    demand = tuple(job_demand(spec).tolist())
    return LaneHead("batch", Lane.of(spec), 1, spec.precedence, demand, spec.tasks)


def leased(spec: JobSpec) -> LeasedJob:
    return a_job(spec=spec)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def passed_over(clock: ManualClock) -> PassedOver[str]:
    return PassedOver(clock)


def test_jobs_that_need_as_much_are_passed_over(passed_over: PassedOver[str]) -> None:
    passed_over.note("a", leased(a_spec(3, cpu_milli=2_000)))
    heads = {cpu: a_head(a_spec(cpu_milli=cpu)) for cpu in (1_999, 2_000, 2_001)}
    allowed = {cpu: passed_over.jobs_max("a", head, WANTED, 0.0) for cpu, head in heads.items()}

    assert {1_999: WANTED, 2_000: 0, 2_001: 0} == allowed
    assert WANTED == passed_over.jobs_max("b", heads[2_000], WANTED, 0.0)


def test_a_job_that_needs_less_of_one_resource_may_go(passed_over: PassedOver[str]) -> None:
    passed_over.note("a", leased(a_spec(cpu_milli=2_000, memory_mib=10)))

    assert 0 == passed_over.jobs_max(
        "a", a_head(a_spec(cpu_milli=2_000, memory_mib=10)), WANTED, 0.0
    )
    slim = a_head(a_spec(cpu_milli=9_000, memory_mib=9))
    assert WANTED == passed_over.jobs_max("a", slim, WANTED, 0.0)


def test_a_gang_does_not_hold_up_what_is_smaller_as_a_whole(
    passed_over: PassedOver[str],
) -> None:
    passed_over.note("a", leased(a_spec(10, minimum=10)))
    tasks = {
        tasks: passed_over.jobs_max("a", a_head(a_spec(tasks)), WANTED, 0.0) for tasks in (9, 10)
    }

    assert {9: WANTED, 10: 0} == tasks


def test_one_is_tried_after_pauses_that_double(
    passed_over: PassedOver[str], clock: ManualClock
) -> None:
    spec, pauses = a_spec(), []
    for _ in range(9):
        passed_over.note("a", leased(spec))
        began = clock.now()
        while not passed_over.jobs_max("a", a_head(spec), WANTED, clock.now()):
            clock.advance(PAUSE_S / 8)
            assert clock.now() - began < 2 * PAUSE_S_MAX, "it is passed over for good"
        assert 1 == passed_over.jobs_max("a", a_head(spec), WANTED, clock.now())
        pauses.append(clock.now() - began)

    longest = [PAUSE_S * 2**n for n in range(7)] + [PAUSE_S_MAX] * 2
    assert longest == pytest.approx(pauses, abs=PAUSE_S / 4)


def test_a_pause_that_ended_after_the_view_was_read_is_not_over(
    passed_over: PassedOver[str], clock: ManualClock
) -> None:
    passed_over.note("a", leased(a_spec()))
    clock.advance(2 * PAUSE_S)

    assert 0 == passed_over.jobs_max("a", a_head(a_spec()), WANTED, PAUSE_S / 2)
    assert 1 == passed_over.jobs_max("a", a_head(a_spec()), WANTED, PAUSE_S)


def test_a_gain_of_room_lets_all_go(passed_over: PassedOver[str]) -> None:
    passed_over.note("a", leased(a_spec()))
    passed_over.clear()

    assert WANTED == passed_over.jobs_max("a", a_head(a_spec()), WANTED, 0.0)


def test_after_very_many_sizes_every_head_is_passed_over(passed_over: PassedOver[str]) -> None:
    for cpu in range(SIZES_MAX):
        passed_over.note("a", leased(a_spec(cpu_milli=1_000 - cpu)))

    assert 0 == passed_over.jobs_max("a", a_head(a_spec(cpu_milli=1)), WANTED, 0.0)


def test_a_job_that_is_placed_lets_those_go_that_need_more_than_one_that_was_not(
    passed_over: PassedOver[str],
) -> None:
    # The first may run on few machines only; the two after it show that others have room.
    passed_over.note("a", leased(a_spec(cpu_milli=2_000)))
    passed_over.note("a", leased(a_spec(cpu_milli=3_000)))
    passed_over.note_placed("b", leased(a_spec(cpu_milli=9_000)), 1)
    passed_over.note_placed("a", leased(a_spec(cpu_milli=1_999)), 1)
    assert 0 == passed_over.jobs_max("a", a_head(a_spec(cpu_milli=2_000)), WANTED, 0.0)

    passed_over.note_placed("a", leased(a_spec(cpu_milli=2_500)), 1)
    heads = {cpu: a_head(a_spec(cpu_milli=cpu)) for cpu in (2_999, 3_000)}
    allowed = {cpu: passed_over.jobs_max("a", head, WANTED, 0.0) for cpu, head in heads.items()}

    assert {2_999: WANTED, 3_000: 0} == allowed


def test_of_a_job_that_is_placed_in_part_before_only_the_rest_shows_that_there_is_room(
    passed_over: PassedOver[str],
) -> None:
    passed_over.note("a", leased(a_spec(4, minimum=4)))
    passed_over.note_placed("a", leased(a_spec(6)), 3)
    assert 0 == passed_over.jobs_max("a", a_head(a_spec(5)), WANTED, 0.0)

    passed_over.note_placed("a", leased(a_spec(6)), 4)
    assert WANTED == passed_over.jobs_max("a", a_head(a_spec(5)), WANTED, 0.0)


def test_pauses_begin_anew_once_a_job_was_placed(
    passed_over: PassedOver[str], clock: ManualClock
) -> None:
    for _ in range(6):
        passed_over.note("a", leased(a_spec()))
        clock.advance(2 * PAUSE_S_MAX)
    passed_over.note_placed("a", leased(a_spec()), 1)
    passed_over.note("a", leased(a_spec()))
    clock.advance(PAUSE_S)

    assert 1 == passed_over.jobs_max("a", a_head(a_spec()), WANTED, clock.now())
