"""`omega job`: everything about one job.

Goal     Answer "where does it run?" and "why does it not?" in one look.
Promise  One dominant reason, its evidence, and the next step to take.
Source   omega.reports.jobs.
"""

from typing import Annotated

import typer

from omega.cli.cell_access import DemoOption, cell_store
from omega.cli.job.screens import job_screen
from omega.errors import OmegaError
from omega.reports.jobs import JobReport
from omega.terminal.consoles import Output
from omega.terminal.options import DataDir, JsonTo

JobId = Annotated[
    int,
    typer.Argument(
        min=1, max=2**63 - 1, metavar="ID", help="The job's number, as submit prints it."
    ),
]


def command(
    job_id: JobId,
    data_dir: DataDir = None,
    demo: DemoOption = False,
    json_to: JsonTo = None,
) -> None:
    """Show one job: where its tasks run, or why they do not."""
    output = Output(json_to)
    with cell_store(data_dir, demo=demo) as store:
        report = JobReport.read(store, job_id)
    if report is None:
        raise OmegaError(f"there is no job {job_id}")
    output.document(
        parameters={"job": job_id, "demo": demo}, rows=report.rows(), summary=report.summary()
    )
    output.console.print(job_screen(report))
