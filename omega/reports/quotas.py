"""Quotas: what each allows, what is used of it and what is left.

Goal     Show quotas in units that people use, and exactly for scripts.
Promise  An amount that is not limited is unknown (a dash or null), never zero. A row has exact
         amounts.
Source   docs/decisions/0016-quotas.md.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from omega.model.quotas import Budget, Quota, QuotaScope, QuotaUse
from omega.model.resources import GPU_SLICES
from omega.reports.printable import short
from omega.reports.wording import UNKNOWN

NAMES: Final = {
    Budget.CPU_MILLI: "cpu",
    Budget.MEMORY_MIB: "memory",
    Budget.DISK_MIB: "disk",
    Budget.GPU_SLICES: "gpus",
    Budget.JOBS: "jobs",
}
"""What people call the budgets; also the options that limit them."""

MIB_PER_GIB: Final = 1_024
MIB_PER_TIB: Final = 1_024**2


def whose(quota: Quota) -> str:
    """Return whose quota it is: tenant ann, or scheduler batch."""
    return f"{quota.scope.value} {short(quota.name)}"


def amount(budget: Budget, number: int | None) -> str:
    """Write an amount of a budget: cores, GiB or what is nearest, GPUs, jobs; None as a dash."""
    if number is None:
        return UNKNOWN
    match budget:
        case Budget.CPU_MILLI:
            return _decimal(number / 1_000, 3)
        case Budget.GPU_SLICES:
            return _decimal(number / GPU_SLICES, 3)
        case Budget.JOBS:
            return f"{number:,}"
        case Budget.MEMORY_MIB | Budget.DISK_MIB:
            return _mebibytes(number)


def used_up(uses: Sequence[QuotaUse]) -> Iterator[tuple[QuotaUse, list[Budget]]]:
    """Yield the quotas of which nothing is left in some budget, and those budgets."""
    for use in uses:
        gone = [budget for budget, left in use.left.items() if left <= 0]
        if gone:
            yield use, gone


def left_for(tenant: str, scheduler: str, uses: Sequence[QuotaUse]) -> list[str]:
    """Return a phrase for each quota that a tenant's jobs for a scheduler draw on: what is left."""
    drawn_on = (QuotaScope.TENANT, tenant), (QuotaScope.SCHEDULER, scheduler)
    return [
        f"left for {whose(use.quota)}: "
        + ", ".join(f"{NAMES[budget]} {amount(budget, n)}" for budget, n in use.left.items())
        for use in uses
        if (use.quota.scope, use.quota.name) in drawn_on
    ]


def row_of(use: QuotaUse) -> dict[str, object]:
    """Return a quota as JSON types; what is not limited is null."""
    limits, used, left = use.quota.limits, used_of(use), use.left
    return {
        "scope": use.quota.scope.value,
        "name": use.quota.name,
        "counted": use.counted,
        "limits": {b.column: limits.get(b) for b in Budget},
        "used": {b.column: used.get(b) for b in Budget},
        "left": {b.column: left.get(b) for b in Budget},
    }


def used_of(use: QuotaUse) -> dict[Budget, int]:
    """Return what is used of each limited budget; nothing for a quota that is not counted."""
    limits = use.quota.limits if use.counted else {}
    return {budget: limit - use.left[budget] for budget, limit in limits.items()}


def _mebibytes(number: int) -> str:
    if abs(number) < MIB_PER_GIB:
        return f"{number} MiB" if number else "0"
    if abs(number) < MIB_PER_TIB:
        return f"{_decimal(number / MIB_PER_GIB, 2)} GiB"
    return f"{_decimal(number / MIB_PER_TIB, 2)} TiB"


def _decimal(number: float, digits: int) -> str:
    text = f"{number:,.{digits}f}"
    return text.rstrip("0").rstrip(".")
