"""Gangs on the fewest machines."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from omega.model.arrays import integers
from omega.placement.feasibility import Room
from omega.placement.gangs import in_one_rack, on_fewest_machines
from omega.testing.builders import a_cell, a_job, a_view


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


def placed_in(racks: str, tasks: list[int], wanted: int, *, by: str = "rack") -> list[int]:
    view = a_view(a_cell(len(tasks), attributes={"rack": list(racks)}))
    room = Room(view, a_job(), 0, np.arange(len(tasks)), integers(tasks))
    given_to = in_one_rack(by)(room, wanted, np.random.default_rng(1))
    return [int(tasks) for tasks in given_to]


def test_of_as_few_machines_those_of_one_rack_are_taken() -> None:
    assert [0, 4, 0, 4] == placed_in("abcb", [4, 4, 4, 4], 8)
    assert [0, 0, 4, 3] == placed_in("aabb", [5, 3, 4, 3], 7), "the larger hole is in the other"


def test_of_racks_the_one_with_least_room_is_taken() -> None:
    assert [0, 0, 0, 4, 4] == placed_in("aaabb", [4, 4, 4, 4, 4], 8)


def test_a_rack_never_costs_a_machine_more() -> None:
    assert [8, 1, 0, 0, 0] == placed_in("abccc", [8, 1, 3, 3, 3], 9)
    assert [8, 0, 0] == placed_in("abb", [8, 4, 4], 8)


def test_without_racks_it_is_as_without_the_wish() -> None:
    assert placed([4, 4, 4, 1], 8) == placed_in("abcd", [4, 4, 4, 1], 8)
    assert placed([4, 4, 4, 1], 8) == placed_in("aabb", [4, 4, 4, 1], 8, by="row")


@given(st.lists(st.tuples(st.integers(1, 9), st.sampled_from("abc")), min_size=1), st.data())
def test_no_choice_in_one_rack_uses_fewer_machines(
    machines: list[tuple[int, str]], data: st.DataObject
) -> None:
    tasks = [takes for takes, _ in machines]
    wanted = data.draw(st.integers(1, sum(tasks)))
    given_to = placed_in("".join(rack for _, rack in machines), tasks, wanted)

    assert wanted == sum(given_to)
    assert all(its <= room for its, room in zip(given_to, tasks, strict=True))
    assert sum(n > 0 for n in given_to) == sum(n > 0 for n in placed(tasks, wanted))
