"""Verbs that do one thing to several jobs.

Goal     Let one command act on many jobs, each named by its number or its name.
Promise  A job that cannot be changed stops none of the others; the exit code is then 1. Each job
         has one sentence: what was done on standard output, why not on standard error.
Source   docs/decisions/0009-errors-and-retries.md.
"""

from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from omega.reports.jobs import find_job
from omega.reports.printable import short
from omega.store.protocols import JobReader
from omega.store.status import JobStatus
from omega.terminal.consoles import Output, warn

JobsNamed = Annotated[
    list[str],
    typer.Argument(metavar="JOB...", help="Numbers of jobs, or names: the newest of each."),
]


def each_job(
    store: JobReader, jobs: Sequence[str], done: str, act: Callable[[JobStatus], str | None]
) -> None:
    """Act on each job; `act` returns why it could not. Raises typer.Exit if it failed for one."""
    console, problems = Output().console, 0
    for named in dict.fromkeys(jobs):
        number = find_job(store, named)
        job = None if number is None else store.job(number)
        problem = f"there is no job {short(named)}" if job is None else act(job)
        if problem is not None:
            warn(problem)
            problems += 1
        elif job is not None:
            console.print(f"Job {job.id} {done}.", highlight=False)
    if problems:
        raise typer.Exit(1)
