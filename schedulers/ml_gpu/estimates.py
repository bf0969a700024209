"""Rates of pairs that nobody has measured: lent by the known kind that a new one is most like.

Goal     Let policies that share GPUs serve kinds of jobs that no table knows.
Promise  Arrays in, arrays out. A kind that is itself a reference and fully profiled is matched to
         itself, or to its equal, however few references there are.
Source   Gavel (OSDI 2020), section 6; docs/papers/gavel.md.
"""

from typing import Final

import numpy as np

from omega.model.arrays import Mask, Score
from schedulers.ml_gpu.throughputs import PairRates, Rates

RANK: Final = 10
"""Of the factorisation that fills gaps, if there are as many references."""
RIDGE: Final = 0.01
"""What keeps it from following few measurements too closely."""
ALIKE: Final = 1e-9
"""Cosine distances that differ by less differ by rounding."""


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
