"""Counts of what the replicas of `benchmarks run turns` did between two moments."""

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from omega.metrics.histogram import quantile_s
from omega.store.postgres.packing import MACHINE

COUNTED: Final = ("refreshes", "rows", "claims", "claims_refused", "attempts")
"""Totals of a process that are added up."""


@dataclass
class Counts:
    """The counts of all replicas together since their start."""

    at_s: float
    totals: Counter[str]
    ages: dict[str, Counter[str]]
    """Histogram of each replica's view ages at its refreshes."""

    def since(self, before: "Counts", dead: str) -> dict[str, Any]:
        """Return the counts since `before`, and the highest view age of the survivors."""
        ages: Counter[str] = Counter()
        for replica, counts in self.ages.items():
            if replica != dead:
                ages += counts - before.ages.get(replica, Counter())
        done = self.totals - before.totals
        return {
            "seconds": round(self.at_s - before.at_s, 3),
            **{name: int(done[name]) for name in COUNTED},
            "bytes": int(done["rows"]) * MACHINE.itemsize,
            "conflict_fraction": round(done["claims_refused"] / max(1, done["claims"]), 4),
            "oldest_s": round(quantile_s(ages, 1.0) or 0.0, 3),
        }
