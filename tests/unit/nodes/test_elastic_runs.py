"""Workers process activities exactly as the model of their time says, and lose what they must."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omega.model.elastic import Phase, PhaseProgress
from omega.nodes.elastic_runs import ElasticRun, Worker
from schedulers.elastic.model import PhaseLeft, predicted_s
from tests.fixtures.doses import examples

MAPS = (Phase("map", 1_000, 10_000),)
BOTH = (Phase("map", 4, 10_000), Phase("reduce", 2, 5_000, after="map"))


def a_run(*phases: Phase, speedup: float = 1.0, done: tuple[int, ...] = ()) -> ElasticRun:
    its_done = done or (0,) * len(phases)
    progress = PhaseProgress(1, 1, phases, its_done, (0,) * len(phases))
    return ElasticRun(progress, speedup=speedup, now_ms=0)


def some_workers(number: int, *, first: int = 0, started_ms: int = 0) -> list[Worker]:
    return [(1, task, started_ms) for task in range(first, first + number)]


def end_s(run: ElasticRun) -> float:
    """Advance to the end; return when it is reached."""
    while not run.is_done:
        end_ms = run.next_end_ms()
        run.advance(int(end_ms))
    return end_ms / 1_000


@pytest.mark.parametrize(("workers", "seconds"), [(11, 910), (44, 230), (1_000, 10), (1_500, 10)])
def test_the_papers_sizes(workers: int, seconds: int) -> None:
    run = a_run(*MAPS)
    run.staff(some_workers(workers))

    assert seconds == end_s(run)
    assert ([1_000], [10_000_000]) == (run.done, run.busy_ms)


def test_one_look_at_the_end_is_as_good_as_many() -> None:
    run = a_run(*BOTH)
    run.staff(some_workers(3))
    run.advance(1_000_000)

    assert ([4, 2], [40_000, 10_000]) == (run.done, run.busy_ms)


def test_a_phase_waits_for_the_one_before_it() -> None:
    run = a_run(*BOTH)
    run.staff(some_workers(3))  # the second wave of maps has one
    run.advance(19_999)
    assert [3, 0] == run.done
    run.advance(20_000)
    assert [4, 0] == run.done
    run.advance(24_999)
    assert [4, 0] == run.done
    run.advance(25_000)
    assert [4, 2] == run.done


def test_phases_that_wait_for_none_are_worked_at_together() -> None:
    run = a_run(Phase("a", 2, 10_000), Phase("b", 1, 4_000))
    run.staff(some_workers(3))
    run.advance(4_000)

    assert [0, 1] == run.done


def test_what_a_worker_that_is_gone_processed_is_processed_again() -> None:
    run = a_run(Phase("map", 2, 10_000))
    run.staff(some_workers(2))
    run.advance(9_000)
    run.staff(some_workers(1))
    run.advance(10_000)
    assert [1] == run.done
    run.advance(19_999)
    assert [1] == run.done
    run.advance(20_000)
    assert run.is_done


def test_an_idle_worker_takes_it_over_at_once() -> None:
    run = a_run(Phase("map", 2, 10_000))
    run.staff(some_workers(3))
    run.advance(4_000)
    run.staff(some_workers(2, first=1))

    assert 14.0 == end_s(run)


def test_a_late_worker_helps_with_what_is_not_begun_only() -> None:
    run = a_run(Phase("map", 2, 10_000))
    run.staff(some_workers(1))
    run.advance(5_000)
    run.staff([*some_workers(1), (2, 0, 6_000)])

    assert 16.0 == end_s(run)
    assert 2 == run.workers


def test_a_worker_that_is_placed_again_begins_again() -> None:
    run = a_run(Phase("map", 1, 10_000))
    run.staff(some_workers(1))
    run.advance(8_000)
    run.staff(some_workers(1, started_ms=8_500))

    assert 18.5 == end_s(run)


def test_nobody_works_where_nobody_is() -> None:
    run = a_run(*MAPS)
    run.advance(1_000_000)

    assert float("inf") == run.next_end_ms()
    assert [0] == run.done


def test_a_speedup_shortens_activities_and_not_what_they_count() -> None:
    run = a_run(*MAPS, speedup=100)
    run.staff(some_workers(11))

    assert pytest.approx(9.1) == end_s(run)
    assert [10_000_000] == run.busy_ms


def test_what_was_done_before_is_not_done_again() -> None:
    run = a_run(*BOTH, done=(4, 1))
    run.staff(some_workers(5))

    assert 5.0 == end_s(run)
    assert a_run(*BOTH, done=(4, 2)).is_done


@given(
    st.integers(1, 60), st.integers(1, 30), st.integers(1, 9), st.integers(1, 9), st.integers(1, 70)
)
@examples(150)
def test_it_takes_as_long_as_the_model_predicts(
    maps: int, reduces: int, map_s: int, reduce_s: int, workers: int
) -> None:
    run = a_run(
        Phase("map", maps, map_s * 1_000), Phase("reduce", reduces, reduce_s * 1_000, after="map")
    )
    run.staff(some_workers(workers))

    expected = predicted_s([PhaseLeft(maps, map_s), PhaseLeft(reduces, reduce_s)], workers)
    assert expected == end_s(run)


@given(st.lists(st.tuples(st.sets(st.integers(0, 4)), st.integers(1, 9_000)), max_size=12))
@examples(150)
def test_no_activity_is_lost_or_done_twice_whoever_comes_and_goes(
    shifts: list[tuple[set[int], int]],
) -> None:
    run = a_run(Phase("map", 7, 3_000), Phase("reduce", 4, 2_000, after="map"))
    now_ms = 0
    for here, passed_ms in [*shifts, ({9}, 60_000)]:
        run.staff([(1, task, 0) for task in sorted(here)])
        before = list(run.done)
        now_ms += passed_ms
        run.advance(now_ms)

        assert all(then <= now for then, now in zip(before, run.done, strict=True))
        assert run.done[0] == 7 or not run.done[1]
        assert [3_000 * run.done[0], 2_000 * run.done[1]] == run.busy_ms
        assert len(here) == run.workers
    assert [7, 4] == run.done
