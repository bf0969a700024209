"""The screen of `omega plan`.

Goal     Places first, then what they cost: evictions and quotas; then what is left over, and why.
Promise  Drawn from values alone, within 80 columns.
Source   omega.reports.plan.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from omega.reports.plan import PlanReport
from omega.reports.printable import printable, short
from omega.reports.quotas import NAMES, amount, whose
from omega.reports.wording import ranges, things

MACHINES_SHOWN: Final = 20
JOBS_SHOWN: Final = 10
NOWHERE: Final = "no place"


def plan_screen(report: PlanReport) -> RenderableType:
    """Return what a submission would do."""
    parts: list[RenderableType] = [_head(report), Text(), Text("where tasks would go", "bold")]
    parts.append(_places(report))
    if report.evictions:
        parts += [Text(), Text("what would be evicted", "bold"), _evictions(report)]
    if report.quotas:
        parts += [Text(), Text("what quotas would be left", "bold"), _quotas(report)]
    return Group(*parts)


def _head(report: PlanReport) -> Table:
    spec, rest = report.spec, report.rest
    facts = Table(box=None, pad_edge=False, show_header=False)
    facts.add_column(style="bold", no_wrap=True)
    facts.add_column(overflow="fold")
    kind, tenant = short(spec.scheduler), short(spec.tenant)
    facts.add_row("plan", Text(f"{short(spec.name)}, for {kind}, tenant {tenant}"))
    left = len(report.tasks) - report.placed
    over = f", {left:,} left over" if left else ""
    facts.add_row("tasks", f"{len(report.tasks):,}: {report.placed:,} would have a place{over}")
    facts.add_row("now", _before(report))
    if rest is not None:
        facts.add_row("reason", Text(rest.finding.reason.value, "red"))
        facts.add_row("because", Text(printable(rest.finding.evidence)))
        facts.add_row("next step", Text(printable(rest.finding.next_step)))
    return facts


def _before(report: PlanReport) -> str:
    """Return what runs or waits under the job's name."""
    before = report.before
    if before is None:
        return "no job of this name is waiting or running"
    told = (
        f"job {before.id} of this name is {before.state.value}, {before.placed:,} of"
        f" {things(before.tasks, 'task')} placed; this one would come beside it"
    )
    more = things(len(report.ends), "task")
    return f"{told}, without {more} that it has now" if report.ends else told


def _places(report: PlanReport) -> Table:
    """Return a line for each machine and what is there now: tasks with the same of both."""
    lines: dict[tuple[str, str], list[int]] = {}
    for task in report.tasks:
        now = "" if task.now is None else task.now
        lines.setdefault((task.machine or NOWHERE, now), []).append(task.task)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("machine", overflow="fold")
    table.add_column("tasks", overflow="fold")
    if report.before is not None:
        table.add_column(f"in job {report.before.id} now on", overflow="fold")
    for (machine, now), tasks in list(lines.items())[:MACHINES_SHOWN]:
        table.add_row(
            Text(short(machine), "red" if machine == NOWHERE else ""),
            ranges(tasks),
            *([] if report.before is None else [Text(short(now) or "-")]),
        )
    rest = len(lines) - MACHINES_SHOWN
    if rest > 0:
        table.add_row(f"... and {rest:,} more; --json has all", "")
    return table


def _evictions(report: PlanReport) -> Table:
    by_job: dict[int, tuple[str, list[int]]] = {}
    for one in report.evictions:
        by_job.setdefault(one.job, (one.name, []))[1].append(one.task)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("job", justify="right", no_wrap=True)
    table.add_column("name", overflow="fold")
    table.add_column("tasks", overflow="fold")
    for job, (name, tasks) in list(by_job.items())[:JOBS_SHOWN]:
        table.add_row(str(job), Text(short(name)), ranges(sorted(tasks)))
    rest = len(by_job) - JOBS_SHOWN
    if rest > 0:
        table.add_row("...", f"and {things(rest, 'job')} more; --json has all", "")
    return table


def _quotas(report: PlanReport) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("quota", "of", "left now", "left then"):
        table.add_column(name, overflow="fold")
    for row in _quota_rows(report):
        table.add_row(*row)
    return table


def _quota_rows(report: PlanReport) -> Iterator[Sequence[str | Text]]:
    for now, then in report.quotas:
        for budget, left in now.left.items():
            yield (
                Text(whose(now.quota)),
                NAMES[budget],
                amount(budget, left),
                amount(budget, then.left[budget]),
            )
