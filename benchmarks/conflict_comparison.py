"""Which of two ways conflicts less, setting by setting, and where the run cannot tell."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import sqrt
from statistics import median
from typing import Any, Final

from benchmarks.ratios import DEVIATIONS
from benchmarks.steady_state import Point
from omega.model.claims import ConflictRule, Granularity

AXES: Final = tuple(one.name for one in fields(Point))


@dataclass(frozen=True)
class Comparison:
    """Two values of one axis, of which the finer is held to conflict less."""

    axis: str
    finer: str
    coarser: str


COMPARISONS: Final = {
    "fit_and_sequence": Comparison("rule", ConflictRule.FIT.value, ConflictRule.SEQUENCE.value),
    "incremental_and_all_or_nothing": Comparison(
        "granularity", Granularity.INCREMENTAL.value, Granularity.ALL_OR_NOTHING.value
    ),
}


def compared(rows: Sequence[Mapping[str, Any]], comparison: Comparison) -> dict[str, Any]:
    """Count the settings in which the finer conflicts less; and beyond chance less, or more.

    Settings in which nobody met a conflict are left out.
    """
    settings: dict[tuple[Any, ...], dict[str, Mapping[str, Any]]] = defaultdict(dict)
    for row in rows:
        rest = tuple(row[axis] for axis in AXES if axis != comparison.axis)
        settings[rest][row[comparison.axis]] = row
    pairs = [
        (found[comparison.finer], found[comparison.coarser])
        for found in settings.values()
        if {comparison.finer, comparison.coarser} <= found.keys()
    ]
    pairs = [pair for pair in pairs if any(row["transactions_conflicted"] for row in pair)]
    by = [deviations(*pair) for pair in pairs]
    more = [finer for less, (finer, _) in zip(by, pairs, strict=True) if less < -DEVIATIONS]
    ratios = [
        coarser["conflict_fraction"] / finer["conflict_fraction"]
        for finer, coarser in pairs
        if finer["conflict_fraction"] and coarser["conflict_fraction"] is not None
    ]
    placed = [
        finer["tasks_per_s"] / coarser["tasks_per_s"]
        for finer, coarser in pairs
        if coarser["tasks_per_s"]
    ]
    return {
        "pairs": len(pairs),
        "less": sum(less > 0 for less in by),
        "significantly_less": sum(less > DEVIATIONS for less in by),
        "significantly_more": len(more),
        "conflicts_coarser_over_finer": round(median(ratios), 2) if ratios else None,
        "tasks_finer_over_coarser": round(median(placed), 2) if placed else None,
        "where_more": [{axis: row[axis] for axis in AXES} for row in more],
    }


def deviations(finer: Mapping[str, Any], coarser: Mapping[str, Any]) -> float:
    """Return by how many standard deviations the coarser one's transactions conflict more often."""
    shares = [share(finer), share(coarser)]
    spread = sqrt(
        sum(
            part * (1 - part) / row["transactions"]
            for part, row in zip(shares, (finer, coarser), strict=True)
            if row["transactions"]
        )
    )
    return (shares[1] - shares[0]) / spread if spread else 0.0


def share(row: Mapping[str, Any]) -> float:
    """Return the share of transactions that met a conflict, with one more of each kind.

    Without those, none of five would pass for certainty.
    """
    return float((row["transactions_conflicted"] + 1) / (row["transactions"] + 2))
