"""Fair shares as a person reads them.

Goal     Show at a glance who has less than is fair.
Promise  Drawn from values alone: nothing here reads a store.
Source   omega.reports.fairness.
"""

from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from omega.cli.job.screens import cut
from omega.reports.fairness import FairnessReport, ShareState
from omega.reports.printable import short
from omega.reports.wording import things

SHOWN: Final = 20
"""Rows of the table; documents have all."""
COLOURS: Final = {ShareState.ABOVE: "yellow", ShareState.BELOW: "red", ShareState.UNORDERED: "red"}


def fairness_screen(report: FairnessReport) -> RenderableType:
    """Return the whole screen."""
    if not report.tenants:
        return Text("No job runs or waits.")
    parts: list[RenderableType] = [_table(report)]
    left_out = len(report.tenants) - SHOWN
    if left_out > 0:
        parts.append(Text(f"and {things(left_out, 'tenant')} more: see --json", "dim"))
    parts.append(Text(_orders(report), "dim"))
    return Group(*parts)


def _table(report: FairnessReport) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("tenant", min_width=12)
    for header in ("weight", "share", "fair", "gap", "waiting"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("")
    for it in report.tenants[:SHOWN]:
        table.add_row(
            cut("/".join((*it.parents, it.name))),
            f"{it.weight:,}",
            f"{it.share:.1%}",
            f"{it.fair_share:.1%}",
            f"{it.gap:+.1%}",
            f"{it.waiting:,}",
            Text(it.state.value, COLOURS.get(it.state, "")),
        )
    return table


def _orders(report: FairnessReport) -> str:
    told = [f"{short(kind)} {order.value}" for kind, order in report.orders.items()]
    return "orders: " + (", ".join(told) if told else "none, no scheduler leases from the queue")
