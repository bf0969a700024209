"""`omega snapshot`: copies the live cell into a file.

Goal     Keep a cell as it is at a moment, to restore it elsewhere, and to ask `omega what-if`.
Promise  It only reads, at one moment, and no commit waits for it. The file is whole or not there,
         also if the command is ended by a signal.
Source   docs/decisions/0055-snapshots-and-what-if.md.
"""

from pathlib import Path
from typing import Annotated, Final

import typer
from rich.table import Table

from omega.cli.cell_access import DemoOption, ReadFrom, reader_url
from omega.errors import BadInput
from omega.processes.stopping import interrupted_by_signals
from omega.reports.what_happened import saved_summary
from omega.reports.wording import duration, things
from omega.store.postgres.saving import save_cell
from omega.store.saved.lines import PAST_MS_MAX
from omega.store.saved.writing import write_cell
from omega.terminal.consoles import Output, refuse_unwritable
from omega.terminal.options import DataDir, JsonTo
from omega.workload.quantities import duration_ms, shown

MS_PER_S: Final = 1_000
SINCE: Final = "2h"
Since = Annotated[
    str,
    typer.Option(
        metavar="DURATION",
        help="How much of the past: 2h, 30m. It begins no earlier than the last start state that"
        " was loaded.",
    ),
]


def command(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Where to write it; JSON lines, gzipped.")
    ],
    since: Since = SINCE,
    data_dir: DataDir = None,
    read_from: ReadFrom = None,
    demo: DemoOption = False,
    json_to: JsonTo = None,
) -> None:
    """Copy the cell into a file: what it holds now, and what happened lately.

    It has the machines, what runs, the queue, quotas, tenants, the jobs of the last hours and what
    schedulers did with them. [bold]omega restore[/] makes a cell of it again, and
    [bold]omega what-if[/] simulates it. The role omega_reader suffices.

    Only you may read the file: the programs of jobs may have secrets in their environments.

    [bold]omega snapshot cell.snapshot --since 30m[/]
    """
    output = Output(json_to)
    refuse_unwritable(file, field="FILE")
    since_ms = read_since(since)
    with (
        interrupted_by_signals(),
        reader_url(data_dir, read_from, demo=demo) as (settings, url),
        output.console.status("Reading the cell"),
    ):
        cell = save_cell(url, since_ms=since_ms, statement_timeout_ms=settings.statement_timeout_ms)
        size = write_cell(cell, file)
    summary = saved_summary(cell)
    output.document(
        parameters={"file": str(file), "since_ms": since_ms, "demo": demo},
        rows=[],
        summary={**summary, "bytes": size},
    )
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold")
    table.add_column()
    table.add_row("machines", f"{summary['machines']:,}")
    table.add_row("running", things(summary["tasks_running"], "task"))
    table.add_row("queue", things(summary["jobs_waiting"], "job"))
    past = f"{things(summary['jobs_submitted'], 'job')} submitted in the last"
    table.add_row("past", f"{past} {duration(summary['past_ms'] / MS_PER_S)}")
    table.add_row("file", f"{size:,} bytes")
    output.console.print(table)


def read_since(text: str) -> int:
    """Return the milliseconds of a duration such as 2h. Raises BadInput."""
    try:
        length = duration_ms(text)
    except ValueError as error:
        raise BadInput(str(error), field="--since") from None
    if length is None or not 1 <= length <= PAST_MS_MAX:
        raise BadInput(f"{shown(text)} is not between 1 ms and a year", field="--since")
    return length
