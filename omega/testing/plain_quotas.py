"""Quotas in the slow twin: lists of integers and one rule.

Goal     A reader can check by eye what a quota refuses.
Promise  There is no array arithmetic and no shortcut.
Source   docs/decisions/0016-quotas.md.
"""

from dataclasses import dataclass, field

from omega.cell.commit_context import CommitContext
from omega.model.quotas import Budget


@dataclass
class PlainQuotas:
    """The balances of quotas, by number, and which jobs draw on which."""

    left: list[dict[Budget, int]] = field(default_factory=list)
    drawn_by: dict[int, list[int]] = field(default_factory=dict)
    running: dict[int, int] = field(default_factory=dict)
    """By job, how many of its tasks run."""

    def take(self, job: int, amounts: list[int]) -> None:
        """Charge a job's quotas for one more task."""
        for number in self.drawn_by.get(job, []):
            for budget in Budget:
                self.left[number][budget] -= sum(amounts[kind] for kind in budget.kinds)
            if self.running[job] == 0:
                self.left[number][Budget.JOBS] -= 1
        self.running[job] = self.running.get(job, 0) + 1

    def give_back(self, job: int, amounts: list[int]) -> None:
        """Give the charge of one task back to a job's quotas."""
        self.running[job] = self.running.get(job, 0) - 1
        for number in self.drawn_by.get(job, []):
            for budget in Budget:
                self.left[number][budget] += sum(amounts[kind] for kind in budget.kinds)
            if self.running[job] == 0:
                self.left[number][Budget.JOBS] += 1

    def would_be_overdrawn(self, job: int, then: "PlainQuotas") -> bool:
        """Return whether one of a job's quotas would be used above a limit, and more than now."""
        return any(
            then.left[number][budget] < min(0, self.left[number][budget])
            for number in self.drawn_by.get(job, [])
            for budget in Budget
        )


def plain_quotas(context: CommitContext) -> PlainQuotas:
    """Return a transaction's quota balances as plain quotas."""
    balances = context.quota_balances
    return PlainQuotas(
        left=[dict(zip(Budget, row, strict=True)) for row in balances.left.tolist()],
        drawn_by={job: list(rows) for job, rows in balances.drawn_by.items()},
        running=dict(balances.running),
    )
