"""`omega sim sweep`: one simulation for each combination of values, over all cores or a cluster.

Goal     Show where an architecture stops working, in one command that may take a night.
Promise  Rows are in the order of the grid, and the same on any workers. A run that fails is named
         and does not stop the others. A sweep that is interrupted writes the finished rows, and
         `--resume` continues from them.
Source   Omega (EuroSys 2013), section 4: sweeps over decision times; omega.sim.sweep.
"""

from concurrent.futures import BrokenExecutor
from math import prod
from pathlib import Path
from typing import Annotated, Final

import typer

from omega.cli.sim.axes import read_axes
from omega.cli.sim.plan import SimPlan
from omega.cli.sim.results import Results, table
from omega.cli.sim.trials import Work, simulate
from omega.clock import RealClock
from omega.errors import BadInput, OmegaError
from omega.plots.picture import refuse_undrawable
from omega.plots.sweep import draw
from omega.processes.stopping import stop_on_signals
from omega.processes.workers import cluster, cores, processes
from omega.sim.sweep import Figures, Trial, run_trials
from omega.terminal.consoles import Output
from omega.terminal.dataclass_options import takes
from omega.terminal.options import JsonTo, PlotTo
from omega.terminal.progress import progress_bar

SEEDS_MAX: Final = 1_000
RUNS_MAX: Final = 100_000
WORKERS_MAX: Final = 1_024
KEEP_EVERY_S: Final = 10.0
"""Interval at which the finished rows are written while the sweep goes on."""

Vary = Annotated[
    list[str],
    typer.Option(
        metavar="NAME=V,V,...",
        help="An option and the values that it is to have, also as log:0.01..100/9 or lin:1..5/5;"
        " can be said again, and the first is the x-axis of the plot.",
    ),
]
Seeds = Annotated[
    int,
    typer.Option(
        min=1, max=SEEDS_MAX, metavar="N", help="Runs of each point, with seeds from --seed on."
    ),
]
WorkersMax = Annotated[
    int | None,
    typer.Option(
        "--workers", min=1, max=WORKERS_MAX, metavar="N", help="Processes; the cores if not given."
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Simulate on the Dask cluster of this scheduler."),
]
Resume = Annotated[
    Path | None,
    typer.Option(metavar="FILE.json", help="Take what agrees from an earlier document."),
]


@takes(SimPlan)
def command(  # noqa: PLR0913, PLR0917 - a parameter is an option
    plan: SimPlan,
    context: typer.Context,
    vary: Vary,
    seeds: Seeds = 1,
    workers: WorkersMax = None,
    dask: Dask = None,
    resume: Resume = None,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
) -> None:
    """Simulate every combination of some values, several at a time.

    All options of [bold]omega sim run[/] can be given, and each can be varied.

    [bold]omega sim sweep --jobs W2.csv --vary t-job-service=log:0.1..100/4 --vary
    architecture=monolithic,shared-state --seeds 3 --plot sweep.png[/]
    """
    if workers is not None and dask is not None:
        raise BadInput("a Dask cluster has workers of its own", field="--workers")
    output = Output(json_to)
    refuse_undrawable(plot_to)
    axes = read_axes(vary, context)
    if seeds * prod(map(len, axes.values())) > RUNS_MAX:
        raise BadInput(f"more than {RUNS_MAX:,} runs are not begun", field="--vary")
    results = Results(plan, axes, seeds)
    if resume is not None and not results.resume(resume):
        output.console.print(f"Nothing of {resume} can be used again.")
    _conduct(results, workers, dask, output)
    output.console.print(table(results))
    if plot_to is not None and results.rows:
        draw(results.drawable()).save(plot_to)
    results.complain()


def _conduct(results: Results, workers: int | None, dask: str | None, output: Output) -> None:
    """Simulate the missing runs, and write the document as it grows."""
    clock = RealClock()
    began = kept = clock.now()
    who = "nobody"

    def keep() -> None:
        output.document(
            parameters=results.parameters(),
            rows=results.rows,
            summary={
                **results.summary(),
                "workers": who,
                "wall_s": round(clock.now() - began, 3),
            },
        )

    if results.missing:
        pool = processes(workers or cores()) if dask is None else cluster(dask)
        with stop_on_signals() as stop, pool as they, progress_bar(output.console) as progress:
            who = they.said
            bar = progress.add_task(f"simulating, {who}", total=len(results.missing))

            def settle(trial: Trial[Work], came: Figures | Exception) -> None:
                nonlocal kept
                results.settle(trial, came)
                progress.advance(bar)
                if output.is_file and clock.now() - kept >= KEEP_EVERY_S:
                    keep()
                    kept = clock.now()

            try:
                if not run_trials(
                    they.executor,
                    simulate,
                    results.missing,
                    at_once=they.at_once,
                    settle=settle,
                    stopped=stop.is_set,
                ):
                    raise KeyboardInterrupt
            except BaseException as error:
                keep()
                if isinstance(error, BrokenExecutor):
                    raise OmegaError("a worker ended before its run did") from error
                raise
    keep()
