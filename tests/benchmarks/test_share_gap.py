"""Shares by the gap between reads at toy size, and the measures of it."""

import pytest

from benchmarks.share_gap import ARMS, MEASURES, WEIGHTS, Sample, figures_of
from tests.benchmarks.conftest import PNG, Bench


def test_each_arm_is_measured_at_each_gap(bench: Bench) -> None:
    ran = bench("share_gap")

    assert {(arm, gap) for arm in ARMS for gap in (50, 5_000)} == {
        (row["arm"], row["gap_ms"]) for row in ran.rows
    }
    for row in ran.rows:
        assert 0 < row["mean"] <= row["rms"]
        assert 0 <= row["idle"] < 1
    for arm in ARMS:
        often, seldom = [row for row in ran.rows if row["arm"] == arm]
        assert often["rms"] < seldom["rms"]
    assert {"runs": 4, "samples": 80, "violations": 0} == ran.document["digest"]
    assert "with two replicas" in ran.document["summary"]["finding"]
    assert ran.picture.startswith(PNG)


def test_a_sample_compares_each_share_with_the_fair_one() -> None:
    fair = {"a": 0.2, "b": 0.2, "c": 0.2, "d": 0.4}
    sample = Sample.of({"a": 200, "b": 100, "d": 600}, fair, 1_000)

    assert sample.off == pytest.approx((0.0, -0.5, -1.0, 0.5))
    assert sample.idle == pytest.approx(0.1)
    assert fair.keys() == WEIGHTS.keys()


def test_figures_are_of_all_samples() -> None:
    figures = figures_of([Sample((0.3, -0.3), 0.1), Sample((0.0, 0.4), 0.3)])

    assert {"mean": 0.25, "rms": (0.34 / 4) ** 0.5, "idle": 0.2} == pytest.approx(figures)
    assert figures.keys() == MEASURES.keys()
