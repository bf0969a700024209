"""What a job needs of its quotas to get on, and what is left of them.

Goal     Say which budget of which quota a job waits for, and by how much to raise it.
Promise  The need is the least with which the job gets on: one task, or what its gang lacks. A job
         of a scheduler that commits all or nothing needs more, which is not told here.
Source   docs/decisions/0016-quotas.md; omega/framework/quota_admission.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote

import numpy as np

from omega.model.arrays import Amounts
from omega.model.jobs import LeasedJob, TaskGroup
from omega.model.quotas import BUDGETS, Budget, QuotaScope, QuotaUse, cost
from omega.model.resources import GPU_SLICES
from omega.placement.groups import waiting_groups
from omega.reports.quotas import NAMES, amount, used_of, whose


@dataclass(frozen=True)
class QuotaNeed:
    """One budget of a quota that a job draws on."""

    use: QuotaUse
    budget: Budget
    need: int
    """What the job needs of it to get on."""
    left: int
    """What is left of it; below 0 where a limit was lowered."""

    @property
    def suffices(self) -> bool:
        """Whether enough is left, and has been counted."""
        return self.use.counted and self.need <= max(0, self.left)

    def __str__(self) -> str:
        return f"{NAMES[self.budget]} of {whose(self.use.quota)}"

    @property
    def figures(self) -> str:
        """What is needed and what is left, as a phrase."""
        need, left = amount(self.budget, self.need), amount(self.budget, self.left)
        return f"needs {need}, {left} left"


def quota_needs(job: LeasedJob, running: int, uses: Sequence[QuotaUse]) -> list[QuotaNeed]:
    """Return what a job needs of each limited budget of its quotas, with what is left.

    Of an incremental job with several groups, it is the need of a task for which enough is left, or
    of the first one if there is none.
    """
    drawn_on = [it for it in uses if _draws_on(job, it)]
    if job.lacking > 1:
        return _needs(drawn_on, _of_gang(job), running)
    each = [
        _needs(drawn_on, _cost_of(job.spec.groups[group]), running) for group in waiting_groups(job)
    ]
    covered = (needs for needs in each if all(need.suffices for need in needs))
    return next(covered, each[0] if each else [])


def raised(needs: Sequence[QuotaNeed]) -> str:
    """Return the command that raises a quota by what a job lacks of it; other limits stay."""
    use = needs[0].use
    lacking = {need.budget: need.need for need in needs}
    used = used_of(use) or dict.fromkeys(use.quota.limits, 0)
    limits = {
        budget: max(limit, used[budget] + lacking.get(budget, 0))
        for budget, limit in use.quota.limits.items()
    }
    said = " ".join(f"--{NAMES[budget]} {_typed(budget, n)}" for budget, n in limits.items())
    quota = use.quota
    return f"omega quota set --{quota.scope.value} {quote(quota.name)} {said}"


def _typed(budget: Budget, number: int) -> str:
    match budget:
        case Budget.CPU_MILLI:
            return f"{number}m"
        case Budget.MEMORY_MIB | Budget.DISK_MIB:
            return f"{number}MiB"
        case Budget.GPU_SLICES:
            return f"{number / GPU_SLICES:g}"
        case Budget.JOBS:
            return f"{number}"


def _draws_on(job: LeasedJob, use: QuotaUse) -> bool:
    scope, name = use.quota.scope, use.quota.name
    return name == (job.spec.tenant if scope is QuotaScope.TENANT else job.spec.scheduler)


def _needs(uses: Sequence[QuotaUse], asked: Amounts, running: int) -> list[QuotaNeed]:
    need = asked.copy()
    need[Budget.JOBS] = not running
    return [
        QuotaNeed(use, budget, int(need[budget]), left)
        for use in uses
        for budget, left in use.left.items()
    ]


def _of_gang(job: LeasedJob) -> Amounts:
    ends = np.cumsum([group.tasks for group in job.spec.groups])
    before = np.searchsorted(job.unplaced[: job.lacking], ends)
    tasks = np.diff(before, prepend=0).tolist()
    need = np.zeros(BUDGETS, dtype=np.int64)
    for group, number in zip(job.spec.groups, tasks, strict=True):
        need += number * _cost_of(group)
    return need


def _cost_of(group: TaskGroup) -> Amounts:
    asked = cost(group.demand)
    asked[Budget.GPU_SLICES] += group.gpus * group.gpu_slices
    return asked
