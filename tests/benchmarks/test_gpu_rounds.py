"""Rounds on a live cell, at toy size; and what is counted, on a history of our own making."""

import numpy as np
import pytest

from benchmarks.postgres.rounds import Intervals
from benchmarks.shares import compared, had, until_within
from omega.errors import InvariantBroken
from tests.benchmarks.conftest import PNG, Bench


def test_rounds_are_played_beside_others_and_through_a_death(bench_on_server: Bench) -> None:
    ran = bench_on_server("gpu_rounds")
    summary = ran.document["summary"]

    assert summary["rounds"] == len(ran.rows) > 1
    assert 3 == summary["killed"]["after"]
    dead = summary["killed"]["replica"][-1]
    assert dead != ran.rows[-1]["replica"], "somebody else goes on"
    assert summary["rounds"] == sum(summary["rounds_by"].values())
    assert summary["granted"] == sum(row["granted"] for row in ran.rows) >= 12
    assert summary["evicted"] > 0, "twelve jobs want more than twelve GPUs"
    for row in ran.rows:
        assert 0 <= row["mean"] <= row["furthest"] <= 1
    assert "12 training jobs" in summary["finding"]
    assert ran.picture.startswith(PNG)


def test_time_had_is_counted_by_job_and_type_within_the_window() -> None:
    ran = Intervals(
        job=np.array([1, 1, 1, 2, 2]),
        task=np.array([0, 1, 0, 0, 0]),
        machine=np.array([1, 1, 2, 2, 1]),
        began_s=np.array([0.0, 0.0, 4.0, 0.0, 11.0]),
        ended_s=np.array([4.0, 4.0, 9.0, 4.0, 12.0]),
    )

    counted = had(ran, [1, 2], np.array([0, 1]), 2.0, 10.0)

    assert [[2 / 8, 5 / 8], [0.0, 2 / 8]] == counted.tolist()


@pytest.mark.parametrize(
    ("furthest", "expected"), [([0.9, 0.05, 0.04], 2), ([0.9, 0.04, 0.06], None), ([0.01], 1)]
)
def test_shares_are_reached_when_nobody_leaves_them_again(
    furthest: list[float], expected: int | None
) -> None:
    assert expected == until_within([{"furthest": off} for off in furthest])


def test_a_cell_on_which_nothing_was_trained_is_no_result() -> None:
    none, never = np.zeros(0, np.int64), np.zeros(0)
    nothing = Intervals(none, none, none, never, never)
    commits = [{"at_s": 0.0, "replica": "a", "granted": 0, "refused": 5, "evicted": 0}]

    with pytest.raises(InvariantBroken, match="nothing was trained"):
        compared(nothing, {"ml-gpu": commits}, {"share": [], "jobs": []}, [], machines=(1, 1))
