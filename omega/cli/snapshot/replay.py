"""`omega replay`: recorded transactions, judged again.

Goal     Show what another rule, or another version of Omega, would have said to the same claims.
Promise  It reads the files and nothing else. Exit code 0 if every verdict is as it was, 1 if one
         is not, 2 if a file cannot be used.
Source   docs/decisions/0057-replay.md; omega.reports.replay.
"""

from itertools import chain
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from omega.model.claims import ConflictRule
from omega.reports.printable import short
from omega.reports.replay import ReplayReport, replay
from omega.reports.wording import things
from omega.store.saved.recordings import recorded_commits
from omega.terminal.consoles import Output
from omega.terminal.options import JsonTo

COMMITS_SHOWN: Final = 10


def command(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="What omega scheduler run --record wrote."),
    ],
    rule: Annotated[
        ConflictRule | None,
        typer.Option(help="The rule to judge by; each transaction's own if not given."),
    ] = None,
    unfinished: Annotated[
        bool,
        typer.Option("--unfinished", help="A file may be cut off, or still be written."),
    ] = False,
    json_to: JsonTo = None,
) -> None:
    """Judge recorded transactions again, and list verdicts that differ.

    Each is judged by itself, against the machines, leases and quotas that it met then: by its own
    rule, as this version of Omega has it, or by another rule. Exit code 1 if a verdict differs.

    [bold]omega scheduler run batch --record batch.recording[/]

    [bold]omega replay batch.recording --rule sequence[/]
    """
    output = Output(json_to)
    with output.console.status("Judging"):
        commits = (recorded_commits(file, is_unfinished=unfinished) for file in files)
        report = replay(chain.from_iterable(commits), rule)
    output.document(
        parameters={
            "files": [str(file) for file in files],
            "rule": None if rule is None else rule.value,
            "unfinished": unfinished,
        },
        rows=[it.row() for it in report.told],
        summary=report.summary(),
    )
    output.console.print(_screen(report))
    if report.differ:
        raise typer.Exit(1)


def _screen(report: ReplayReport) -> RenderableType:
    judged = f"{things(report.commits, 'transaction')} with {things(report.claims, 'claim')}"
    parts: list[RenderableType] = [Text(f"{judged} judged again; {report.differ:,} differ.")]
    if report.without_facts:
        parts.append(
            Text(f"Of {report.without_facts:,} more it is not on record what they met.", "yellow")
        )
    if report.verdicts:
        parts += [Text(), _verdicts(report)]
    if report.told:
        parts += [Text(), _commits(report)]
    return Group(*parts)


def _verdicts(report: ReplayReport) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("claims", justify="right")
    table.add_column("was")
    table.add_column("now")
    for (was, now), claims in report.verdicts.most_common():
        table.add_row(f"{claims:,}", was.replace("_", " "), now.replace("_", " "))
    return table


def _commits(report: ReplayReport) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for header in ("transaction", "by", "first claim that differs"):
        table.add_column(header, overflow="fold")
    for commit in report.told[:COMMITS_SHOWN]:
        if commit.claims:
            first = commit.claims[0]
            where = f"job {first.job} task {first.task} on machine {first.was_on}"
            told = f"{where}: {first.was.replace('_', ' ')}, now {first.now.replace('_', ' ')}"
        else:
            now, then = len(commit.evicted_now), len(commit.evicted_was)
            told = f"{things(now, 'task')} evicted, {then:,} then"
        table.add_row(commit.transaction, Text(short(commit.by)), told)
    if (more := report.differ - min(len(report.told), COMMITS_SHOWN)) > 0:
        listed = f"--json has the first {len(report.told):,}"
        table.caption = f"and {things(more, 'transaction')} more; {listed}"
    return table
