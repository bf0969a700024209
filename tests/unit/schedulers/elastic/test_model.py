"""Predicted times, against numbers worked out by hand."""

import pytest

from schedulers.elastic.model import Growth, PhaseLeft, best_growth, falls, predicted_s

MAPS = (PhaseLeft(1_000, 10.0),)


@pytest.mark.parametrize(("workers", "seconds"), [(11, 910.0), (44, 230.0), (1_000, 10.0)])
def test_the_papers_sizes(workers: int, seconds: float) -> None:
    assert seconds == predicted_s(MAPS, workers)


def test_phases_follow_each_other() -> None:
    phases = (PhaseLeft(100, 10.0), PhaseLeft(10, 30.0))

    assert 10 * 10 + 1 * 30 == predicted_s(phases, 10)


def test_a_phase_without_history_adds_nothing() -> None:
    assert 100.0 == predicted_s((PhaseLeft(100, 10.0), PhaseLeft(50, None)), 10)


def test_time_falls_where_a_wave_is_saved() -> None:
    assert [2, 3, 4, 5, 10] == falls((PhaseLeft(10, 1.0),), 1, 100).tolist()
    assert [3, 4] == falls((PhaseLeft(10, 1.0),), 2, 4).tolist()
    assert [2, 3, 4, 5, 7, 10] == falls((PhaseLeft(10, 1.0), PhaseLeft(7, 1.0)), 1, 100).tolist()


def test_no_time_is_saved_with_as_many_workers_as_activities() -> None:
    phases = (PhaseLeft(1_000, 10.0), PhaseLeft(50, 30.0))

    assert best_growth(phases, 1_000, 5_000) is None
    assert best_growth(phases, 1_001, 5_000) is None
    assert best_growth(phases, 999, 5_000) == Growth(1, 10.0)


def test_no_time_is_saved_without_history() -> None:
    assert best_growth((PhaseLeft(1_000, None),), 11, 1_000) is None
    assert best_growth((PhaseLeft(1_000, 0.0),), 11, 1_000) is None


def test_the_step_that_saves_most_for_each_worker_is_chosen() -> None:
    # From 3 workers: 4 save one second, 5 save two, 10 save three.
    growth = best_growth((PhaseLeft(10, 1.0),), 3, 10)

    assert growth == Growth(1, 1.0)
    assert 1.0 == growth.gain_per_worker_s
    assert best_growth((PhaseLeft(10, 1.0),), 5, 10) == Growth(5, 1.0)


def test_a_step_further_on_may_save_more_than_the_next_one() -> None:
    # From 8 workers: 9 save half a second of the first phase, 10 save ten of the second as well.
    growth = best_growth((PhaseLeft(100, 0.5), PhaseLeft(10, 10.0)), 8, 100)

    assert growth == Growth(2, 3 * 0.5 + 10.0)
