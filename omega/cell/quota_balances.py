"""The quotas that a transaction's jobs are charged to, before and in the middle of a commit.

Goal     Let no claim raise what a tenant or a kind of scheduler holds above its limit.
Promise  Without quotas nothing is computed. Accounts are never changed: an exchange gives new ones,
         so a broken gang is undone by discarding the new balances.
Source   docs/decisions/0016-quotas.md.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from omega.model.arrays import Amounts, Ids, freeze
from omega.model.claims import Transaction
from omega.model.quotas import BUDGETS, Budget, cost


@dataclass(frozen=True, eq=False)
class QuotaBalances:
    """What is left of the quotas that the jobs of a transaction and its evictions draw on."""

    left: Amounts
    """(quotas, budgets); negative where a limit was lowered below what is used."""
    drawn_by: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """By job, which rows of `left` it is charged to; a job without quotas is not there."""
    running: Mapping[int, int] = field(default_factory=dict)
    """By job that is there, how many live allocations it has."""

    def __post_init__(self) -> None:
        assert self.left.shape[1:] == (BUDGETS,)
        assert self.drawn_by.keys() <= self.running.keys()
        freeze(self.left)

    def cover(self, transaction: Transaction) -> bool:
        """Say whether no quota can refuse anything, however the claims are judged.

        Alternates are counted as if they were asked for as well.
        """
        if not self.drawn_by:
            return True
        claims, others = transaction.claims, transaction.claims.alternates
        need = np.zeros_like(self.left)
        for part in transaction.jobs:
            rows = self.drawn_by.get(part.job, ())
            if rows:
                ours = (others.claim >= part.claims.start) & (others.claim < part.claims.stop)
                shape = np.concatenate([claims.shape[part.claims], others.shape[ours]])
                asked = cost(claims.shapes[shape]).sum(axis=0)
                asked[Budget.JOBS] = not self.running[part.job]
                need[list(rows)] += asked
        return not (need > np.maximum(self.left, 0)).any()

    def after(
        self, job: int, demand: Amounts, evicted: Ids, given_back: Amounts
    ) -> "QuotaBalances | None":
        """Return the accounts once a job's claim has taken what others gave back for it.

        `evicted` has the job of each evicted allocation and `given_back` its amounts. None if the
        exchange would raise the use of one of the job's quotas above its limit.
        """
        if not self.drawn_by:
            return self
        left, running = self.left.copy(), dict(self.running)
        lost = Counter(evicted.tolist())
        for other, tasks in lost.items():
            if other in self.drawn_by:
                running[other] -= tasks
                freed = cost(given_back[evicted == other]).sum(axis=0)
                freed[Budget.JOBS] = not running[other]
                left[list(self.drawn_by[other])] += freed
        rows = list(self.drawn_by.get(job, ()))
        if rows:
            asked = cost(demand)
            asked[Budget.JOBS] = not running[job]
            running[job] += 1
            left[rows] -= asked
            if ((left[rows] < 0) & (left[rows] < self.left[rows])).any():
                return None
        return QuotaBalances(left, self.drawn_by, running)


NO_QUOTA_BALANCES = QuotaBalances(np.zeros((0, BUDGETS), np.int64))
