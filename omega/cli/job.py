"""`omega job`: everything about one job.

Goal     Answer "where does it run?" and "why does it not?" in one look.
Promise  One dominant reason, its evidence, and the next step to take.
Source   JobReader.job, placements, training, reports and quotas.
"""

from dataclasses import asdict
from typing import Annotated

import typer

from omega.cli.cells import OfDemo, cell_store
from omega.cli.consoles import Output
from omega.cli.job_screens import job_screen, row_of, training_row, why_waiting
from omega.cli.options import DataDir, JsonTo
from omega.cli.processes import kinds_heard_of
from omega.errors import OmegaError
from omega.model.arrays import integers

JobId = Annotated[
    int,
    typer.Argument(
        min=1, max=2**63 - 1, metavar="ID", help="The job's number, as submit prints it."
    ),
]


def command(
    job_id: JobId,
    data_dir: DataDir = None,
    demo: OfDemo = False,
    json_to: JsonTo = None,
) -> None:
    """Show one job: where its tasks run, or why they do not."""
    output = Output(json_to)
    with cell_store(data_dir, demo=demo) as store:
        job = store.job(job_id)
        if job is None:
            raise OmegaError(f"there is no job {job_id}")
        placements = store.placements(job_id)
        training = store.training(integers([job_id]))
        why = why_waiting(job, kinds_heard_of(store.reports()), store.quotas())
    output.document(
        parameters={"job": job_id, "demo": demo},
        rows=[{"task": task, "machine": name} for task, name in sorted(placements.items())],
        summary={
            **row_of(job),
            "training": training_row(training),
            "why": asdict(why) if why else None,
        },
    )
    output.console.print(job_screen(job, placements, training, why))
