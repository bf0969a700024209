"""Gangs on the fewest machines."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from omega.model.arrays import integers
from omega.placement.feasibility import Room
from omega.placement.gangs import on_fewest_machines
from omega.testing.builders import a_job, a_view


def placed(tasks: list[int], wanted: int, seed: int = 1) -> list[int]:
    room = Room(a_view(), a_job(), 0, np.arange(len(tasks)), integers(tasks))
    given_to = on_fewest_machines(room, wanted, np.random.default_rng(seed))
    return [int(tasks) for tasks in given_to]


def test_a_gang_that_fits_on_one_machine_takes_the_smallest_hole() -> None:
    assert [0, 0, 3, 0] == placed([8, 2, 4, 5], 3)


def test_a_larger_gang_takes_the_largest_holes_and_a_hole_that_is_just_enough() -> None:
    assert [8, 2, 0, 7] == placed([8, 2, 4, 7], 17)


def test_equal_holes_are_chosen_by_chance() -> None:
    assert 4 == len({tuple(placed([3, 3, 3, 3], 2, seed)) for seed in range(60)})
    assert 12 == len({tuple(placed([3, 3, 3, 3], 5, seed)) for seed in range(200)})


@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.data())
def test_no_choice_uses_fewer_machines(tasks: list[int], data: st.DataObject) -> None:
    wanted = data.draw(st.integers(1, sum(tasks)))
    given_to = placed(tasks, wanted)

    fewest = int(np.searchsorted(np.cumsum(sorted(tasks, reverse=True)), wanted)) + 1
    assert wanted == sum(given_to)
    assert all(its <= room for its, room in zip(given_to, tasks, strict=True))
    assert fewest == sum(its > 0 for its in given_to)
