"""`omega db doctor`: what in the server costs speed or safety, and what to do about it.

Goal     One screen that an operator reads before asking why commits are slow.
Promise  Changes nothing, needs no role beyond a login, and says what it could not see. Exit code 1
         when something is unsafe, else 0.
Source   omega.store.postgres.health.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Final

import typer
from rich.table import Table
from rich.text import Text

from omega.cli.cell_access import DemoOption, cell_url
from omega.clock import RealClock
from omega.config import DAY_MS
from omega.reports.printable import printable
from omega.store.postgres.health.findings import Finding, Severity
from omega.terminal.consoles import Output
from omega.terminal.options import DataDir, JsonTo, number_option

STYLES: Final = {
    Severity.UNSAFE: "bold red",
    Severity.SLOW: "yellow",
    Severity.LOOK: "cyan",
    Severity.HIDDEN: "magenta",
    Severity.GOOD: "green",
}


def command(
    open_for: Annotated[
        float,
        number_option(
            lowest=0,
            highest=DAY_MS / 1_000,
            metavar="S",
            help="How long a transaction may be open.",
        ),
    ] = 10.0,
    data_dir: DataDir = None,
    demo: DemoOption = False,
    json_to: JsonTo = None,
) -> None:
    """Say what in the server's settings, tables and sessions costs speed or safety.

    Each finding is [green]good[/], [cyan]worth a look[/], [yellow]costs speed[/] or
    [bold red]unsafe[/], and what is no good says why it matters here and what to run.
    Changes nothing. Any login will do; what it may not see is [magenta]not seen[/].

    A URL of several hosts is asked of each: two that take writes are told, and a standby that is
    away. Exit code 1 if anything is unsafe, so that data can be lost, is already wrong, or nothing
    is committed; else 0.
    """
    # SQLAlchemy loads slowly, and the other verbs of `omega db` do not need it.
    from omega.store.postgres.health.examination import examine  # noqa: PLC0415

    output = Output(json_to)
    with cell_url(data_dir, demo=demo) as url:
        findings = examine(url, RealClock(), open_for_s=open_for)
    counts = Counter(finding.severity for finding in findings)
    output.document(
        parameters={"open_for_s": open_for, "demo": demo},
        rows=[{**vars(one), "severity": one.severity.value} for one in findings],
        summary={severity.value: counts[severity] for severity in Severity},
    )
    output.console.print(screen(findings))
    output.console.print(verdict(counts))
    if counts[Severity.UNSAFE]:
        raise typer.Exit(1)


def screen(findings: Sequence[Finding]) -> Table:
    """Return the findings that need action, with the reasons; all findings if none does."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    fine = [one for one in findings if one.severity is Severity.GOOD]
    for one in findings if fine == list(findings) else findings[: len(findings) - len(fine)]:
        mark = Text(one.severity.value, style=STYLES[one.severity])
        table.add_row(mark, printable(one.what), Text(printable(one.found)))
        if one.severity is not Severity.GOOD:
            table.add_row("", "", Text(printable(one.why), style="dim"))
            table.add_row("", "", Text(f"do: {printable(one.run)}", style="bold"))
    if len(fine) < len(findings):
        mark = Text(Severity.GOOD.value, style=STYLES[Severity.GOOD])
        table.add_row(mark, "the rest", Text(", ".join(printable(one.what) for one in fine)))
    return table


def verdict(counts: Counter[Severity]) -> Text:
    """Return the number of findings by severity, as one line."""
    bad = [
        Text(f"{counts[severity]} {severity.value}", style=STYLES[severity])
        for severity in Severity
        if counts[severity] and severity is not Severity.GOOD
    ]
    return Text(", ").join(bad) if bad else Text("Nothing to complain of.", style="green")
