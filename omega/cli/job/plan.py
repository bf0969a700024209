"""`omega plan`: what a submission would do, before it is made.

Goal     Let a user see places, evictions and quotas first, and keep the plan in a file.
Promise  Nothing is written, and no row is locked. The scheduler that plans is the one that would
         place the job, with the same loop; what others do meanwhile is not foreseen.
Source   omega.framework.rehearsal; omega.reports.plan.
"""

from pathlib import Path
from typing import Annotated

import typer

from omega.cli.cell_access import DemoOption, ReadFrom, cell_reader
from omega.cli.job.plan_screen import plan_screen
from omega.cli.scheduler.commands import its_own
from omega.errors import BadInput
from omega.framework.registry import configured
from omega.framework.rehearsal import Rehearsed, rehearse
from omega.framework.scheduler import Scheduler
from omega.lifecycle.states import FINAL
from omega.model.jobs import JobSpec
from omega.reports.plan import PlanReport, planned_evictions, planned_tasks
from omega.reports.why.report import WhyReport, why_rest
from omega.store.protocols import ReaderStore
from omega.terminal.consoles import Output
from omega.terminal.options import DataDir, JsonTo, Seed
from omega.workload.spec import read_specs


def command(
    spec: Annotated[Path, typer.Argument(metavar="SPEC.yaml", help="A file with one job.")],
    settings_of_its_own: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A setting of the scheduler's own, as for omega scheduler run.",
        ),
    ] = None,
    seed: Seed = 0,
    data_dir: DataDir = None,
    read_from: ReadFrom = None,
    demo: DemoOption = False,
    json_to: JsonTo = None,
) -> None:
    """Show what a submission would do, and change nothing.

    It shows where the tasks of a job would go, what would be evicted, and what quotas would be
    left, beside what runs now under its name. Keep a plan, and submit exactly that:
    [bold]omega plan job.yaml --json plan.json[/] and [bold]omega submit --plan plan.json[/]
    """
    asked = only_job(spec)
    settings = its_own(settings_of_its_own or [])
    scheduler = configured(asked.scheduler, settings)
    output = Output(json_to)
    with cell_reader(data_dir, read_from, demo=demo) as store:
        report = plan_of(store, scheduler, asked, seed)
    output.document(
        parameters={"spec": str(spec), "settings": settings, "seed": seed, "demo": demo},
        rows=report.rows(),
        summary=report.summary(),
    )
    output.console.print(plan_screen(report))


def only_job(spec: Path) -> JobSpec:
    """Return the job of a file. Raises BadInput for a file with several."""
    specs = read_specs(spec)
    if len(specs) != 1:
        raise BadInput(f"it has {len(specs):,} jobs, and one is asked for", file=str(spec))
    return specs[0]


def plan_of(store: ReaderStore, scheduler: Scheduler, spec: JobSpec, seed: int) -> PlanReport:
    """Return what a scheduler would do with a job now."""
    found = rehearse(store, scheduler, spec, run_seed=seed)
    newest = store.jobs_named(spec.name, jobs_max=1)
    before = newest[0] if newest and newest[0].state not in FINAL else None
    places = {} if before is None else store.placements(before.id)
    return PlanReport(
        spec=spec,
        tasks=list(planned_tasks(spec, found.claims, found.snapshot, places)),
        evictions=planned_evictions(store, found.evicted),
        quotas=found.quotas,
        rest=_why_the_rest(store, scheduler, found),
        before=before,
        before_places=places,
    )


def _why_the_rest(store: ReaderStore, scheduler: Scheduler, found: Rehearsed) -> WhyReport | None:
    job = found.result.job
    if not len(job.unplaced):
        return None
    uses = [then for _, then in found.quotas]
    return why_rest(store, found.view, job, uses, lambda _: scheduler.preempts)
