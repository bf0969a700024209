"""`omega sim`: compare architectures in virtual time, before one is deployed.

Goal     Answer, before deployment, whether one scheduler is enough, how many are needed, and how
         long a decision may take.
Promise  The schedulers, the loop and the judge are those that run live. One seed gives one result,
         apart from `wall_s`, the time that the run took.
Source   Omega (EuroSys 2013), section 4; omega.sim.
"""

from pathlib import Path
from typing import Annotated, Final

import typer

from omega.cli.sim import fit as sim_fit
from omega.cli.sim import sweep as sim_sweep
from omega.cli.sim.garbage_collection import without_collection
from omega.cli.sim.plan import Given, SimPlan
from omega.cli.sim.tables import evictions_table, workloads_table
from omega.clock import RealClock
from omega.errors import BadInput
from omega.plots.picture import refuse_undrawable
from omega.plots.run import Series
from omega.sim.experiment import Run
from omega.sim.live_run import LiveRun
from omega.sim.results import S_PER_H, Result
from omega.terminal.consoles import Output, refuse_unwritable
from omega.terminal.dataclass_options import takes
from omega.terminal.options import JsonTo, PlotTo
from omega.terminal.progress import progress_bar
from omega.workload.recipe import job_list
from omega.workload.traces.omega_sim import CELLS

SECONDS_A_STEP: Final = 60.0
"""Virtual time between two updates of the progress bar."""
app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")


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
@takes(SimPlan)
def run(plan: SimPlan, json_to: JsonTo = None, plot_to: PlotTo = None) -> None:
    """Simulate one architecture on a list of jobs, or on a trace.

    [bold]omega sim run --jobs W2.csv --architecture monolithic --t-job-service 1[/]

    [bold]omega sim run --trace google-2011 --hours 1.39 --batch-schedulers 4[/]
    """
    output = Output(json_to)
    refuse_undrawable(plot_to)
    series = Series()
    clock = RealClock()
    with output.console.status(f"Reading {plan.source.name}"), without_collection():
        given = plan.read()
    began = clock.now()
    result, compiled = _simulate(plan, given, series, output)
    output.document(
        parameters=plan.parameters(),
        rows=result.schedulers,
        summary={
            **result.summary(with_audited=plan.audit),
            "compiled": compiled,
            "wall_s": round(clock.now() - began, 3),
        },
    )
    output.console.print(workloads_table(result.workloads))
    if result.tasks_evicted or result.start_tasks_evicted:
        output.console.print(evictions_table(result))
    if plot_to is not None:
        series.draw(f"{plan.source.name}, {plan.architecture.value}").save(plot_to)


app.command("sweep")(sim_sweep.command)
app.command("fit")(sim_fit.command)


def _simulate(plan: SimPlan, given: Given, series: Series, output: Output) -> tuple[Result, bool]:
    """Simulate; return the result, and whether compiled loops were used."""
    with progress_bar(output.console) as progress:
        bar = progress.add_task("simulating", total=int(plan.hours * S_PER_H))
        runs: list[Run | LiveRun] = []

        def advance(now_s: float) -> None:
            if runs:  # at 0 s the run is still being created
                series.sample(runs[0], now_s)
            if now_s % SECONDS_A_STEP == 0:
                progress.update(bar, completed=int(now_s))

        runs.append(run := plan.begin(given, advance))
        return run.finish(), isinstance(run, Run) and run.experiment.is_compiled
