"""How far lent rates are off."""

import numpy as np
import pytest
from numpy.typing import NDArray

from omega.errors import BadInput
from schedulers.ml_gpu.estimate_errors import KindErrors, comparable, errors_of
from schedulers.ml_gpu.throughputs import PairRates, Throughputs

ALIKE, TWIN, OTHER = 0, 1, 2
KINDS = (("A", 1), ("B", 1), ("C", 1))


def a_table(kept: list[list[float]], *, times: float = 1.0, gpus: int = 1) -> Throughputs:
    """Return three kinds that keep these parts of their rates beside each other, on two types.

    The first runs on one of them; the last is so many times as fast.
    """
    alone = np.array([[10.0, 0.0], [20.0, 40.0], [100.0 * times, 10.0 * times]])
    parts: NDArray[np.float64] = np.array(kept)[:, :, np.newaxis].repeat(2, axis=2)
    kinds = tuple((model, gpus) for model, _ in KINDS)
    both_run = (alone[:, np.newaxis] > 0) & (alone > 0)
    pairs = PairRates(parts * alone[:, np.newaxis] * both_run)
    return Throughputs(("k80", "v100"), kinds, alone, alone, pairs)


BESIDE = [[0.8, 0.8, 0.4], [0.8, 0.8, 0.4], [0.5, 0.5, 0.2]]
"""The first two are alike."""


def errors(kind: int, *, draws: int = 1, times: float = 1.0) -> KindErrors:
    return errors_of(a_table(BESIDE, times=times), kind, 1.0, draws, np.random.default_rng(1))


def test_a_kind_with_a_twin_is_lent_its_own_rates() -> None:
    found = errors(ALIKE)

    assert [0, 0] == pytest.approx(found.matched)  # beside each other kind, on its only type
    assert [0, 0] == pytest.approx(found.best)
    assert KINDS[TWIN] == found.best_kind


def test_the_average_of_all_is_compared_too() -> None:
    assert [0.15, 0.1] == pytest.approx(errors(ALIKE).average)


def test_errors_are_parts_of_the_kinds_own_rate_alone() -> None:
    slow, fast = errors(OTHER), errors(OTHER, times=1_000)

    # Beside A on both types, where A does not run on the second, and beside B.
    assert [0.3, 0, 0.3, 0.3] == pytest.approx(slow.best.tolist())
    assert slow.best.tolist() == pytest.approx(fast.best.tolist())
    assert slow.matched.tolist() == pytest.approx(fast.matched.tolist())


def test_each_draw_adds_its_errors_and_may_find_the_kind_itself() -> None:
    found = errors(TWIN, draws=3)

    assert 3 * 4 == len(found.matched)
    assert 4 == len(found.best) == len(found.average)
    assert 3 == errors(OTHER, draws=3).itself


@pytest.mark.parametrize(
    ("table", "gpus", "said"),
    [
        (a_table(BESIDE), 2, "fewer than two kinds of jobs on 2 GPUs"),
        (a_table([[0.0] * 3] * 3), 1, "no rates of two jobs"),
    ],
)
def test_a_table_on_which_nothing_can_be_compared_is_refused(
    table: Throughputs, gpus: int, said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        comparable(table, gpus)


def test_kinds_of_one_size_are_compared() -> None:
    assert KINDS == comparable(a_table(BESIDE), 1).kinds
    assert (("A", 4), ("B", 4), ("C", 4)) == comparable(a_table(BESIDE, gpus=4), 4).kinds
