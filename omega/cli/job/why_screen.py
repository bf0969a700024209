"""The screen of `omega why`.

Goal     The reason first, then the evidence from the most to the least important.
Promise  Drawn from values alone, within 80 columns; colour adds nothing that words do not say.
Source   omega.reports.why.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from omega.reports.printable import printable, short
from omega.reports.why.decide import ahead
from omega.reports.why.machines import MachineRule, NearMachine
from omega.reports.why.reasons import Reason
from omega.reports.why.report import WhyReport
from omega.reports.why.story import ClaimTold, TransactionTold
from omega.reports.wording import duration, moment, ranges, things

CLAIMS_SHOWN: Final = 3
MACHINES_SHOWN: Final = 5
TRANSACTIONS_SHOWN: Final = 5
GOOD: Final = frozenset({Reason.PLACED, Reason.WOULD_FIT, Reason.QUEUED, Reason.BEING_PLANNED})


def why_screen(report: WhyReport, now_ms: int) -> RenderableType:
    """Return everything that is told about why a job is not placed."""
    parts: list[RenderableType] = [_head(report)]
    if report.machine is not None:
        parts += _titled(f"machine {short(report.machine)}, rule by rule", _rules(report.rules))
    elif report.funnel and not report.finding.reason.has_room and _waits(report):
        parts += _titled(f"machines for a task of group {report.group}", _funnel(report))
        if report.nearest:
            parts += _titled("the nearest machines lack", _nearest(report.nearest))
    if report.placements:
        parts += _titled("where it runs", _places(report))
    if report.transactions:
        parts += _titled("its last transactions", _story(report.transactions, now_ms))
    return Group(*parts)


def _waits(report: WhyReport) -> bool:
    return report.finding.reason not in (Reason.PLACED, Reason.ENDED, Reason.UNREADABLE)


def _titled(title: str, content: RenderableType) -> list[RenderableType]:
    return [Text(), Text(title, "bold"), content]


def _head(report: WhyReport) -> Table:
    finding, job = report.finding, report.job
    facts = Table(box=None, pad_edge=False, show_header=False)
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    if job is not None:
        facts.add_row("job", Text(f"{job.id}  {short(job.name)}, {job.state.value}"))
        facts.add_row("tasks", f"{job.tasks:,}: {job.placed:,} placed, {job.ended:,} of them over")
    elif report.spec is not None:
        facts.add_row("job", Text(f"{short(report.spec.name)}, not submitted"))
        facts.add_row("tasks", f"{report.spec.tasks:,}")
    facts.add_row(
        "reason", Text(finding.reason.value, "green" if finding.reason in GOOD else "red")
    )
    facts.add_row("because", Text(printable(finding.evidence)))
    facts.add_row("next step", Text(printable(finding.next_step)))
    if report.differs is not None:
        facts.add_row("before", Text(printable(f"parked as {report.differs}")))
    for name, told in _evidence(report):
        facts.add_row(name, Text(printable(told)))
    return facts


def _evidence(report: WhyReport) -> Iterator[tuple[str, str]]:
    """Yield what else is known, by name."""
    for number, phrase in enumerate(report.quotas):
        yield ("quotas" if number == 0 else "", phrase)
    if report.line.ahead:
        first = ", ".join(f"{it.id} (precedence {it.precedence})" for it in report.line.first)
        yield "in line", f"{ahead(report.line)} before it; first {first}"
    if report.fair_position is not None and _waits(report):
        yield "in line", str(report.fair_position)
    if report.evictions is not None and _waits(report) and not report.finding.reason.is_permanent:
        yield "evictions", _evictions(report)


def _evictions(report: WhyReport) -> str:
    found = report.evictions
    assert found is not None
    assert report.spec is not None
    mine, kind = report.spec.precedence, short(report.spec.scheduler)
    where = things(found.looked_at, "machine")
    if found.looked_at < found.of:
        where += f" looked at, of {found.of:,}"
    if found.makes_room:
        could = f"evicting what yields to precedence {mine} makes room"
    elif found.protected:
        could = f"job {found.protected[0]} is in the way and not preemptible"
    elif found.precedence_needed is not None:
        could = (
            f"precedence {found.precedence_needed} would be needed (the gap is {found.gap}),"
            f" it has {mine}"
        )
    else:
        could = f"no precedence moves enough on {where}"
    does = {
        True: f"{kind} evicts",
        False: f"{kind} evicts only if a setting says so",
        None: f"whether {kind} evicts is not known here",
    }
    return f"{could}; {does[found.preempts]}"


def _funnel(report: WhyReport) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(overflow="fold")
    before = None
    for step in report.funnel:
        lost = "" if before in (None, step.left) else f"  (-{before - step.left:,})"
        table.add_row(f"{step.left:,}", Text(f"{printable(step.what)}{lost}"))
        before = step.left
    return table


def _nearest(machines: Sequence[NearMachine]) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for machine in machines:
        table.add_row(Text(short(machine.name)), Text(printable("; ".join(machine.lacks))))
    return table


def _rules(rules: Sequence[MachineRule]) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for rule in rules:
        answer = Text("yes", "green") if rule.holds else Text("no", "red")
        table.add_row(answer, Text(printable(rule.what)), Text(printable(rule.found)))
    return table


def _places(report: WhyReport) -> Table:
    """Return the machines of the tasks, and by which transaction each task came there."""
    placed_by: Mapping[int, TransactionTold] = {
        claim.task: transaction
        for transaction in reversed(report.transactions)
        for claim in transaction.of_verdict(granted=True)
        if report.placements.get(claim.task) == claim.machine
    }
    places: dict[tuple[str, str], list[int]] = {}
    for task, machine in sorted(report.placements.items()):
        transaction = placed_by.get(task)
        by = (
            f"{transaction.by}, {moment(transaction.committed_ms)}, {transaction.transaction}"
            if transaction is not None
            else "a transaction that is not among the last"
        )
        places.setdefault((machine, by), []).append(task)
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for (machine, by), tasks in list(places.items())[:MACHINES_SHOWN]:
        table.add_row(
            Text(short(machine)),
            f"{'task' if len(tasks) == 1 else 'tasks'} {ranges(tasks)}",
            Text(short(by)),
        )
    rest = len(places) - MACHINES_SHOWN
    if rest > 0:
        table.add_row(f"... and {rest:,} more; --json has all", "", "")
    return table


def _story(transactions: Sequence[TransactionTold], now_ms: int) -> Table:
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for transaction in transactions[:TRANSACTIONS_SHOWN]:
        ago = f"{duration(max(0, now_ms - transaction.committed_ms) / 1_000)} ago"
        got = f"{transaction.granted:,} granted, {transaction.refused:,} refused"
        table.add_row(ago, Text(short(transaction.by)), got)
        refused = transaction.of_verdict(granted=False)
        for claim in refused[:CLAIMS_SHOWN]:
            table.add_row("", "", Text(printable(_refusal(claim, now_ms))))
        rest = transaction.refused - CLAIMS_SHOWN
        if rest > 0:
            table.add_row("", "", f"... and {rest:,} more")
    return table


def _refusal(claim: ClaimTold, now_ms: int) -> str:
    told = f"task {claim.task} on {claim.machine}: {claim.verdict.replace('_', ' ')}"
    if claim.taken_by is None or claim.taken_ms is None:
        return told
    ago = duration(max(0, now_ms - claim.taken_ms) / 1_000)
    return f"{told}; taken by {claim.taken_by} for job {claim.taken_for}, {ago} ago"
