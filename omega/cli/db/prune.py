"""`omega db prune`: remove the records of work that ended long ago.

Goal     Keep the database from growing for ever, by one command that cron can run.
Promise  Live jobs and their tasks stay. It may run while schedulers work, and may be interrupted
         and run again. Only the database's owner may run it.
Source   omega.store.postgres.history; docs/decisions/0019-history.md.
"""

from typing import Annotated, Final

import typer

from omega.cli.cell_access import DemoOption, cell_settings
from omega.errors import BadInput
from omega.limits import LIMITS
from omega.reports.wording import things
from omega.store.postgres.history import prune
from omega.terminal.consoles import Output
from omega.terminal.options import DataDir, JsonTo
from omega.terminal.progress import progress_bar
from omega.workload.quantities import duration_ms, shown

LEAST_MS: Final = 60 * 60 * 1_000
"""The least age: commits repeated after a lost reply, and reconnected nodes, read younger rows."""
NAMES: Final = {"transaction": "commit", "ended_task": "ended task", "job": "job"}
"""The tables whose removed rows are reported to a person, with a noun for each."""


def command(
    older_than: Annotated[
        str,
        typer.Option(
            metavar="DURATION", help="What is over for longer goes: 30d, 12h; at least 1h."
        ),
    ],
    data_dir: DataDir = None,
    demo: DemoOption = False,
    json_to: JsonTo = None,
) -> None:
    """Remove the records of commits, ended tasks and jobs that are over for long.

    In small steps, while schedulers work: nobody waits for it. Live jobs and their tasks
    stay. A job that is removed is unknown to [bold]omega job[/]. Choose longer than any node
    has been out of touch: it asks for what was granted since. Only the database's owner may.

    [bold]omega db prune --older-than 30d[/]
    """
    output = Output(json_to)
    older_than_ms = _read(older_than)
    with (
        cell_settings(data_dir, demo=demo) as (settings, url),
        progress_bar(output.console) as progress,
    ):
        bar = progress.add_task("pruning", total=None)
        pruned = prune(
            url,
            older_than_ms=older_than_ms,
            statement_timeout_ms=settings.statement_timeout_ms,
            progress=lambda done, total: progress.update(bar, completed=done, total=total),
        )
    output.document(
        parameters={"older_than_ms": older_than_ms, "demo": demo},
        rows=[{"table": table, "rows": rows} for table, rows in pruned.items()],
        summary={"pruned": sum(pruned.values())},
    )
    said = ", ".join(things(pruned[table], name) for table, name in NAMES.items())
    output.console.print(f"Removed: {said}.", highlight=False)


def _read(text: str) -> int:
    try:
        length = duration_ms(text)
    except ValueError as error:
        raise BadInput(str(error), field="--older-than") from None
    if length is None or not LEAST_MS <= length <= LIMITS.window_ms_max:
        raise BadInput(f"{shown(text)} is not between an hour and ten years", field="--older-than")
    return length
