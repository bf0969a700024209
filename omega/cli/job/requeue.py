"""`omega requeue`: have jobs that wait tried soon.

Goal     Have a job tried now, or before others.
Promise  What runs goes on. A job that cannot be changed has one sentence on why, and exit code 1.
Source   omega.store.waiting.
"""

from typing import Annotated, Final

import typer

from omega.cli.cell_access import DemoOption, cell_store
from omega.cli.job.each import JobsNamed, each_job
from omega.cli.job.waiting import why_not
from omega.store.status import JobStatus
from omega.terminal.options import DataDir

PRECEDENCE_MAX: Final = 2**31 - 1


def command(
    jobs: JobsNamed,
    precedence: Annotated[
        int | None,
        typer.Option(
            min=-PRECEDENCE_MAX - 1,
            max=PRECEDENCE_MAX,
            metavar="N",
            help="Give them this precedence first.",
        ),
    ] = None,
    data_dir: DataDir = None,
    demo: DemoOption = False,
) -> None:
    """Have jobs that wait tried as soon as possible.

    Parked ones too; a held one gets its precedence and stays held.

    For example [bold]omega requeue train --precedence 50[/]
    """
    done = "is in the queue" if precedence is None else f"has precedence {precedence}"
    with cell_store(data_dir, demo=demo) as store:

        def act(job: JobStatus) -> str | None:
            is_changed = (
                store.requeue(job.id)
                if precedence is None
                else store.set_precedence(job.id, precedence)
            )
            return None if is_changed else why_not(store, job)

        each_job(store, jobs, done, act)
