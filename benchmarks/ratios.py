"""Ratios of paired measurements: their medians with confidence intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import median
from typing import Final

import numpy as np
from numpy.typing import ArrayLike

DEVIATIONS: Final = 1.96
"""Standard deviations of a normal distribution that enclose 95 %."""


@dataclass(frozen=True)
class Ratio:
    """A median of paired ratios and its 95 % interval: for few pairs, the least and the largest."""

    median: float
    lower: float
    upper: float

    def rounded(self) -> dict[str, float]:
        """Return the ratio for a document."""
        return {name: round(value, 3) for name, value in vars(self).items()}


def paired(ours: Sequence[float], theirs: Sequence[float]) -> Ratio | None:
    """Return the ratio of `ours` to `theirs`, pair by pair; None if all of `theirs` are 0."""
    pairs = [one / other for one, other in zip(ours, theirs, strict=True) if other > 0]
    if not pairs:
        return None
    # How many of n pairs lie below the true median is binomial, nearly n / 2 +- sqrt(n) / 2.
    pairs.sort()
    number, reach = len(pairs), DEVIATIONS * sqrt(len(pairs))
    first, last = round((number - reach) / 2), round((number + reach) / 2 + 1)
    return Ratio(median(pairs), pairs[max(first, 1) - 1], pairs[min(last, number) - 1])


def milliseconds(seconds: ArrayLike) -> dict[str, float]:
    """Return the median and the 99th percentile of some times."""
    p50, p99 = np.percentile(np.asarray(seconds) * 1_000, (50, 99)).tolist()
    return {"p50_ms": round(p50, 3), "p99_ms": round(p99, 3)}
