"""`omega sim`: compare architectures in virtual time, before one is deployed.

Goal     Answer what one asks before buying: one scheduler or many, how many, and how slow may
         deciding be.
Promise  The schedulers, the loop and the judge are those that run live. One seed gives one result,
         apart from `wall_s`, the time that the run took.
Source   Omega (EuroSys 2013), section 4; omega.sim.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.table import Table

from omega.cli.consoles import Output, refuse_unwritable
from omega.cli.options import DECISION_S_MAX, SCHEDULERS_MAX, JsonTo, Seed, a_number
from omega.cli.sim_plan import SimPlan, Unit
from omega.clock import RealClock
from omega.errors import BadInput
from omega.model.claims import ConflictRule
from omega.sim.experiment import Architecture, Experiment, Result
from omega.workload.recipe import job_list
from omega.workload.traces.omega_sim import CELLS

HOURS_MAX: Final = 24 * 366
MACHINES_MAX: Final = 1_000_000
SECONDS_A_STEP: Final = 60.0
"""Of virtual time, between two moves of the progress bar."""
app = typer.Typer(no_args_is_help=True)


def _seconds(help_: str) -> Any:  # noqa: ANN401 - what typer makes is not its business to type
    return typer.Option(min=0, max=DECISION_S_MAX, callback=a_number, metavar="S", help=help_)


BatchShare = Annotated[
    float,
    typer.Option(
        min=0.01,
        max=0.99,
        callback=a_number,
        metavar="X",
        help="Of a static partition: batch jobs' share of the machines.",
    ),
]


@app.callback()
def _sim() -> None:
    """Compare architectures in virtual time."""


@app.command()
def jobs(
    name: Annotated[str, typer.Argument(metavar="W1|W2", help="Which of the two.")],
    to: Annotated[Path, typer.Option("--to", metavar="FILE.csv", help="Where to write it.")],
) -> None:
    """Write a job list of the paper's open simulator, as it was published.

    W1 is for 10,000 machines without prefill, W2 for 1,000 with 2,400 tasks on them.

    [bold]omega sim jobs W2 --to W2.csv[/]
    """
    if name not in CELLS:
        raise BadInput(f"{name!r} is none of {', '.join(CELLS)}", field="NAME")
    refuse_unwritable(to, field="--to")
    to.write_text(job_list(CELLS[name]), encoding="utf-8")


@app.command()
def run(  # noqa: PLR0913, PLR0917 - a parameter is an option
    jobs_in: Annotated[
        Path, typer.Option("--jobs", metavar="FILE", help="Job list: .csv, also gzipped.")
    ],
    machines: Annotated[int, typer.Option(min=1, max=MACHINES_MAX, metavar="N")] = 1_000,
    cpus: Annotated[float, typer.Option(min=0.001, metavar="N", help="Cores of a machine.")] = 4,
    memory_gib: Annotated[float, typer.Option(min=0.001, metavar="N")] = 16,
    prefill_tasks: Annotated[
        int,
        typer.Option(min=0, metavar="N", help="Tasks of 1 core and 2 GiB, there all the time."),
    ] = 2_400,
    hours: Annotated[
        float, typer.Option(min=0.001, max=HOURS_MAX, callback=a_number, metavar="H")
    ] = 6,
    architecture: Annotated[
        Architecture, typer.Option(help="Who takes which jobs, and what they see.")
    ] = Architecture.SHARED_STATE,
    rule: Annotated[ConflictRule, typer.Option(help="When a claim conflicts.")] = ConflictRule.FIT,
    granularity: Annotated[
        Unit, typer.Option(help="What a refused claim does to its siblings.")
    ] = Unit.INCREMENTAL,
    batch_schedulers: Annotated[int, typer.Option(min=1, max=SCHEDULERS_MAX, metavar="N")] = 1,
    service_schedulers: Annotated[int, typer.Option(min=1, max=SCHEDULERS_MAX, metavar="N")] = 1,
    t_job_batch: Annotated[float, _seconds("Decision time of a batch job.")] = 0.1,
    t_task_batch: Annotated[float, _seconds("And for each of its tasks.")] = 0.005,
    t_job_service: Annotated[float, _seconds("Of a service job; monolithic: of all.")] = 10.0,
    t_task_service: Annotated[float, _seconds("And for each of its tasks.")] = 0.005,
    batch_share: BatchShare = 0.5,
    seed: Seed = 0,
    json_to: JsonTo = None,
) -> None:
    """Simulate one architecture on a list of jobs.

    [bold]omega sim run --jobs W2.csv --architecture monolithic --t-job-service 1[/]
    """
    plan = SimPlan(
        jobs=jobs_in,
        machines=machines,
        cpus=cpus,
        memory_gib=memory_gib,
        prefill_tasks=prefill_tasks,
        hours=hours,
        architecture=architecture,
        rule=rule,
        granularity=granularity,
        batch_schedulers=batch_schedulers,
        service_schedulers=service_schedulers,
        t_job_batch=t_job_batch,
        t_task_batch=t_task_batch,
        t_job_service=t_job_service,
        t_task_service=t_task_service,
        batch_share=batch_share,
        seed=seed,
    )
    _tell(plan, Output(json_to))


def _tell(plan: SimPlan, output: Output) -> None:
    """Simulate, and say what came of it."""
    clock = RealClock()
    experiment = plan.experiment()
    began = clock.now()
    result = _simulate(experiment, output)
    output.document(
        parameters=plan.parameters(),
        rows=result.schedulers,
        summary={
            **result.workloads,
            "utilisation": result.utilisation,
            "locked": result.locked,
            "tasks_placed": result.tasks_placed,
            "events": result.events,
            "wall_s": round(clock.now() - began, 3),
        },
    )
    output.console.print(_table(result.workloads))


def _simulate(experiment: Experiment, output: Output) -> Result:
    with output.progress() as progress:
        bar = progress.add_task("simulating", total=int(experiment.horizon_s))

        def advance(now_s: float) -> None:
            if now_s % SECONDS_A_STEP == 0:
                progress.update(bar, completed=int(now_s))

        return experiment.run(advance)


def _table(workloads: Mapping[str, Mapping[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("workload")
    columns = {
        "jobs": ("jobs", 0),
        "unfinished": ("jobs_unfinished", 0),
        "tasks placed": ("tasks_placed", 0),
        "busy": ("busy", 3),
        "conflicts": ("conflict_fraction", 3),
        "wait s": ("wait_mean_s", 3),
        "p90 s": ("wait_p90_s", 3),
    }
    for header in columns:
        table.add_column(header, justify="right")
    for name, told in workloads.items():
        table.add_row(
            name,
            *(
                "-" if told[key] is None else f"{told[key]:,.{digits}f}"
                for key, digits in columns.values()
            ),
        )
    return table
