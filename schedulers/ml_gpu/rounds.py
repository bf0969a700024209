"""Rounds: who has GPUs for the next few minutes, so that over time all get what was promised.

Goal     Turn shares of time into whole GPUs for whole rounds.
Promise  Arrays in, arrays out; no clock. Whoever has had least of its share goes first; types are
         served in the order given, the faster first unless somebody wants otherwise.
Source   Gavel (OSDI 2020), section 5; the rules that its release follows, in docs/papers/gavel.md.
"""

from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from omega.model.arrays import Counts, Ids, Index, Mask, Score, integers
from schedulers.ml_gpu.problem import NOBODY, NOWHERE, Shares
from schedulers.ml_gpu.throughputs import Rates


@dataclass(frozen=True, eq=False)
class Ledger:
    """What each unit was promised and what it has had, on each type, since the last reset.

    A unit is a job, or a pair of jobs on the same GPUs.
    """

    first: Ids
    second: Ids
    """The other job of a pair, or NOBODY."""
    share: Shares
    """Share of time promised; 0 for a unit that came after the last reset."""
    received_s: Shares
    """Seconds had, with a credit to start from."""
    deficit_s: Shares
    """Seconds promised and not had, up to the last reset."""
    is_promised: Mask
    """Whether it was there at the last reset."""
    credit_s: float
    """What every unit starts with on every type: half a round in the release."""

    @classmethod
    def empty(cls, types: int, credit_s: float) -> "Ledger":
        """Return the ledger of nobody."""
        none = np.zeros((0, types))
        return cls(integers(), integers(), none, none, none, np.zeros(0, np.bool_), credit_s)

    def __len__(self) -> int:
        return len(self.first)

    def without(self, jobs: Ids) -> "Ledger":
        """Return the ledger without these jobs and their pairs."""
        stays = ~(np.isin(self.first, jobs) | np.isin(self.second, jobs))
        return Ledger(
            self.first[stays],
            self.second[stays],
            self.share[stays],
            self.received_s[stays],
            self.deficit_s[stays],
            self.is_promised[stays],
            self.credit_s,
        )

    def joined_by(self, jobs: Ids) -> "Ledger":
        """Return the ledger with new jobs, to whom nothing is promised yet."""
        shape = (len(jobs), self.share.shape[1])
        return Ledger(
            np.append(self.first, jobs),
            np.append(self.second, np.full(len(jobs), NOBODY)),
            np.vstack([self.share, np.zeros(shape)]),
            np.vstack([self.received_s, np.full(shape, self.credit_s)]),
            np.vstack([self.deficit_s, np.zeros(shape)]),
            np.append(self.is_promised, np.zeros(len(jobs), np.bool_)),
            self.credit_s,
        )

    def reset(self, first: Ids, second: Ids, share: Shares, elapsed_s: float) -> "Ledger":
        """Settle what was promised for the seconds since the last reset, and promise anew."""
        owed = self.deficit_s + self.share * elapsed_s - (self.received_s - self.credit_s)
        deficit = np.zeros_like(share)
        known = {pair: row for row, pair in enumerate(zip(self.first, self.second, strict=True))}
        for row, pair in enumerate(zip(first, second, strict=True)):
            if pair in known:
                deficit[row] = owed[known[pair]]
        received = np.full(share.shape, self.credit_s)
        there = np.ones(len(first), np.bool_)
        return Ledger(first, second, share, received, deficit, there, self.credit_s)

    def charged(self, unit: Index, type_: Index, seconds: Score) -> "Ledger":
        """Return the ledger after these units have had so many seconds on these types."""
        received = self.received_s.copy()
        np.add.at(received, (unit, type_), seconds)
        return replace(self, received_s=received)

    def priority(self, rate: Rates) -> Score:
        """Return share promised over share received, 0 where nothing is promised or runs."""
        fraction = self.received_s / np.maximum(self.received_s.sum(axis=0), 1e-300)
        least = np.maximum(fraction, 1e-280)  # by a smaller one no share can be divided
        return np.asarray(np.where(rate > 0, self.share / least, 0.0))


class LeftoverPolicy(Enum):
    """When jobs without a share of a type may have what is left over of it."""

    NEVER = "never"
    AS_MET = "as-met"  # before the next type is served, as in the release
    LAST = "last"  # when all types have been served: nobody then misses a type of its own for one


def select(
    ledger: Ledger,
    rate: Rates,
    size: Counts,
    free: Counts,
    order: Index,
    leftovers: LeftoverPolicy,
    *,
    had: Score | None = None,
    precedence: Counts | None = None,
) -> Index:
    """Return the type that each unit gets in the next round, or NOWHERE.

    Type after type in this order, by priority, then by what is owed, then by share, then by the
    highest `precedence`, then by who `had` least, then in order of arrival. A smaller unit may
    pass a bigger one that does not fit. Without `precedence` and `had` it is as in the release:
    what is left over goes to the same few again and again.
    """
    before: list[Counts | Score] = [np.arange(len(ledger))]
    before += [] if had is None else [had]
    before += [] if precedence is None else [-precedence]
    priority = ledger.priority(rate)
    on = np.full(len(ledger), NOWHERE, np.intp)
    left = free.copy()
    taken: set[int] = set()
    passes = [leftovers is LeftoverPolicy.AS_MET] + [True] * (leftovers is LeftoverPolicy.LAST)
    for fills in passes:
        for type_ in order:
            mine = (-ledger.share[:, type_], -ledger.deficit_s[:, type_], -priority[:, type_])
            for unit in np.lexsort((*before, *mine)):
                if left[type_] == 0:
                    break
                jobs = {int(ledger.first[unit]), int(ledger.second[unit])} - {NOBODY}
                if size[unit] > left[type_] or rate[unit, type_] <= 0 or jobs & taken:
                    continue
                if priority[unit, type_] > 0 or fills:
                    on[unit] = type_
                    taken |= jobs
                    left[type_] -= size[unit]
    return on


def fastest_first(table: Rates) -> Index:
    """Return the types, those on which jobs run fastest over all first."""
    ratio = table / np.maximum(table.max(axis=1, keepdims=True), 1e-300)
    return np.argsort(-ratio.mean(axis=0), kind="stable")
