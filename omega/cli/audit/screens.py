"""Audits as a person reads them.

Goal     Show at a glance who holds how much, and what is above the policy.
Promise  Drawn from values alone: nothing here reads a store. What is above the policy is red and
         comes first.
Source   omega.reports.audit.
"""

from collections.abc import Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from omega.cli.job.screens import cut
from omega.model.quotas import Budget, QuotaScope
from omega.reports.audit import AuditReport, HeldShare
from omega.reports.quotas import NAMES, amount
from omega.reports.wording import UNKNOWN, duration, moment, share, things
from omega.store.holdings import RESOURCES, IdleCause, IdleJob

SHOWN: Final = 20
"""Rows of each table; the document has all."""
CAUSES: Final = {
    IdleCause.UNPLACED_SIBLINGS: "waits for tasks without a place",
    IdleCause.NO_STEP: "has made no step",
}


def audit_screen(report: AuditReport, *, has_policy: bool) -> RenderableType:
    """Return the whole screen."""
    holdings = report.holdings
    length = duration((holdings.until_ms - holdings.since_ms) / 1_000)
    lines: list[RenderableType] = [
        Text(f"{length}, from {moment(holdings.since_ms)} to {moment(holdings.until_ms)}", "bold")
    ]
    for scope in QuotaScope:
        shares = report.of(scope)
        lines += [Text(), _shares_table(scope, shares)] if shares else []
        lines += _more(len(shares) + holdings.left_out.get(scope, 0))
    if not report.shares:
        lines.append(Text("Nothing was held."))
    if report.idle:
        lines += [Text(), _idle_table(report), *_more(len(report.idle))]
    if holdings.unknown:
        unknown = things(holdings.unknown, "run")
        lines += [Text(), Text(f"Not counted, because their jobs were pruned: {unknown}.")]
    return Group(*lines, Text(), _conclusion(report, has_policy=has_policy))


def _shares_table(scope: QuotaScope, shares: Sequence[HeldShare]) -> Table:
    there = [resource for resource in RESOURCES if any(resource in one.parts for one in shares)]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column(scope.value, min_width=12)
    for resource in there:
        table.add_column(NAMES[resource], justify="right", no_wrap=True)
    table.add_column("allowed", no_wrap=True)
    table.add_column("", no_wrap=True)
    for one in shares[:SHOWN]:
        parts = [Text(_part(one, resource), _style(one, resource)) for resource in there]
        said = Text("above", "red") if one.is_above else Text("")
        table.add_row(cut(one.name), *parts, _allowed(one), said)
    return table


def _part(one: HeldShare, resource: Budget) -> str:
    part = one.parts.get(resource)
    return share(None if part is None else float(part))


def _style(one: HeldShare, resource: Budget) -> str:
    if one.is_above and resource is one.judged:
        return "red"
    return "bold" if resource is one.dominant and any(one.held_us) else ""


def _allowed(one: HeldShare) -> str:
    if one.limit is None:
        return UNKNOWN
    limit = share(float(one.limit.at_most))
    return f"{limit} of any" if one.limit.of is None else f"{limit} of {NAMES[one.limit.of]}"


def _idle_table(report: AuditReport) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("idle job", justify="right", no_wrap=True)
    table.add_column("name")
    table.add_column("tenant")
    table.add_column("tasks", justify="right", no_wrap=True)
    table.add_column("holds", overflow="fold")
    table.add_column("for", justify="right", no_wrap=True)
    table.add_column("because")
    for job in report.idle[:SHOWN]:
        table.add_row(
            str(job.job),
            cut(job.name),
            cut(job.tenant),
            f"{job.running:,}/{job.running + job.unplaced:,}",
            _held(job),
            Text(duration(report.idle_for_ms(job) / 1_000), "red"),
            f"it {CAUSES[job.cause]}",
        )
    return table


def _held(job: IdleJob) -> str:
    held = zip(RESOURCES, job.held, strict=True)
    return ", ".join(f"{NAMES[it]} {amount(it, its)}" for it, its in held if its) or UNKNOWN


def _more(rows: int) -> list[RenderableType]:
    rest = rows - SHOWN
    return [Text(f"... and {rest:,} more; --json has all", "dim")] if rest > 0 else []


def _conclusion(report: AuditReport, *, has_policy: bool) -> Text:
    if not has_policy:
        return Text("No policy was given: --policy FILE says what is allowed.", "dim")
    if not report.above:
        return Text("Nothing is above the policy.", "green")
    return Text(f"Above the policy: {_told(report)}.", "red")


def _told(report: AuditReport) -> str:
    above = {scope: sum(one.is_above for one in report.of(scope)) for scope in QuotaScope}
    parts = [
        (above[QuotaScope.TENANT], "tenant"),
        (above[QuotaScope.SCHEDULER], "kind"),
        (len(report.idle), "idle job"),
    ]
    return ", ".join(things(number, noun) for number, noun in parts if number)
