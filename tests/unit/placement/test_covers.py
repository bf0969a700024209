"""The search for covers is bounded; tests/property/test_victims.py compares its results."""

import numpy as np

from omega.placement.covers import Budget, Cover


def test_the_search_for_a_cover_ends_however_many_shapes_there_are() -> None:
    rng = np.random.default_rng(5)
    amounts = rng.integers(700, 1_400, size=(64, 2))
    budget = Budget(2_000)
    lacking = amounts.sum(axis=0) * 2 // 3

    chosen = Cover(amounts, budget).fewest(lacking)

    assert (amounts[chosen].sum(axis=0) >= lacking).all()
    assert budget.nodes > -10 * len(amounts)
