"""`omega usage`: what tenants, jobs or kinds of schedulers used over a time.

Goal     Account for a cell: core-hours, GPU-hours, evictions and waits, for people and for bills.
Promise  The verb only reads. A time that cannot be read is BadInput before the cell is looked at.
Source   docs/decisions/0056-usage-and-dashboards.md.
"""

from pathlib import Path
from typing import Annotated

import typer

from omega.cli.cell_access import DemoOption, ReadFrom, cell_reader
from omega.cli.usage.screens import usage_screen
from omega.errors import BadInput
from omega.reports.usage import UsageReport
from omega.store.usage import UsageBy
from omega.terminal.consoles import STANDARD_OUTPUT, Output, refuse_unwritable
from omega.terminal.options import DataDir, JsonTo
from omega.terminal.terminal import PrintableConsole
from omega.workload.audit_policy import window_ms


def command(
    by: Annotated[UsageBy, typer.Option(help="Whose use is added up.")] = UsageBy.TENANT,
    since: Annotated[
        str, typer.Option(metavar="DURATION", help="The last 7d, 24h, 30m: the time that counts.")
    ] = "7d",
    csv_to: Annotated[
        str | None,
        typer.Option("--csv", metavar="FILE|-", help="Write the rows as CSV; - is stdout."),
    ] = None,
    data_dir: DataDir = None,
    read_from: ReadFrom = None,
    demo: DemoOption = False,
    json_to: JsonTo = None,
) -> None:
    """See what tenants, jobs or kinds of schedulers used.

    Live tasks count with what they hold, ended ones with what their job asks for. Waits are those
    from submission to the first attempt, of jobs whose first attempt fell into the time.

    For example, for a bill: [bold]omega usage --by tenant --since 30d --csv usage.csv[/]
    """
    over_ms = _window(since)
    if json_to == csv_to == STANDARD_OUTPUT:
        raise BadInput("standard output is for one of --json and --csv", field="--csv")
    output = Output(json_to)
    if csv_to is not None and csv_to != STANDARD_OUTPUT:
        refuse_unwritable(Path(csv_to), field="--csv")
    with cell_reader(data_dir, read_from, demo=demo, name="omega usage") as store:
        report = UsageReport.read(store, over_ms, by)
    output.document(
        parameters={"by": by.value, "since_ms": over_ms, "demo": demo},
        rows=report.rows(),
        summary=report.summary(),
    )
    if csv_to == STANDARD_OUTPUT:
        PrintableConsole().print_whole(report.csv_text())
        return
    if csv_to is not None:
        Path(csv_to).write_text(report.csv_text() + "\n", encoding="utf-8")
    output.console.print(usage_screen(report))


def _window(text: str) -> int:
    try:
        return window_ms(text)
    except ValueError as problem:
        raise BadInput(str(problem), field="--since") from problem
