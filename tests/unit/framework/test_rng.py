"""Chance by name."""

import numpy as np

from omega.framework.rng import rng_for


def test_equal_words_give_equal_streams_and_others_others() -> None:
    words = [(1, 2, "a"), (1, 2, "b"), (12, "a"), (2, 1, "a"), (2**70, -1, "")]

    first = {tuple(rng_for(*one).integers(2**62, size=3).tolist()) for one in words}
    again = {tuple(rng_for(*one).integers(2**62, size=3).tolist()) for one in words}

    assert first == again
    assert len(words) == len(first)


def test_a_scheduler_may_spawn_streams_of_its_own() -> None:
    at_once, in_turn = rng_for(1, "a"), rng_for(1, "a")
    others = rng_for(1, "b").spawn(3)

    drawn = [one.random() for one in at_once.spawn(3)]
    assert drawn == [one.random() for one in [*in_turn.spawn(2), *in_turn.spawn(1)]]
    assert 7 == len({*drawn, at_once.random(), *(one.random() for one in others)})


def test_streams_of_neighbours_have_nothing_in_common() -> None:
    """The first number of each of many streams is as even as those of one stream."""
    firsts = np.array([rng_for(0, job, 0, 1, "batch-0").random() for job in range(4_000)])

    assert abs(firsts.mean() - 0.5) < 5 * (1 / 12 / len(firsts)) ** 0.5
    assert abs(np.corrcoef(firsts[1:], firsts[:-1])[0, 1]) < 5 / len(firsts) ** 0.5
