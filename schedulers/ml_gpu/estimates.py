"""Rates that nobody has measured beforehand: learnt while jobs run, or lent by a kind like them.

Goal     Let policies that need rates serve jobs that no table knows, alone and sharing GPUs.
Promise  Arrays in, arrays out. A kind that is itself a reference and fully profiled is matched to
         itself, or to its equal, however few references there are; two that once failed together
         are never said to fit again.
Source   Gavel (OSDI 2020), section 6; docs/papers/gavel.md.
"""

from typing import Final

import numpy as np

from omega.model.arrays import Index, Mask, Score
from omega.workload.throughputs import PairRates, Rates

ALPHA: Final = 0.5
"""Weight of the newest rate among all that were seen."""
RANK: Final = 10
"""Of the factorisation that fills gaps, if there are as many references."""
RIDGE: Final = 0.01
"""What keeps it from following few measurements too closely."""
ALIKE: Final = 1e-9
"""Cosine distances that differ by less differ by rounding."""


def first_rates(table: Rates, kind: Index, reference: Index, override: Rates) -> Rates:
    """Return the rates that each job is believed to have before it ran: (jobs, types).

    Those of its kind, which is -1 for one that the table does not know; then those of the kind
    that it was matched to, or 1 step/s if that is -1 too. What `override` says of a job, where it
    is not NaN, comes first.
    """
    row = np.where(kind >= 0, kind, reference)
    known = np.ones(override.shape)
    known[row >= 0] = table[row[row >= 0]]
    return np.where(np.isnan(override), known, override)


def observe(
    rates: Rates,
    job: Index,
    type_: Index,
    steps: Score,
    seconds: Score,
    *,
    alpha: float = ALPHA,
) -> Rates:
    """Return the rates after a round in which each of these jobs ran on one type.

    One that was given no time has shown nothing.
    """
    assert len(np.unique(job)) == len(job), "in a round a job runs on one type"
    ran = seconds > 0
    at = job[ran], type_[ran]
    learnt = rates.copy()
    learnt[at] += alpha * (steps[ran] / seconds[ran] - rates[at])
    return learnt


def observe_pairs(
    pairs: PairRates,
    first: Index,
    second: Index,
    type_: Index,
    rate: Rates,
    *,
    alpha: float = ALPHA,
) -> PairRates:
    """Return the pairs' rates after a round; `rate` has those of the first and the second.

    A rate of 0 says that the two failed together: they don't fit, for good.
    """
    beside = np.array(pairs.of)
    there, back = (first, second, type_), (second, first, type_)
    fits = (rate > 0).all(axis=1) & (beside[there] > 0) & (beside[back] > 0)
    for at, seen in ((there, rate[:, 0]), (back, rate[:, 1])):
        beside[at] = np.where(fits, beside[at] + alpha * (seen - beside[at]), 0.0)
    return PairRates(beside)


def kept_beside(rates: Rates, pairs: PairRates) -> PairRates:
    """Return the fraction of its own rate that each kind keeps beside each other, 0 to 1."""
    alone = rates[:, np.newaxis]
    kept = np.divide(pairs.of, alone, out=np.zeros(pairs.of.shape), where=alone > 0)
    return PairRates(np.clip(kept, 0.0, 1.0))


def drawn(references: int, part: float, rng: np.random.Generator) -> Mask:
    """Draw the references beside which a new kind is profiled: this part of them, at least one."""
    profiled = np.zeros(references, np.bool_)
    number = max(1, round(part * references))
    profiled[rng.choice(references, number, replace=False)] = True
    return profiled


def filled(references: PairRates, profile: Rates) -> Rates:
    """Return a profile without gaps, where NaN was: (references, types), 0 to 1.

    References are fully known, so their best factors of low rank are; a row of weights on them is
    fitted to what was measured, and says the rest.
    """
    rows = references.of.reshape(len(references.of), -1)
    profile_row = profile.ravel()
    measured = ~np.isnan(profile_row)
    _, strength, factor = np.linalg.svd(rows, full_matrices=False)
    factors = (np.sqrt(strength)[:, np.newaxis] * factor)[:RANK]
    seen = factors[:, measured]
    weight = np.linalg.solve(
        seen @ seen.T + RIDGE * np.eye(len(factors)), seen @ profile_row[measured]
    )
    said = np.where(measured, profile_row, weight @ factors)
    return np.clip(said, 0.0, 1.0).reshape(profile.shape)


def match(references: PairRates, profile: Rates) -> int:
    """Return the reference that a new kind is most like, by cosine distance.

    `profile` holds what it keeps beside each reference on each type, NaN where that was not
    measured. Of those in the same direction it is the one of most equal length; a kind that fits
    beside nobody is like those that do not either.
    """
    assert references.of.shape[1:] == profile.shape, "a column for each reference and type"
    assert profile.size, "there is nobody to be like"
    rows = references.of.reshape(len(references.of), -1)
    row = filled(references, profile).ravel()
    length = np.linalg.norm(rows, axis=1) * np.linalg.norm(row)
    cosine = np.divide(rows @ row, length, out=np.zeros(len(rows)), where=length > 0)
    distance = np.where(length > 0, 1.0 - cosine, 1.0 - (rows == row).all(axis=1))
    apart = np.linalg.norm(rows - row, axis=1)
    return int(np.argmin(np.where(distance <= distance.min() + ALIKE, apart, np.inf)))


def lent(
    pairs: PairRates, references: PairRates, profile: Rates, like: int, isolated: Score
) -> tuple[Rates, Rates]:
    """Return a new kind's rates beside each reference, and theirs: (references, types) each.

    What was measured stands; the rest is what the kind that it is like keeps, of the new one's
    own rates. Theirs are what they have beside the one it is like.
    """
    kept = np.where(np.isnan(profile), references.of[like], profile)
    mine, theirs = kept * isolated, pairs.of[:, like]
    fits = (mine > 0) & (theirs > 0)
    return np.where(fits, mine, 0.0), np.where(fits, theirs, 0.0)
