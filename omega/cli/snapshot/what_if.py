"""`omega what-if`: what would have happened to the cell, beside what happened.

Goal     Try other schedulers, rules, decision times or machines before the cell gets them.
Promise  It changes nothing. The cell as it was is simulated, too, so that everybody sees how far
         the simulation is to be trusted. The same file, options and seed give the same figures.
Source   docs/decisions/0055-snapshots-and-what-if.md.
"""

from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Annotated

import typer

from omega.cli.cell_access import DemoOption, ReadFrom, reader_url
from omega.cli.sim.sweep import SEEDS_MAX, WorkersMax
from omega.cli.snapshot.comparison import Comparison
from omega.cli.snapshot.save import SINCE, Since, read_since
from omega.cli.snapshot.variants import PackedCell, Work, simulate_work
from omega.cli.snapshot.what_if_plan import WhatIfPlan
from omega.clock import RealClock
from omega.errors import BadInput, OmegaError
from omega.plots.picture import refuse_undrawable
from omega.plots.what_if import draw
from omega.processes.stopping import stop_on_signals
from omega.processes.workers import cores, processes
from omega.sim.sweep import Figures, Trial, run_trials
from omega.store.postgres.saving import save_cell
from omega.store.saved.cell import SavedCell
from omega.store.saved.reading import read_cell
from omega.terminal.consoles import Output
from omega.terminal.dataclass_options import takes
from omega.terminal.options import DataDir, JsonTo, PlotTo, Seed
from omega.terminal.progress import progress_bar


@takes(WhatIfPlan)
def command(  # noqa: PLR0913, PLR0917 - a parameter is an option
    plan: WhatIfPlan,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="What omega snapshot wrote; else the live cell."),
    ] = None,
    seeds: Annotated[
        int,
        typer.Option(min=1, max=SEEDS_MAX, metavar="N", help="Runs, with seeds from --seed on."),
    ] = 5,
    seed: Seed = 0,
    workers: WorkersMax = None,
    since: Since = SINCE,
    data_dir: DataDir = None,
    read_from: ReadFrom = None,
    demo: DemoOption = False,
    json_to: JsonTo = None,
    plot_to: PlotTo = None,
) -> None:
    """Simulate what the cell has just done, as it was and otherwise.

    The jobs of the time that was saved arrive again, on the cell as it was then, at the schedulers
    that were there, with the decision times that they reported; and then at those that you name.
    Beside it stands what happened.

    [bold]omega what-if cell.snapshot --schedulers batch=4 --rule sequence --plot otherwise.png[/]
    """
    output = Output(json_to)
    refuse_undrawable(plot_to)
    clock = RealClock()
    if file is not None:
        if demo or read_from is not None or since != SINCE:
            raise BadInput("a file is read, not a cell: leave out what names one", field="FILE")
        with output.console.status("Reading the file"):
            cell = read_cell(file)
    else:
        with (
            reader_url(data_dir, read_from, demo=demo) as (settings, url),
            output.console.status("Reading the cell"),
        ):
            timeout_ms = settings.statement_timeout_ms
            cell = save_cell(url, since_ms=read_since(since), statement_timeout_ms=timeout_ms)
    comparison = Comparison(cell, plan.variants(cell), range(seed, seed + seeds))
    began = clock.now()
    _conduct(comparison, cell, workers, output)
    output.document(
        parameters={
            "file": None if file is None else file.name,
            "changes": plan.changes,
            "seed": seed,
            "seeds": seeds,
        },
        rows=comparison.rows(),
        summary={**comparison.summary(), "wall_s": round(clock.now() - began, 3)},
    )
    comparison.show(output.console)
    if plot_to is not None:
        where = "the live cell" if file is None else file.name
        draw(comparison.drawable(plan.changes, where)).save(plot_to)


def _conduct(comparison: Comparison, cell: SavedCell, workers: int | None, output: Output) -> None:
    """Simulate every variant with every seed."""
    packed = PackedCell.of(cell)
    trials = [
        Trial(point, seed, Work(packed, variant, seed))
        for point, variant in enumerate(comparison.variants.values())
        for seed in comparison.seeds
    ]
    pool = processes(min(workers or cores(), len(trials)))
    with stop_on_signals() as stop, pool as they, progress_bar(output.console) as progress:
        bar = progress.add_task(f"simulating, {they.said}", total=len(trials))

        def settle(trial: Trial[Work], came: Figures | Exception) -> None:
            if isinstance(came, OmegaError):
                raise came
            if isinstance(came, Exception):
                raise OmegaError(f"seed {trial.seed}: {type(came).__name__}: {came}") from came
            comparison.note(trial.point, trial.seed, came)
            progress.advance(bar)

        try:
            if not run_trials(
                they.executor,
                simulate_work,
                trials,
                at_once=they.at_once,
                settle=settle,
                stopped=stop.is_set,
            ):
                raise KeyboardInterrupt
        except BrokenExecutor as error:
            raise OmegaError("a worker ended before its run did") from error
