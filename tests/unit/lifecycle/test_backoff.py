"""Back-off doubles, with jitter, up to a ceiling."""

import numpy as np
import pytest

from omega.lifecycle.backoff import delay_ms


@pytest.mark.parametrize(
    ("fruitless", "ceiling"), [(1, 100), (2, 200), (3, 400), (4, 800), (5, 1_000), (10_000, 1_000)]
)
def test_a_delay_lies_between_half_and_the_whole_of_its_ceiling(
    fruitless: int, ceiling: int
) -> None:
    rng = np.random.default_rng(1)
    delays = [delay_ms(fruitless, initial_ms=100, longest_ms=1_000, rng=rng) for _ in range(500)]

    assert ceiling // 2 <= min(delays) < ceiling * 0.55
    assert ceiling * 0.95 < max(delays) <= ceiling


def test_the_same_chance_gives_the_same_delay() -> None:
    one, same = (
        delay_ms(3, initial_ms=100, longest_ms=9_999, rng=np.random.default_rng(5))
        for _ in range(2)
    )

    assert one == same


def test_the_shortest_delay_there_is_works() -> None:
    delay = delay_ms(1, initial_ms=1, longest_ms=1, rng=np.random.default_rng(0))

    assert delay in (0, 1)


@pytest.mark.parametrize(
    ("fruitless", "initial_ms", "longest_ms"), [(0, 100, 1_000), (1, 0, 1_000), (1, 100, 99)]
)
def test_what_makes_no_sense_is_refused(fruitless: int, initial_ms: int, longest_ms: int) -> None:
    with pytest.raises(AssertionError):
        delay_ms(
            fruitless,
            initial_ms=initial_ms,
            longest_ms=longest_ms,
            rng=np.random.default_rng(0),
        )
