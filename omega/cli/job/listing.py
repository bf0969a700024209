"""`omega jobs`: list jobs.

Goal     Show the jobs in the queue, and what became of earlier ones.
Promise  Newest first; never more than the limit.
Source   JobReader.jobs.
"""

from typing import Annotated, Final

import typer

from omega.cli.cell_access import DemoOption, ReadFrom, cell_reader
from omega.cli.job.screens import jobs_table
from omega.lifecycle.states import State
from omega.reports.jobs import row_of
from omega.reports.processes import live_kinds
from omega.reports.work import why_in_rounds, works_of
from omega.terminal.consoles import Output
from omega.terminal.options import DataDir, JsonTo

LIMIT_MAX: Final = 100_000
"""Jobs that one list may have: they are all held in memory."""


def command(  # noqa: PLR0913, PLR0917 - a parameter is an option
    state: Annotated[State | None, typer.Option(help="Only jobs in this state.")] = None,
    scheduler: Annotated[
        str | None, typer.Option(metavar="KIND", help="Only jobs for this kind of scheduler.")
    ] = None,
    tenant: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only jobs of this tenant.")
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only jobs of this name; a star is any text: 'train-*'."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=LIMIT_MAX, help="How many at most.")] = 50,
    data_dir: DataDir = None,
    read_from: ReadFrom = None,
    demo: DemoOption = False,
    json_to: JsonTo = None,
) -> None:
    """List jobs, newest first.

    For example, what waits in vain: [bold]omega jobs --state parked[/]
    """
    output = Output(json_to)
    with cell_reader(data_dir, read_from, demo=demo) as store:
        jobs = store.jobs(
            state=state, scheduler=scheduler, tenant=tenant, name=name, jobs_max=limit
        )
        work = works_of(store, jobs)
        kinds = live_kinds(store.reports()) if work else set()
    output.document(
        parameters={
            "state": state.value if state else None,
            "scheduler": scheduler,
            "tenant": tenant,
            "name": name,
            "limit": limit,
            "demo": demo,
        },
        rows=[
            {**row_of(job), "work": work[job.id].row() if job.id in work else None} for job in jobs
        ],
        summary={"jobs": len(jobs)},
    )
    if jobs:
        done = {number: it.part for number, it in work.items()}
        told = {job.id: why_in_rounds(job, work.get(job.id), kinds) for job in jobs}
        reasons = {number: why[0] for number, why in told.items() if why is not None}
        output.console.print(jobs_table(jobs, done, reasons))
    else:
        output.console.print("There are no such jobs.")
