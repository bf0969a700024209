"""Best fit, spread over failure domains, and fractions on the fullest slots."""

from collections import Counter

import numpy as np
import pytest

from omega.cell.view import View
from omega.model.arrays import Score, integers
from omega.model.jobs import LeasedJob
from omega.placement.best_fit import balance, best_fit, best_fit_slots, fill, spread
from omega.placement.feasibility import Room, room
from omega.testing.builders import a_cell, a_job, a_view, join_cells


def rng(seed: int = 1) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_fill_serves_machines_in_the_order_given() -> None:
    given = fill(np.array([2, 0, 1]), integers([3, 3, 2]), 4)

    assert [2, 0, 2] == given.tolist()


def test_fill_leaves_machines_that_are_not_in_the_order_alone() -> None:
    assert [0, 2, 0] == fill(np.array([1]), integers([3, 2, 2]), 5).tolist()


def test_the_fullest_machine_is_filled_first() -> None:
    view = a_view(a_cell(3), used={2: {"cpu_milli": 2_000}, 3: {"cpu_milli": 1_000}})

    assert [0, 2, 1] == best_fit(room(view, a_job(3), 0), 3, rng()).tolist()


def test_equal_machines_are_chosen_by_chance() -> None:
    view = a_view(a_cell(4))
    chosen = {int(best_fit(room(view, a_job(), 0), 1, rng(seed)).argmax()) for seed in range(60)}

    assert {0, 1, 2, 3} == chosen


def test_another_preference_may_be_passed() -> None:
    view = a_view(a_cell(3))

    def lowest_row(its_room: Room) -> Score:
        return -its_room.at.astype(np.float64)

    given = best_fit(room(view, a_job(5), 0), 5, rng(), prefer=lowest_row)

    assert [4, 1, 0] == given.tolist()


def by_zone(view: View, job: LeasedJob, wanted: int, seed: int = 1) -> dict[str | None, int]:
    its_room = room(view, job, 0)
    given = spread(its_room, wanted, rng(seed))
    zones: Counter[str | None] = Counter()
    for row, tasks in zip(its_room.at, given.tolist(), strict=True):
        zones[view.catalogue.value(0, int(view.codes[row, 0]))] += tasks
    return dict(zones)


def test_tasks_are_spread_evenly_over_the_domains() -> None:
    view = a_view(a_cell(7, attributes={"zone": ["a", "a", "a", "a", "b", "c", "c"]}))

    assert {"a": 3, "b": 3, "c": 3} == by_zone(view, a_job(9, spread_over="zone"), 9)


def test_what_a_domain_lacks_in_room_goes_to_the_others() -> None:
    view = a_view(a_cell(3, attributes={"zone": ["a", "b", "c"]}), used={2: {"cpu_milli": 3_000}})

    assert {"a": 3, "b": 1, "c": 3} == by_zone(view, a_job(7, spread_over="zone"), 7)


def test_tasks_that_run_already_count_for_their_domain() -> None:
    view = a_view(a_cell(3, attributes={"zone": ["a", "b", "c"]}))
    job = a_job(9, spread_over="zone", runs_on={0: 1, 1: 1, 2: 2})

    assert {"a": 1, "b": 2, "c": 3} == by_zone(view, job, 6)


def test_machines_without_the_attribute_are_a_domain_of_their_own() -> None:
    view = a_view(a_cell(4, attributes={"zone": ["a", None, None, "b"]}))

    assert {"a": 2, None: 2, "b": 2} == by_zone(view, a_job(6, spread_over="zone"), 6)


def test_the_domain_with_one_more_is_drawn_by_chance() -> None:
    view = a_view(a_cell(3, attributes={"zone": ["a", "b", "c"]}))
    job = a_job(4, spread_over="zone")
    larger = {
        zone
        for seed in range(60)
        for zone, tasks in by_zone(view, job, 4, seed).items()
        if tasks == 2
    }

    assert {"a", "b", "c"} == larger


def test_within_a_domain_the_fullest_machine_is_filled_first() -> None:
    view = a_view(
        a_cell(4, attributes={"zone": ["a", "a", "b", "b"]}),
        used={2: {"cpu_milli": 2_000}, 3: {"cpu_milli": 1_000}},
    )

    assert [1, 2, 3, 0] == spread(room(view, a_job(6, spread_over="zone"), 0), 6, rng()).tolist()


@pytest.mark.parametrize(
    ("running", "room_left", "wanted", "expected"),
    [
        ([0, 0, 0], [9, 9, 9], 6, [2, 2, 2]),
        ([5, 0, 1], [9, 9, 9], 3, [0, 2, 1]),
        ([0, 0, 0], [1, 9, 2], 8, [1, 5, 2]),
        ([3, 3], [0, 4], 4, [0, 4]),
        ([0, 7, 0], [0, 5, 0], 2, [0, 2, 0]),
    ],
)
def test_the_lowest_domain_is_raised_first(
    running: list[int], room_left: list[int], wanted: int, expected: list[int]
) -> None:
    share = balance(integers(running), integers(room_left), wanted, rng())

    assert expected == share.tolist()


def test_a_fraction_goes_to_the_fullest_slot_of_the_cell() -> None:
    view = a_view(a_cell(3, gpus=2), used={1: {"gpu_0": 300}, 2: {"gpu_1": 600}, 3: {"gpu_0": 700}})
    job = a_job(1, cpu_milli=0, gpus=1, gpu_slices=400)

    assert [0, 1, 0] == best_fit_slots(room(view, job, 0), 1, rng()).tolist()


def test_fractions_use_up_shared_slots_before_they_break_a_whole_gpu() -> None:
    view = a_view(a_cell(3, gpus=2), used={1: {"gpu_0": 500}, 2: {"gpu_1": 600}, 3: {"gpu_0": 400}})
    job = a_job(2, cpu_milli=0, gpus=1, gpu_slices=500)

    assert [1, 0, 1] == best_fit_slots(room(view, job, 0), 2, rng()).tolist()


def test_a_whole_gpu_is_broken_where_fewest_are_whole() -> None:
    view = a_view(join_cells(a_cell(1, gpus=8), a_cell(1, gpus=2, first=2)))
    job = a_job(1, cpu_milli=0, gpus=1, gpu_slices=500)

    assert [0, 1] == best_fit_slots(room(view, job, 0), 1, rng()).tolist()


def test_fractions_keep_within_what_the_other_kinds_allow() -> None:
    view = a_view(a_cell(2, cpu_milli=2_000, gpus=2), used={1: {"gpu_0": 500}})
    job = a_job(4, cpu_milli=1_000, gpus=1, gpu_slices=100)

    assert [2, 1] == best_fit_slots(room(view, job, 0), 3, rng()).tolist()
