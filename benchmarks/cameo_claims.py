"""The claims on start deadlines, with what was measured here.

Goal     Judge by figures, and say by which.
Promise  The limits are those that were set before anything was measured.
Source   Xu et al., Cameo (NSDI 2021), figures as shapes; docs/papers/cameo.md.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from benchmarks.paper.claims import Claim, where

Rows = Sequence[Mapping[str, Any]]

LLF, FIFO, EDF, SJF, TOKENS = "deadline", "fifo", "deadline-edf", "deadline-sjf", "deadline-tokens"
FLAT_MAX: Final = 1.2
"""Largest ratio of the tight group's p99 to its value alone that counts as flat."""
FIFO_MIN: Final = 2.0
"""Least ratio of FIFO's p99 to that of least laxity at the highest load."""
FALL_MAX: Final = 0.1
"""By how much more than the noise alone costs success may fall from one step to the next."""
TOKEN_ERROR_MAX: Final = 0.01


def claims_of(rows: Rows, tokens: Rows) -> list[Claim]:
    """Return each claim, judged by the means over the seeds."""
    return [
        *_flat(rows),
        _fifo(rows),
        _same(rows),
        _noise(rows),
        _spike(rows),
        _tokens(tokens),
    ]


def _p99(rows: Rows, **wanted: object) -> float:
    (row,) = where(rows, **wanted)
    return float(row["tight_p99_s"])


def _loads(rows: Rows) -> list[float]:
    return sorted({row["load"] for row in where(rows, experiment="load")})


def _flat(rows: Rows) -> list[Claim]:
    alone = _p99(rows, experiment="alone")
    claims = []
    for name, order in (("least laxity", LLF), ("earliest deadlines", EDF)):
        all_p99 = [_p99(rows, experiment="load", order=order, load=it) for it in _loads(rows)]
        worst = max(all_p99) / alone
        claims.append(
            Claim(
                f"{name}: the p99 of tight pipelines is at most {FLAT_MAX:g} times that alone",
                f"{worst:.2f} times at most: {', '.join(f'{it:.1f}' for it in all_p99)} s;"
                f" alone {alone:.1f} s",
                worst <= FLAT_MAX,
            )
        )
    return claims


def _fifo(rows: Rows) -> Claim:
    load = _loads(rows)[-1]
    fifo, llf = (_p99(rows, experiment="load", order=order, load=load) for order in (FIFO, LLF))
    return Claim(
        f"FIFO's p99 is at least {FIFO_MIN:g} times that of least laxity at {load:.0%} load",
        f"{fifo / llf:.1f} times: {fifo:.1f} and {llf:.1f} s",
        fifo >= FIFO_MIN * llf,
    )


def _same(rows: Rows) -> Claim:
    load = _loads(rows)[-1]
    means = {
        order: _p99(rows, experiment="load", order=order, load=load)
        for order in (LLF, EDF, SJF, FIFO)
    }
    told = ", ".join(f"{order} {p99:.1f} s" for order, p99 in means.items())
    return Claim(
        f"at {load:.0%} load both orders by deadlines are better than SJF and FIFO",
        told,
        max(means[LLF], means[EDF]) <= min(means[SJF], means[FIFO]),
    )


def _noise(rows: Rows) -> Claim:
    mine = sorted(where(rows, experiment="noise", order=LLF), key=lambda row: row["sigma"])
    alone = {row["sigma"]: row["tight_success"] for row in where(rows, experiment="noise alone")}
    falls = [alone[row["sigma"]] - row["tight_success"] for row in mine]
    told = ", ".join(
        f"sigma {row['sigma']:g}: {row['tight_success']:.1%} (alone {alone[row['sigma']]:.1%})"
        for row in mine
    )
    steps = [after - before for before, after in pairwise(falls)]
    return Claim(
        "with costs less and less certain, least laxity loses success gradually",
        told,
        max(steps) <= FALL_MAX,
    )


def _spike(rows: Rows) -> Claim:
    mean = {row["order"]: float(row["recover_s"]) for row in where(rows, experiment="spike")}
    told = ", ".join(f"{order} {seconds:.0f} s" for order, seconds in mean.items())
    return Claim(
        "after a tenfold spike of the others, tight pipelines recover soonest by deadlines",
        told,
        max(mean[LLF], mean[EDF]) <= min(mean[SJF], mean[FIFO]),
    )


def _tokens(tokens: Rows) -> Claim:
    worst = max(row["error"] for row in tokens)
    told = ", ".join(f"{name} {done}" for name, done in tokens[0]["done"].items())
    return Claim(
        "tokens: what sources get in the long run is in proportion to their rates, within 1 %",
        f"off by {worst:.2%} at most (first seed: {told})",
        worst <= TOKEN_ERROR_MAX,
    )
