"""`omega job`: everything about one job.

Goal     Answer "where does it run?", "why does it not?" and "what went wrong?" in one look.
Promise  One dominant reason, its evidence, and the next step to take.
Source   omega.reports.jobs.
"""

from typing import Annotated

import typer

from omega.cli.cell_access import DemoOption, cell_store
from omega.cli.job.screens import job_screen
from omega.errors import OmegaError
from omega.reports.jobs import JOB_MAX, JobReport, find_job
from omega.reports.printable import short
from omega.terminal.consoles import Output
from omega.terminal.options import DataDir, JsonTo

JobId = Annotated[
    int,
    typer.Argument(min=1, max=JOB_MAX, metavar="ID", help="The job's number, as submit prints it."),
]


def command(
    job: Annotated[
        str,
        typer.Argument(metavar="JOB", help="The job's number, or its name: the newest of that."),
    ],
    data_dir: DataDir = None,
    demo: DemoOption = False,
    json_to: JsonTo = None,
) -> None:
    """Show one job: where its tasks run, why they do not, or how they ended."""
    output = Output(json_to)
    with cell_store(data_dir, demo=demo) as store:
        job_id = find_job(store, job)
        report = None if job_id is None else JobReport.read(store, job_id)
    if report is None:
        raise OmegaError(f"there is no job {short(job)}")
    output.document(
        parameters={"job": job_id, "demo": demo}, rows=report.rows(), summary=report.summary()
    )
    output.console.print(job_screen(report))
