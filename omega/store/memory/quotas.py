"""The quotas of a memory store, and how much of each is used.

Goal     Know at each commit what the jobs of a tenant or of a kind of scheduler hold.
Promise  Use is summed up from the allocations when a quota is set, and updated with each change
         after that. A store without quotas sums up nothing.
Source   docs/decisions/0016-quotas.md.
"""

from collections.abc import Collection, Mapping

import numpy as np

from omega.cell.quota_balances import NO_QUOTA_BALANCES, QuotaBalances
from omega.model.allocations import Allocations
from omega.model.arrays import Amounts, Ids
from omega.model.quotas import BUDGETS, Budget, Quota, QuotaScope, QuotaUse, cost
from omega.store.memory.job_records import JobRecord
from omega.store.status import Violation

_Key = tuple[QuotaScope, str]


class QuotaTable:
    """All quotas; `jobs` are all jobs of the store by id."""

    def __init__(self, jobs: Mapping[int, JobRecord]) -> None:
        self._jobs = jobs
        self._quotas: dict[_Key, Quota] = {}
        self._used: dict[_Key, Amounts] = {}
        self._running: dict[int, int] = {}
        """By job, how many tasks run; kept only while there are quotas."""

    def set(self, quota: Quota, live: Allocations) -> None:
        """Set a quota or change its limits; sum up its use from all allocations."""
        self._quotas[quota.scope, quota.name] = quota
        self._recount(live)

    def remove(self, scope: QuotaScope, name: str) -> bool:
        """Remove a quota; return False if there was none."""
        self._used.pop((scope, name), None)
        return self._quotas.pop((scope, name), None) is not None

    def uses(self) -> list[QuotaUse]:
        """Return all quotas with what is left of each, by scope and name."""
        ordered = sorted(self._quotas, key=lambda key: (key[0].value, key[1]))
        rows = {key: self._quotas[key].row for key in ordered}
        return [QuotaUse.of_rows(*key, row, row - self._used[key]) for key, row in rows.items()]

    def charge(self, job: Ids, amounts: Amounts, *, sign: int) -> None:
        """Charge allocations that begin (`sign` 1) or end (-1): `amounts` is (tasks, kinds)."""
        if not self._quotas:
            return
        numbers, at, tasks = np.unique(job, return_inverse=True, return_counts=True)
        costs = np.zeros((len(numbers), BUDGETS), np.int64)
        np.add.at(costs, at, cost(amounts))
        for number, its_cost, its_tasks in zip(
            numbers.tolist(), costs, tasks.tolist(), strict=True
        ):
            before = self._running.get(number, 0)
            after = before + sign * its_tasks
            its_cost[Budget.JOBS] = (before == 0) != (after == 0)
            for key in self._keys(number):
                self._used[key] += sign * its_cost
            self._running[number] = after
            if not after:
                del self._running[number]

    def balances(self, jobs: Collection[int]) -> QuotaBalances:
        """Return the balances of the quotas that these jobs draw on."""
        if not self._quotas:
            return NO_QUOTA_BALANCES
        drawn = {job: keys for job in jobs if job in self._jobs and (keys := self._keys(job))}
        rows = {key: row for row, key in enumerate({k for keys in drawn.values() for k in keys})}
        left = [self._quotas[key].row - self._used[key] for key in rows]
        return QuotaBalances(
            left=np.array(left, np.int64).reshape(-1, BUDGETS),
            drawn_by={job: tuple(rows[key] for key in keys) for job, keys in drawn.items()},
            running={job: self._running.get(job, 0) for job in drawn},
        )

    def broken(self, live: Allocations) -> list[Violation]:
        """Sum up all use from the allocations; return the quotas whose recorded use differs."""
        anew = QuotaTable(self._jobs)
        anew._quotas = self._quotas
        anew._recount(live)
        return [
            Violation(
                "what is left of a quota is the limit less what its jobs hold",
                f"quota of {key[0].value} {key[1]}",
                f"{self._used[key].tolist()} used, {anew._used[key].tolist()} allocated",
            )
            for key in self._quotas
            if (self._used[key] != anew._used[key]).any()
        ]

    def _keys(self, job: int) -> list[_Key]:
        spec = self._jobs[job].spec
        keys = [(QuotaScope.TENANT, spec.tenant), (QuotaScope.SCHEDULER, spec.scheduler)]
        return [key for key in keys if key in self._quotas]

    def _recount(self, live: Allocations) -> None:
        self._running.clear()
        self._used = {key: np.zeros(BUDGETS, np.int64) for key in self._quotas}
        self.charge(live.job, live.amounts, sign=1)
