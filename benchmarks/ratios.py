"""Ratios of what was measured side by side: the medians of pairs, and how far they scatter."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True)
class Ratio:
    """A median of paired ratios, with the quartiles around it."""

    median: float
    lower: float
    upper: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.lower:.2f} to {self.upper:.2f})"

    def rounded(self) -> dict[str, float]:
        """Return it for a document."""
        return {name: round(value, 3) for name, value in vars(self).items()}


def paired(ours: Sequence[float], theirs: Sequence[float]) -> Ratio | None:
    """Compare round with round; None if theirs never got anywhere."""
    pairs = [one / other for one, other in zip(ours, theirs, strict=True) if other > 0]
    if not pairs:
        return None
    lower, median, upper = np.percentile(pairs, (25, 50, 75)).tolist()
    return Ratio(median, lower, upper)


def milliseconds(seconds: ArrayLike) -> dict[str, float]:
    """Return the median and the 99th percentile of some times."""
    p50, p99 = np.percentile(np.asarray(seconds) * 1_000, (50, 99)).tolist()
    return {"p50_ms": round(p50, 3), "p99_ms": round(p99, 3)}
