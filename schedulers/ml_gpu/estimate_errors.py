"""How far lent rates are off: each kind of a table taken in turn for one that nobody knows.

Goal     Say how much of a table can be guessed, before anybody plans by guesses.
Promise  A kind that is taken for unknown lends itself nothing. Errors are parts of its own rate
         alone, so that 0.05 beside any other kind is five per cent of what it makes undisturbed.
Source   Gavel (OSDI 2020), section 6; docs/papers/gavel.md.
"""

from dataclasses import dataclass

import numpy as np

from omega.errors import BadInput
from omega.model.arrays import Mask, Score
from schedulers.ml_gpu.estimates import drawn, kept_beside, lent, match
from schedulers.ml_gpu.throughputs import Kind, PairRates, Rates, Throughputs


@dataclass(frozen=True, eq=False)
class KindErrors:
    """Errors of one kind's rates beside each other kind on each type."""

    kind: Kind
    matched: Score
    """As lent by the kinds that it was matched to, one draw after the other."""
    best: Score
    """As lent by the kind that comes nearest on the average ..."""
    best_kind: Kind
    average: Score
    """... and by the average of all kinds."""
    itself: int
    """Draws in which it was matched to itself, where that was one of the references."""


def comparable(table: Throughputs, gpus: int) -> Throughputs:
    """Return the kinds of so many GPUs, of which each can be matched to the others.

    Raises BadInput if there are fewer than two, or if nothing is known of pairs of them.
    """
    same = table.of(table.types, [kind for kind in table.kinds if kind[1] == gpus])
    ran = [kind for kind, rate in zip(same.kinds, same.rates, strict=True) if rate.any()]
    same = same.of(same.types, ran)
    if len(same.kinds) <= 1:
        raise BadInput(f"it has fewer than two kinds of jobs on {gpus} GPUs")
    if not same.pairs.of.any():
        raise BadInput(f"it has no rates of two jobs on the same {gpus} GPUs")
    return same


def errors_of(
    table: Throughputs, kind: int, profiled: float, draws: int, rng: np.random.Generator
) -> KindErrors:
    """Return the errors of a kind that is profiled so many times beside a part of the others."""
    kept = kept_beside(table.rates, table.pairs)
    others = np.delete(np.arange(len(table.kinds)), kind)
    among = np.ix_(others, others)
    references, pairs = PairRates(kept.of[among]), PairRates(table.pairs.of[among])
    alone = table.rates[kind]
    runs = alone > 0

    def off(mine: Rates) -> Score:
        """Compare these rates with its own, on types on which it runs."""
        gaps = np.abs(mine - table.pairs.of[kind][others])[:, runs] / alone[runs]
        return np.asarray(gaps.ravel())

    nothing = np.full((len(others), len(table.types)), np.nan)
    lent_by = [lent(pairs, references, nothing, like, alone)[0] for like in range(len(others))]
    errors = [off(mine) for mine in lent_by]
    best = int(np.argmin([each.mean() for each in errors]))
    matched, itself = [], 0
    for _ in range(draws):
        profile = _profile(kept.of[kind][others], drawn(len(others), profiled, rng))
        matched.append(errors[match(references, profile)])
        whole = _profile(kept.of[kind], drawn(len(table.kinds), profiled, rng))
        itself += match(kept, whole) == kind
    return KindErrors(
        kind=table.kinds[kind],
        matched=np.concatenate(matched),
        best=errors[best],
        best_kind=table.kinds[others[best]],
        average=off(references.of.mean(axis=0) * alone),
        itself=itself,
    )


def _profile(kept: Rates, measured: Mask) -> Rates:
    """Return what a kind keeps beside those references beside which it is measured."""
    return np.where(measured[:, np.newaxis], kept, np.nan)
