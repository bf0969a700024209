"""Quantiles from a bounded number of counts."""

import json

import numpy as np
import pytest

from omega.metrics.facts import merge
from omega.metrics.histogram import (
    BUCKETS,
    LONGEST_S,
    SHORTEST_S,
    Histogram,
    bucket_of,
    cumulated,
    quantile_s,
    upper_bound_s,
)


def a_histogram(durations_s: list[float]) -> Histogram:
    histogram = Histogram()
    for seconds in durations_s:
        histogram.add(seconds)
    return histogram


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.99, 1.0])
def test_a_quantile_is_within_six_percent_of_the_true_one(share: float) -> None:
    durations = np.random.default_rng(3).lognormal(mean=0.0, sigma=2.0, size=5_000)
    true = np.sort(durations)[int(share * 4_999)]

    estimate = quantile_s(a_histogram(durations.tolist()).buckets(), share)

    assert true == pytest.approx(estimate, rel=0.06)


def test_no_durations_have_no_quantile() -> None:
    assert quantile_s({}, 0.5) is None


def test_a_wait_too_short_to_matter_counts_as_none() -> None:
    assert 0.0 == quantile_s(a_histogram([0.0, 0.00001]).buckets(), 0.9)


def test_nothing_is_too_long_to_count() -> None:
    buckets = a_histogram([1e12]).buckets()

    assert {str(BUCKETS): 1} == buckets
    assert quantile_s(buckets, 0.5) == pytest.approx(LONGEST_S, rel=0.2)


def test_each_duration_lies_below_the_bound_of_its_bucket_and_above_that_before() -> None:
    for seconds in np.random.default_rng(4).lognormal(sigma=3.0, size=1_000).tolist():
        bucket = bucket_of(seconds)

        assert bucket == 0 or upper_bound_s(bucket - 1) <= seconds * (1 + 1e-9)
        assert seconds < upper_bound_s(bucket) * (1 + 1e-9)


def test_histograms_add_up_through_json_to_the_histogram_of_all() -> None:
    here, there = [0.001, 0.1, 5.0], [0.1, 70.0]
    parts = [json.loads(json.dumps(a_histogram(some).buckets())) for some in (here, there)]

    merged = merge(*({"waits": part} for part in parts))

    assert a_histogram(here + there).buckets() == {
        name: merged["waits"][name] for name in sorted(merged["waits"], key=int)
    }


def test_counts_below_a_bound_of_a_bucket_are_exact() -> None:
    buckets = a_histogram([0.00005, 0.05, 0.5, 5.0]).buckets()

    assert [(SHORTEST_S, 1), (0.1, 2), (1.0, 3), (10.0, 4)] == cumulated(
        buckets, [SHORTEST_S, 0.1, 1.0, 10.0]
    )
