"""`omega restore`: a saved cell in an empty database.

Goal     Make a cell of a file again, to look at it, to try something, or after a disaster.
Promise  The file is read and checked whole before the database is touched. All of it is restored or
         nothing, only into an empty cell, and only by its owner.
Source   docs/decisions/0055-snapshots-and-what-if.md.
"""

from pathlib import Path
from typing import Annotated, Final

import typer

from omega.cli.cell_access import cell_settings
from omega.reports.what_happened import saved_summary
from omega.reports.wording import duration, things
from omega.store.postgres.restoring import restore_cell
from omega.store.saved.reading import read_cell
from omega.terminal.consoles import Output
from omega.terminal.options import DataDir, JsonTo

MS_PER_S: Final = 1_000


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What omega snapshot wrote.")],
    data_dir: DataDir = None,
    json_to: JsonTo = None,
) -> None:
    """Make a cell of a file again, in an empty database.

    Machines, what runs, the queue, quotas and tenants are as they were, with the same ids; times
    are moved, so that tasks have as long to run as then. Jobs that were being planned are pending.
    The past stays in the file.

    [bold]omega db init --data-dir copy[/]

    [bold]omega restore cell.snapshot --data-dir copy[/]
    """
    output = Output(json_to)
    with output.console.status("Reading the file"):
        cell = read_cell(file)
    with (
        cell_settings(data_dir) as (settings, url),
        output.console.status("Restoring the cell"),
    ):
        moved_ms = restore_cell(
            url, cell, file=str(file), statement_timeout_ms=settings.statement_timeout_ms
        )
    summary = saved_summary(cell)
    output.document(
        parameters={"file": str(file)},
        rows=[],
        summary={
            **{name: summary[name] for name in ("machines", "tasks_running", "jobs_unfinished")},
            "quotas": len(cell.quotas),
            "moved_ms": moved_ms,
        },
    )
    output.console.print(
        f"Restored: {things(summary['machines'], 'machine')},"
        f" {things(summary['jobs_unfinished'], 'job')},"
        f" {things(summary['tasks_running'], 'running task')},"
        f" {things(len(cell.quotas), 'quota')}; all times are moved by"
        f" {duration(moved_ms / MS_PER_S)}.",
        highlight=False,
    )
