"""What is remembered of activities, and what is predicted from it."""

import json

import pytest

from schedulers.elastic.history import NAMES_MAX, History
from schedulers.elastic.model import PhaseLeft


def test_the_mean_is_by_name_and_phase() -> None:
    history = History()
    history.add("index", "map", 10, 100_000)
    history.add("index", "map", 30, 60_000)
    history.add("index", "reduce", 1, 500)
    history.add("logs", "map", 1, 1_000)

    assert 4.0 == history.mean_s("index", "map")
    assert 0.5 == history.mean_s("index", "reduce")
    assert 1.0 == history.mean_s("logs", "map")


def test_nothing_is_predicted_of_what_was_never_seen() -> None:
    history = History()
    history.add("index", "map", 0, 0)
    history.add("index", "reduce", 2, 4_000)

    assert history.mean_s("index", "map") is None
    assert history.mean_s("other", "map") is None
    assert (PhaseLeft(7, None), PhaseLeft(3, 2.0)) == history.phases_left(
        "index", [("map", 7), ("reduce", 3)]
    )


def test_a_memo_brings_it_back() -> None:
    history = History()
    history.add("index", "map", 10, 100_000)
    history.add("logs", "reduce", 3, 1)

    assert history == History.from_memo(json.loads(json.dumps(history.to_memo())))


@pytest.mark.parametrize(
    "memo",
    [
        None,
        {},
        "index",
        [1],
        [["index"]],
        [["index", []]],
        [[1, {"map": [1, 1]}]],
        [["index", {"map": [-1, 5]}]],
        [["index", {"map": [1, 10**30]}]],
        [["index", {"map": [1.5, 5]}]],
        [["index", {"map": "12"}]],
    ],
)
def test_what_nobody_wrote_is_left_out_of_a_memo(memo: object) -> None:
    assert History() == History.from_memo(memo)


def test_the_names_seen_last_are_kept() -> None:
    history = History()
    for number in range(NAMES_MAX):
        history.add(f"job {number}", "map", 1, 1_000)
    history.add("job 0", "map", 1, 1_000)
    history.add("one more", "map", 1, 1_000)

    assert NAMES_MAX == len(history.seen)
    assert history.mean_s("job 0", "map") == 1.0
    assert history.mean_s("job 1", "map") is None
