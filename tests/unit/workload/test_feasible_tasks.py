"""Making an overcommitted start state fit."""

import numpy as np

from omega.model.arrays import every_kind
from omega.model.resources import KINDS, amounts
from omega.workload.feasible_tasks import highest_that_fit, scaled_to_fit


def cpu(*milli: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    return np.stack([amounts(cpu_milli=n) for n in milli])


def test_the_lowest_precedence_of_a_crowded_machine_goes_first() -> None:
    stays = highest_that_fit(
        machine=np.array([0, 0, 0, 1]),
        precedence=np.array([1, 9, 5, 0]),
        amounts=cpu(400, 400, 400, 400),
        capacity=cpu(1_000, 1_000),
    )

    assert [False, True, True, True] == stays.tolist()


def test_of_one_precedence_the_later_goes_first() -> None:
    stays = highest_that_fit(np.array([0, 0]), np.array([3, 3]), cpu(600, 600), cpu(1_000))

    assert [True, False] == stays.tolist()


def test_a_machine_is_weighed_in_every_kind() -> None:
    demand = np.stack([amounts(cpu_milli=1, memory_mib=6), amounts(cpu_milli=1, memory_mib=6)])

    stays = highest_that_fit(
        np.array([0, 0]), np.array([0, 1]), demand, amounts(cpu_milli=9, memory_mib=10)[None, :]
    )

    assert [False, True] == stays.tolist()


def test_no_tasks_stay_none() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    no_amounts = np.zeros((0, KINDS), dtype=np.int64)

    assert [] == highest_that_fit(nothing, nothing, no_amounts, cpu(1)).tolist()
    assert 0 == len(scaled_to_fit(nothing, no_amounts, cpu(1)))


def test_requests_shrink_only_where_a_machine_is_crowded() -> None:
    scaled = scaled_to_fit(np.array([0, 0, 1]), cpu(1_000, 1_000, 1_000), cpu(1_000, 1_000))

    assert [500, 500, 1_000] == scaled[:, 0].tolist()


def test_what_is_scaled_fits_whatever_it_was() -> None:
    rng = np.random.default_rng(5)
    machine = rng.integers(4, size=200)
    asked = rng.integers(0, 1_000, size=(200, KINDS))
    capacity = rng.integers(0, 30_000, size=(4, KINDS))

    used = np.zeros_like(capacity)
    np.add.at(used, machine, scaled_to_fit(machine, asked, capacity))

    assert every_kind(used <= capacity).all()
