"""A histogram of durations with fixed, log-spaced buckets, which can be added to others.

Goal     Compute p50 and p90 of millions of waits from a few hundred numbers.
Promise  Bounded in size. A quantile is within 6 % of the true one, from 0.1 ms to a day. Histograms
         of several processes add up to the histogram of them all.
Source   HdrHistogram and Prometheus; the quantile is the element of rank floor(q (n - 1)).
"""

import math
from collections.abc import Iterable, Mapping

SHORTEST_S = 1e-4
BUCKETS_PER_DECADE = 20
LONGEST_S = 1e5
_STEP = math.log(10) / BUCKETS_PER_DECADE
BUCKETS = BUCKETS_PER_DECADE * round(math.log10(LONGEST_S / SHORTEST_S))
"""Number of the last bucket, which also holds all longer durations; bucket 0 is for those below
SHORTEST_S."""

Buckets = Mapping[str, int]
"""Counts by bucket number, without zeros; the numbers are texts, as keys in JSON must be."""


class Histogram:
    """Counts durations by size."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def add(self, seconds: float) -> None:
        """Count one duration."""
        bucket = bucket_of(seconds)
        self._counts[bucket] = self._counts.get(bucket, 0) + 1

    def buckets(self) -> dict[str, int]:
        """Return the counts by bucket, for JSON and for merging."""
        return {str(bucket): count for bucket, count in sorted(self._counts.items())}


def bucket_of(seconds: float) -> int:
    """Return the number of a duration's bucket."""
    if seconds < SHORTEST_S:
        return 0
    return min(BUCKETS, 1 + math.floor(math.log(seconds / SHORTEST_S) / _STEP))


def is_bucket(name: str) -> bool:
    """Return whether a text is the number of a bucket."""
    return name.isascii() and name.isdecimal() and len(name) < 10 and int(name) <= BUCKETS  # noqa: PLR2004


def upper_bound_s(bucket: int) -> float:
    """Return the upper bound of a bucket, in seconds; infinity for the last."""
    return math.inf if bucket >= BUCKETS else SHORTEST_S * math.exp(_STEP * bucket)


def quantile_s(buckets: Buckets, share: float) -> float | None:
    """Return the duration below which this share of all durations lies; None without any."""
    assert 0 <= share <= 1
    counts = _ascending(buckets)
    rank = math.floor(share * (sum(count for _, count in counts) - 1))
    for bucket, count in counts:
        if rank < count:
            return _middle_s(bucket)
        rank -= count
    return None


def cumulated(buckets: Buckets, bounds_s: Iterable[float]) -> list[tuple[float, int]]:
    """Return (bound, count of durations below it) for each bound.

    The counts are exact for bounds that are upper bounds of buckets.
    """
    counts = _ascending(buckets)
    return [
        (bound, sum(count for bucket, count in counts if upper_bound_s(bucket) <= bound * 1.000001))
        for bound in bounds_s
    ]


def _ascending(buckets: Buckets) -> list[tuple[int, int]]:
    return sorted((int(bucket), count) for bucket, count in buckets.items())


def _middle_s(bucket: int) -> float:
    return 0.0 if bucket == 0 else SHORTEST_S * math.exp(_STEP * (bucket - 0.5))
