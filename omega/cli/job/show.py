"""`omega job`: everything about one job.

Goal     Answer "where does it run?", "why does it not?" and "what went wrong?" in one look.
Promise  One dominant reason, its evidence, and the next step to take.
Source   omega.reports.jobs.
"""

from typing import Annotated

import typer

from omega.cli.cell_access import DemoOption, ReadFrom, cell_reader
from omega.cli.job.screens import job_screen
from omega.errors import OmegaError
from omega.framework.registry import startable_kinds
from omega.reports.jobs import JobReport, find_job
from omega.reports.printable import short
from omega.store.protocols import JobReader
from omega.store.status import JobStatus
from omega.terminal.consoles import Output
from omega.terminal.options import DataDir, JsonTo

JobNamed = Annotated[
    str,
    typer.Argument(metavar="JOB", help="The job's number, or its name: the newest of that."),
]


def command(
    job: JobNamed,
    data_dir: DataDir = None,
    read_from: ReadFrom = None,
    demo: DemoOption = False,
    json_to: JsonTo = None,
) -> None:
    """Show one job: where its tasks run, why not, or how they ended."""
    output = Output(json_to)
    with cell_reader(data_dir, read_from, demo=demo) as store:
        report = JobReport.read(store, named_job(store, job).id, startable=startable_kinds())
    if report is None:
        raise OmegaError(f"there is no job {short(job)} any more")
    output.document(
        parameters={"job": report.job.id, "demo": demo},
        rows=report.rows(),
        summary=report.summary(),
    )
    output.console.print(job_screen(report))


def named_job(store: JobReader, job: str) -> JobStatus:
    """Return the job of a number or a name. Raises OmegaError if there is none."""
    number = find_job(store, job)
    status = None if number is None else store.job(number)
    if status is None:
        raise OmegaError(f"there is no job {short(job)}")
    return status
