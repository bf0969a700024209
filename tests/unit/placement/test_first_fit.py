"""Randomised first fit against the loop that the paper describes."""

from collections import Counter
from functools import cache

import numpy as np
import pytest

from omega.cell.view import View
from omega.model.arrays import integers
from omega.model.machines import MachineState
from omega.placement.feasibility import Room
from omega.placement.first_fit import draw, first_fit
from omega.testing.builders import a_cell, a_job, a_view


def a_room(*tasks: int) -> Room:
    return Room(a_view(), a_job(), 0, np.arange(len(tasks)), integers(tasks))


@cache
def by_the_loop(left: tuple[int, ...], wanted: int) -> dict[tuple[int, ...], float]:
    """How likely the loop leaves each machine with so much room: drawn uniformly, full ones out."""
    if not wanted:
        return {left: 1.0}
    pool = [machine for machine, tasks in enumerate(left) if tasks]
    likely: Counter[tuple[int, ...]] = Counter()
    for machine in pool:
        after = (*left[:machine], left[machine] - 1, *left[machine + 1 :])
        for end, rng in by_the_loop(after, wanted - 1).items():
            likely[end] += rng / len(pool)  # type: ignore[assignment]
    return dict(likely)


def a_view_with_room(*tasks: int) -> View:
    """Machines that take so many tasks of one core each."""
    most = max(tasks)
    used = {id_: {"cpu_milli": (most - left) * 1_000} for id_, left in enumerate(tasks, start=1)}
    return a_view(a_cell(len(tasks), cpu_milli=most * 1_000), used=used)


def drawn(view: View, wanted: int, rng: np.random.Generator) -> list[int]:
    """How many tasks each machine of the view gets."""
    at, given = draw(view, a_job(wanted), 0, wanted, rng)
    assert len(at) == len(set(at.tolist()))
    everywhere = np.zeros(len(view), dtype=np.int64)
    everywhere[at] = given
    gets: list[int] = everywhere.tolist()
    return gets


@pytest.mark.parametrize("rounds", [1_000, pytest.param(4_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("wanted", [1, 4, 6])
def test_drawing_on_a_view_is_equal_in_distribution_to_the_loop(wanted: int, rounds: int) -> None:
    """With six of seven places wanted, the whole room has to be looked at now and then."""
    left = (0, 1, 2, 4)
    view, rng = a_view_with_room(*left), np.random.default_rng(12)
    ends = Counter(
        tuple((integers(left) - drawn(view, wanted, rng)).tolist()) for _ in range(rounds)
    )

    expected = by_the_loop(left, wanted)
    assert expected.keys() >= ends.keys()
    for end, likely in expected.items():  # five standard deviations
        assert abs(ends[end] / rounds - likely) < 5 * (likely * (1 - likely) / rounds) ** 0.5


def test_all_that_fits_is_drawn_wherever_it_is() -> None:
    rng = np.random.default_rng(4)
    view = a_view_with_room(*[0] * 500, 3, *[0] * 500)
    closed = a_view(a_cell(2), state={1: MachineState.DRAINING})

    assert [2, 3] == [drawn(view, wanted, rng)[500] for wanted in (2, 9)]
    assert [0, 4] == drawn(closed, 5, rng)
    assert [] == drawn(a_view(a_cell(0)), 5, rng)


@pytest.mark.parametrize("rounds", [5_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_it_is_equal_in_distribution_to_the_loop(rounds: int) -> None:
    left, wanted = (1, 2, 4), 4
    rng, room = np.random.default_rng(11), a_room(*left)
    ends = Counter(
        tuple((integers(left) - first_fit(room, wanted, rng)).tolist()) for _ in range(rounds)
    )

    expected = by_the_loop(left, wanted)
    assert expected.keys() == ends.keys()
    for end, likely in expected.items():  # five standard deviations
        assert abs(ends[end] / rounds - likely) < 5 * (likely * (1 - likely) / rounds) ** 0.5


def test_no_machine_gets_more_than_it_takes() -> None:
    rng = np.random.default_rng(3)
    for wanted in range(1, 12):
        given = first_fit(a_room(1, 5, 2, 3), min(wanted, 11), rng)

        assert min(wanted, 11) == given.sum()
        assert (given <= [1, 5, 2, 3]).all()


def test_the_last_room_is_found_among_many_full_machines() -> None:
    room = a_room(*[1] * 999, 500)

    assert 1_498 == first_fit(room, 1_498, np.random.default_rng(5)).sum()


def test_equal_chance_gives_equal_machines() -> None:
    first, second = (
        first_fit(a_room(*[3] * 50), 40, np.random.default_rng(9)).tolist() for _ in range(2)
    )

    assert first == second
