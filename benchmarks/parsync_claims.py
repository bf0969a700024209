"""The claims of ParSync's authors on their strategies, with what was measured here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from benchmarks.paper.claims import Claim, where
from benchmarks.parsync_cell import APART, AT_ONCE, SAME, WHOLE

Rows = Sequence[Mapping[str, Any]]

THRESHOLD_S: Final = 1.5
NEAR: Final = 1.25
"""Largest ratio of a delay to its threshold that counts as near."""
LATENCY_S_MAX: Final = 0.75
"""Longest delay that the paper shows for latency-first in its last phase."""
STEADY: Final = 2
"""The phase of constant load in which as many tasks end as start."""
CLOSE: Final = 0.05
FORMULA_ERROR_MAX: Final = 0.01
BY_DELAY: Final = ("latency-first", "adaptive", "quality-first", "StateSync")


@dataclass(frozen=True)
class Formula:
    """Conflicts in one round, by the formula and by simulation."""

    expected: float
    drawn: float


def claims_of(rows: Rows, formula: Formula) -> list[Claim]:
    """Return each claim, judged by the rows."""
    return [
        Claim(
            "conflicts follow N K - S + S (1 - K / S)^N",
            f"{formula.expected:.1f} by the formula, {formula.drawn:.1f} drawn",
            abs(formula.drawn / formula.expected - 1) <= FORMULA_ERROR_MAX,
        ),
        *(_order(rows, "groups", 3, group) for group in "AB"),
        _order(rows, "five phases", 3, "A"),
        *_of_delays(rows),
        *_of_quality(rows),
        *(
            _apart(rows, arm, *others)
            for arm in ("quality-first", "latency-first")
            for others in ((AT_ONCE, SAME), (WHOLE,))
        ),
        _hidden(rows),
    ]


def _order(rows: Rows, experiment: str, phase: int, group: str) -> Claim:
    delays = [_of(rows, "delay_s", experiment, arm, phase, group) for arm in BY_DELAY]
    told = ", ".join(f"{arm} {_s(delay)}" for arm, delay in zip(BY_DELAY, delays, strict=True))
    return Claim(
        f"delay: {' < '.join(BY_DELAY)} ({experiment}, phase {phase}, group {group})",
        told,
        all(one < other for one, other in pairwise(delays)),
    )


def _of_delays(rows: Rows) -> list[Claim]:
    adaptive, latency = (
        max(_of(rows, "delay_s", "groups", arm, 3, group) for group in "AB")
        for arm in ("adaptive", "latency-first")
    )
    return [
        Claim(
            f"adaptive is capped near its threshold of {THRESHOLD_S} s, when the cell is full",
            _s(adaptive),
            adaptive <= NEAR * THRESHOLD_S,
        ),
        Claim(
            f"latency-first stays below {LATENCY_S_MAX} s, when the cell is full",
            _s(latency),
            latency < LATENCY_S_MAX,
        ),
    ]


def _of_quality(rows: Rows) -> list[Claim]:
    a, b = (_of(rows, "quality", "groups", "adaptive", 2, group) for group in "AB")
    spread = {
        arm: _of(rows, "quality_sd", "groups", arm, 3, "A")
        for arm in ("latency-first", "quality-first", "adaptive")
    }
    ours, theirs = (
        _of(rows, "quality", "five phases", arm, 1, "A") for arm in ("quality-first", "StateSync")
    )
    return [
        Claim(
            "where only A is full, adaptive B has the better slots",
            f"A {a:.3f}, B {b:.3f}",
            b > a,
        ),
        Claim(
            "quality varies more with quality-first than with latency-first, most with adaptive",
            ", ".join(f"{arm} {value:.3f}" for arm, value in spread.items()),
            all(one < other for one, other in pairwise(spread.values())),
        ),
        Claim(
            "quality-first has nearly the quality of StateSync, at half load",
            f"{ours:.3f}, StateSync {theirs:.3f}",
            abs(ours / theirs - 1) <= CLOSE,
        ),
    ]


def _apart(rows: Rows, arm: str, *others: str) -> Claim:
    found = {
        reads: _conflicts(where(rows, experiment="reading", arm=arm, reads=reads, phase=STEADY))
        for reads in (*others, APART)
    }
    return Claim(
        f"{arm}: fewer conflicts where parts are read {APART} than {' or '.join(others)}",
        ", ".join(f"{reads} {value:.3f}" for reads, value in found.items()),
        found[APART] < min(found[reads] for reads in others),
    )


def _hidden(rows: Rows) -> Claim:
    told, more = [], []
    for row in where(rows, experiment="refusals", group="A", phase=STEADY):
        arm: dict[str, object] = {"arm": row["arm"], "reads": row["reads"], "phase": STEADY}
        same = where(rows, experiment="reading", **arm)
        without = where(rows, experiment="refusals", **arm)
        more.append(_conflicts(without) > _conflicts(same))
        told.append(
            f"{row['arm']}, {row['reads']}: {_conflicts(same):.3f}, {_conflicts(without):.3f}"
            " without"
        )
    return Claim(
        "fresh rows of refusals hide that parts are stale (our own question)",
        "; ".join(told),
        all(more),
    )


def _conflicts(rows: Rows) -> float:
    claims = sum(row["claims"] for row in rows)
    return float(sum(row["conflict_fraction"] * row["claims"] for row in rows) / max(1, claims))


def _of(rows: Rows, measure: str, experiment: str, arm: str, phase: int, group: str) -> float:
    """Return a measure; infinity where nothing was placed."""
    (row,) = where(rows, experiment=experiment, arm=arm, phase=phase, group=group)
    return float("inf") if row[measure] is None else float(row[measure])


def _s(seconds: float) -> str:
    return f"{seconds:.2f} s"
