"""What machines are liked for."""

import numpy as np

from omega.placement.feasibility import room
from omega.placement.scores import best_first, most_allocated
from omega.testing.builders import a_cell, a_job, a_view, join_cells


def test_the_machine_that_is_left_fullest_scores_highest() -> None:
    view = a_view(a_cell(3), used={2: {"cpu_milli": 2_000}, 3: {"cpu_milli": 1_000}})

    assert [1, 2, 0] == np.argsort(-most_allocated(room(view, a_job(), 0))).tolist()


def test_what_is_left_is_a_share_of_what_the_machine_has() -> None:
    view = a_view(join_cells(a_cell(1, cpu_milli=2_000), a_cell(1, cpu_milli=8_000, first=2)))
    score = most_allocated(room(view, a_job(cpu_milli=1_000), 0))

    assert [-(0.5 + 2), -(0.875 + 2)] == score.tolist()


def test_free_gpus_count_as_left_over() -> None:
    view = a_view(
        join_cells(a_cell(2, gpus=2), a_cell(1, first=3)),
        used={2: {"gpu_0": 1_000, "gpu_1": 1_000}},
    )
    without, with_free, with_taken = (
        most_allocated(room(view, a_job(), 0))[row] for row in (2, 0, 1)
    )

    assert with_free < without
    assert with_taken == without


def test_ties_are_broken_by_chance_and_only_ties() -> None:
    score = np.array([1.0, 3.0, 1.0, 2.0, 1.0])
    orders = {tuple(best_first(score, np.random.default_rng(seed)).tolist()) for seed in range(60)}

    assert {(1, 3)} == {order[:2] for order in orders}
    assert 6 == len(orders)


def test_without_chance_ties_stay_in_order() -> None:
    assert [1, 3, 0, 2] == best_first(np.array([1.0, 3.0, 1.0, 2.0]), None).tolist()
