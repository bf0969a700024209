"""`omega why`: why a job is not placed, or why it is where it is.

Goal     Answer in one screen what holds a job up, with figures, and what would help.
Promise  One reason of a closed list, judged on the cell as it is now. Nothing is written.
Source   omega.reports.why.
"""

from pathlib import Path
from typing import Annotated

import typer

from omega.cli.cell_access import DemoOption, ReadFrom, cell_reader
from omega.cli.job.plan import only_job
from omega.cli.job.show import named_job
from omega.cli.job.why_screen import why_screen
from omega.errors import BadInput, OmegaError, did_you_mean
from omega.framework.registry import find_scheduler
from omega.model.jobs import JobSpec
from omega.reports.printable import short
from omega.reports.why.report import WhyReport, why_job, why_spec
from omega.store.protocols import ReaderStore
from omega.terminal.consoles import Output
from omega.terminal.options import DataDir, JsonTo


def command(
    job: Annotated[
        str | None,
        typer.Argument(metavar="JOB", help="The job's number, or its name: the newest of that."),
    ] = None,
    spec: Annotated[
        Path | None,
        typer.Option("--spec", metavar="SPEC.yaml", help="Or a job that is not submitted."),
    ] = None,
    task: Annotated[
        int | None,
        typer.Option(metavar="N", help="Judge the machines for this task's group, from 0."),
    ] = None,
    machine: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Go through the rules for this machine."),
    ] = None,
    data_dir: DataDir = None,
    read_from: ReadFrom = None,
    demo: DemoOption = False,
    json_to: JsonTo = None,
) -> None:
    """Say why a job is not placed, and what would help.

    One reason, and the evidence for it; of a placed job, where it is and by which transaction. Of a
    job that is not submitted:
    [bold]omega why --spec job.yaml[/]
    """
    if (job is None) == (spec is None):
        raise BadInput("name a job, or a file by --spec", field="JOB")
    asked = None if spec is None else only_job(spec)
    output = Output(json_to)
    with cell_reader(data_dir, read_from, demo=demo) as store:
        report = _report(store, job, asked, task, machine)
        as_of_ms = store.now_ms()
    output.document(
        parameters={
            "job": None if report.job is None else report.job.id,
            "spec": None if spec is None else str(spec),
            "task": task,
            "machine": machine,
            "demo": demo,
        },
        rows=report.rows(),
        summary=report.summary(),
    )
    output.console.print(why_screen(report, as_of_ms))


def preempts(kind: str) -> bool | None:
    """Return whether a kind of scheduler evicts by default; None if it is not installed here."""
    try:
        return find_scheduler(kind).preempts
    except OmegaError:
        return None


def _report(
    store: ReaderStore,
    job: str | None,
    spec: JobSpec | None,
    task: int | None,
    machine: str | None,
) -> WhyReport:
    if machine is not None:
        names = store.snapshot().names
        if machine not in names:
            raise BadInput(
                f"there is no machine {short(machine)}{did_you_mean(machine, names)}",
                field="--machine",
            )
    if spec is not None:
        _checked_task(task, spec.tasks)
        return why_spec(store, spec, preempts, task=task, machine=machine)
    assert job is not None
    status = named_job(store, job)
    _checked_task(task, status.tasks)
    return why_job(store, status, preempts, task=task, machine=machine)


def _checked_task(task: int | None, tasks: int) -> None:
    if task is not None and not 0 <= task < tasks:
        raise BadInput(f"the job has tasks 0 to {tasks - 1}, and no {task}", field="--task")
