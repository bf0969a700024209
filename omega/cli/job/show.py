"""`omega job`: everything about one job.

Goal     Answer "where does it run?", "why does it not?" and "what happened to it?" in one look.
Promise  One dominant reason, its evidence, and the next step to take.
Source   omega.reports.jobs, omega.reports.stories.
"""

from typing import Annotated

import typer
from rich.console import Group

from omega.cli.cell_access import DemoOption, ReadFrom, cell_reader
from omega.cli.job.screens import job_screen
from omega.cli.job.story_screen import story_screen
from omega.errors import NotAllowed, OmegaError
from omega.framework.kinds import startable_kinds
from omega.reports.jobs import JobReport, find_job
from omega.reports.printable import short
from omega.reports.stories.events import Story
from omega.reports.stories.job import job_story
from omega.store.protocols import JobReader, ReaderStore
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
    """Show one job: where its tasks run, why not, and its story in time."""
    output = Output(json_to)
    with cell_reader(data_dir, read_from, demo=demo) as store:
        report = JobReport.read(store, named_job(store, job).id, startable=startable_kinds())
        if report is None:
            raise OmegaError(f"there is no job {short(job)} any more")
        story = _story(store, report)
    output.document(
        parameters={"job": report.job.id, "demo": demo},
        rows=report.rows(),
        summary={**report.summary(), "story": None if story is None else story.document()},
    )
    screens = [job_screen(report), *([] if story is None else [story_screen(story)])]
    output.console.print(Group(*screens))


def _story(store: ReaderStore, report: JobReport) -> Story | None:
    """Return the job's story; None if this login may not read the records of commits."""
    try:
        return job_story(store, report.job, report.exits)
    except NotAllowed:
        return None


def named_job(store: JobReader, job: str) -> JobStatus:
    """Return the job of a number or a name. Raises OmegaError if there is none."""
    number = find_job(store, job)
    status = None if number is None else store.job(number)
    if status is None:
        raise OmegaError(f"there is no job {short(job)}")
    return status
