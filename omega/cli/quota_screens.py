"""Quotas for people and for scripts.

Goal     Say what each quota allows, what is used of it and what is left, in units that people use.
Promise  What is not limited is a dash; what is used above its limit is red. The document has exact
         amounts.
Source   docs/decisions/0016-quotas.md.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.table import Table
from rich.text import Text

from omega.cli.printable import short
from omega.cli.wording import UNKNOWN
from omega.model.quotas import Budget, Quota, QuotaScope, QuotaUse
from omega.model.resources import GPU_SLICES

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
QUOTAS_SHOWN: Final = 3


def whose(quota: Quota) -> str:
    """Say whom a quota limits: tenant ann, or scheduler batch."""
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


def quotas_table(uses: Sequence[QuotaUse]) -> Table:
    """Return three lines a quota: what it allows, what is used, what is left."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("quota", overflow="fold", min_width=12)
    table.add_column("", no_wrap=True)
    for name in NAMES.values():
        table.add_column(name, justify="right", no_wrap=True)
    for use in uses:
        limits = use.quota.limits
        used = _used(use)
        note = Text("" if use.counted else "not counted: set it again", "yellow")
        table.add_row(Text(whose(use.quota)), "limit", *(amount(b, limits.get(b)) for b in Budget))
        table.add_row(note, "used", *(amount(b, used.get(b)) for b in Budget))
        table.add_row("", "left", *(_left(b, use.left.get(b)) for b in Budget))
    return table


def used_up(uses: Sequence[QuotaUse]) -> Iterator[tuple[QuotaUse, list[Budget]]]:
    """Yield the quotas of which nothing is left in some budget, and those budgets."""
    for use in uses:
        gone = [budget for budget, left in use.left.items() if left <= 0]
        if gone:
            yield use, gone


def used_up_line(uses: Sequence[QuotaUse]) -> Text | None:
    """Name the quotas that are used up, a few of them; None if there are none."""
    gone = list(used_up(uses))
    if not gone:
        return None
    told = [
        f"{whose(use.quota)} ({_names(budgets) if use.counted else 'not counted'})"
        for use, budgets in gone[:QUOTAS_SHOWN]
    ]
    more = len(gone) - QUOTAS_SHOWN
    text = "used up: " + " · ".join(told) + (f" and {more} more" if more > 0 else "")
    return Text(f"{text}; see: omega quota list", "yellow")


def left_for(tenant: str, scheduler: str, uses: Sequence[QuotaUse]) -> list[str]:
    """Say what is left of each quota that jobs of a tenant, for a kind of scheduler, draw on."""
    drawn_on = (QuotaScope.TENANT, tenant), (QuotaScope.SCHEDULER, scheduler)
    return [
        f"left for {whose(use.quota)}: "
        + ", ".join(f"{NAMES[budget]} {amount(budget, n)}" for budget, n in use.left.items())
        for use in uses
        if (use.quota.scope, use.quota.name) in drawn_on
    ]


def row_of(use: QuotaUse) -> dict[str, object]:
    """Return a quota as JSON types; what is not limited is null."""
    limits, used, left = use.quota.limits, _used(use), use.left
    return {
        "scope": use.quota.scope.value,
        "name": use.quota.name,
        "counted": use.counted,
        "limits": {b.column: limits.get(b) for b in Budget},
        "used": {b.column: used.get(b) for b in Budget},
        "left": {b.column: left.get(b) for b in Budget},
    }


def _names(budgets: Sequence[Budget]) -> str:
    return ", ".join(NAMES[budget] for budget in budgets)


def _used(use: QuotaUse) -> dict[Budget, int]:
    """Return what is used of each limited budget; nothing is known of a quota without a count."""
    limits = use.quota.limits if use.counted else {}
    return {budget: limit - use.left[budget] for budget, limit in limits.items()}


def _left(budget: Budget, number: int | None) -> Text:
    style = "" if number is None or number > 0 else "red" if number < 0 else "yellow"
    return Text(amount(budget, number), style)


def _mebibytes(number: int) -> str:
    if abs(number) < MIB_PER_GIB:
        return f"{number} MiB" if number else "0"
    if abs(number) < MIB_PER_TIB:
        return f"{_decimal(number / MIB_PER_GIB, 2)} GiB"
    return f"{_decimal(number / MIB_PER_TIB, 2)} TiB"


def _decimal(number: float, digits: int) -> str:
    text = f"{number:,.{digits}f}"
    return text.rstrip("0").rstrip(".")
