"""`omega submit`: jobs from a YAML file into the queue.

Goal     Submit jobs, and on request wait until they run.
Promise  All jobs of a file are submitted in one submission, or none; a plan is committed as it is,
         or nothing is. A file with more jobs than one submission takes is refused. `--wait` exits 1
         when a job is parked, cancelled or failed, or the time is up; the jobs stay in the queue.
Source   omega.workload.spec, which enforces the limit; SubmitterStore.submit.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Final
from uuid import uuid4

import typer

from omega.cli.cell_access import cell_store
from omega.cli.job.planned import PlanFile, commit_plan
from omega.cli.job.screens import jobs_table, print_ids
from omega.cli.spec_input import parsed
from omega.clock import Clock, RealClock
from omega.errors import BadInput, did_you_mean
from omega.framework.kinds import startable_kinds
from omega.lifecycle.states import State
from omega.model.jobs import JobSpec
from omega.processes.stopping import stop_on_signals
from omega.reports.jobs import row_of
from omega.reports.plan_file import read_plan
from omega.reports.wording import things
from omega.store.loading import Advance
from omega.store.protocols import JobReader, Store
from omega.store.status import JobStatus
from omega.terminal.consoles import Output, warn
from omega.terminal.options import DataDir, JsonTo
from omega.terminal.progress import progress_bar
from omega.workload.quantities import shown
from omega.workload.spec import parse_specs

POLL_S: Final = 0.2
UNDECIDED: Final = (State.PENDING, State.PLANNING)
WELL: Final = (State.RUNNING, State.SUCCEEDED)
JOBS_SHOWN: Final = 20

SpecFile = Annotated[
    Path | None,
    typer.Argument(metavar="SPEC.yaml|-", help="A job, or a list of jobs; - is standard input."),
]


def command(
    spec: SpecFile = None,
    plan: PlanFile = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until every task has a place; 1 if one has not.")
    ] = False,
    timeout: Annotated[
        float | None,
        typer.Option(min=0, metavar="S", help="How long to wait; for ever if not given."),
    ] = None,
    data_dir: DataDir = None,
    json_to: JsonTo = None,
) -> None:
    """Submit the jobs of a YAML file.

    A job needs a name, a scheduler, and groups of tasks:

    [bold]{name: hello, scheduler: batch, groups: \\[{tasks: 3, cpu: 1, memory: 1GiB}]}[/]

    With --plan, the job of a plan gets exactly the places that were planned.
    """
    output = Output(json_to)
    specs, submit = _asked(spec, plan)
    statuses: list[JobStatus] = []
    with stop_on_signals() as stop, cell_store(data_dir) as store:
        with output.console.status(f"Submitting {things(len(specs), 'job')}"):
            ids = submit(store)
        print_ids(output.console, ids)
        for sentence in unheard_of(specs, store):
            warn(sentence)
        if wait:
            with progress_bar(output.console) as progress:
                bar = progress.add_task("Waiting", total=len(ids))
                statuses = _wait(
                    store,
                    ids,
                    RealClock(stop),
                    timeout,
                    lambda jobs: progress.advance(bar, jobs),
                    stop.is_set,
                )
    unplaced = [status for status in statuses if status.state not in WELL]
    output.document(
        parameters={"spec": spec and str(spec), "plan": plan and str(plan)}
        | {"wait": wait, "timeout": timeout},
        rows=[row_of(status) for status in statuses] or [{"id": job} for job in ids],
        summary={
            "jobs": len(ids),
            "tasks": sum(job.tasks for job in specs),
            "unplaced": len(unplaced),
        },
    )
    if not wait:
        return
    output.console.print(jobs_table(statuses[:JOBS_SHOWN]))
    if unplaced:
        told = f"{told_of(unplaced)}; why: omega why {unplaced[0].id}"
        output.console.print(told, highlight=False)
        raise typer.Exit(1)


def _asked(
    spec: Path | None, plan: Path | None
) -> tuple[Sequence[JobSpec], Callable[[Store], list[int]]]:
    """Return the jobs of a file or a plan, and a function that submits them."""
    if spec is not None and plan is None:
        specs = parsed(spec, parse_specs)
        return specs, lambda store: store.submit(specs)
    if plan is None or spec is not None:
        raise BadInput("name a file of jobs, or a plan by --plan", field="SPEC.yaml")
    planned, names = read_plan(plan, uuid4())
    return [planned.spec], lambda store: [commit_plan(store, planned, names)]


def unheard_of(specs: Sequence[JobSpec], store: JobReader) -> list[str]:
    """Return a sentence for each kind of scheduler that neither is installed here nor ever ran."""
    startable = startable_kinds()
    unknown = sorted({spec.scheduler for spec in specs} - startable)
    ran = {report.kind for report in store.reports()} if unknown else set()
    return [
        f"no scheduler {shown(kind)} is installed here or has been heard of"
        f"{did_you_mean(kind, startable)}; its jobs wait until one runs. omega scheduler list shows"
        " those here; omega cancel takes jobs back"
        for kind in unknown
        if kind not in ran
    ]


def told_of(unplaced: Sequence[JobStatus]) -> str:
    """Return how many of these jobs have failed, and how many are not fully placed."""
    failed = sum(status.state is State.FAILED for status in unplaced)
    told = {"not fully placed": len(unplaced) - failed, "failed": failed}
    return ", ".join(f"{things(jobs, 'job')} {what}" for what, jobs in told.items() if jobs)


def _wait(
    queue: JobReader,
    ids: Sequence[int],
    clock: Clock,
    timeout_s: float | None,
    advance: Advance,
    stopped: Callable[[], bool],
) -> list[JobStatus]:
    """Return the jobs' statuses once none is UNDECIDED, the time is up, or it is stopped."""
    began = clock.now()
    statuses: dict[int, JobStatus] = {}
    while True:
        waiting = [job for job in ids if job not in statuses or statuses[job].state in UNDECIDED]
        for job in waiting:
            status = queue.job(job)
            assert status is not None, "jobs are never deleted"
            statuses[job] = status
            advance(status.state not in UNDECIDED)
        is_late = timeout_s is not None and clock.now() - began >= timeout_s
        if stopped() or is_late or all(s.state not in UNDECIDED for s in statuses.values()):
            return [statuses[job] for job in ids]
        clock.sleep(POLL_S)
