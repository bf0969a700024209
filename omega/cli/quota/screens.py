"""Quotas as a person reads them.

Goal     Let a tenant see at a glance what is left.
Promise  What is not limited is a dash; what is used above its limit is red.
Source   omega.reports.quotas.
"""

from collections.abc import Sequence
from typing import Final

from rich.table import Table
from rich.text import Text

from omega.model.quotas import Budget, QuotaUse
from omega.reports.quotas import NAMES, amount, used_of, used_up, whose

QUOTAS_SHOWN: Final = 3


def quotas_table(uses: Sequence[QuotaUse]) -> Table:
    """Return a table with three lines per quota: its limits, what is used, what is left."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("quota", overflow="fold", min_width=12)
    table.add_column("", no_wrap=True)
    for name in NAMES.values():
        table.add_column(name, justify="right", no_wrap=True)
    for use in uses:
        limits = use.quota.limits
        used = used_of(use)
        note = Text("" if use.counted else "not counted: set it again", "yellow")
        table.add_row(Text(whose(use.quota)), "limit", *(amount(b, limits.get(b)) for b in Budget))
        table.add_row(note, "used", *(amount(b, used.get(b)) for b in Budget))
        table.add_row("", "left", *(_left(b, use.left.get(b)) for b in Budget))
    return table


def used_up_line(uses: Sequence[QuotaUse]) -> Text | None:
    """Return a line with the first few quotas that are used up; None if there are none."""
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


def _names(budgets: Sequence[Budget]) -> str:
    return ", ".join(NAMES[budget] for budget in budgets)


def _left(budget: Budget, number: int | None) -> Text:
    style = "" if number is None or number > 0 else "red" if number < 0 else "yellow"
    return Text(amount(budget, number), style)
