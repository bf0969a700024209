"""`omega node`: run agents or virtual nodes, and assign machines to their logins.

Goal     Run programs on real machines, or end tasks and make steps of jobs without any.
Promise  Ctrl-C and SIGTERM end the nodes cleanly. Tasks whose time is up while no nodes run end
         when nodes run again.
Source   omega.nodes.virtual; docs/decisions/0017-roles.md.
"""

import os
import threading
from contextlib import closing, suppress
from typing import Annotated, Final

import typer

from omega.cli.cell_access import cell_settings
from omega.cli.node import run, watch
from omega.cli.options import (
    EndWithParent,
    LogFormatOption,
    LogLevelOption,
    Speedup,
    process_name,
)
from omega.clock import Clock, RealClock
from omega.config import Settings
from omega.errors import BadInput, StoreUnavailable
from omega.events import ProcessReported, Sink, fan_out
from omega.framework.effects import Effects
from omega.framework.rate_readers import read_rates
from omega.framework.retry import Retry
from omega.framework.timer import Timer
from omega.metrics.fold import SchedulerFold
from omega.nodes.calling import called
from omega.nodes.live import LiveNodes
from omega.nodes.stepper import StepRates
from omega.processes.stopping import stop_on_signals, stop_with_parent
from omega.reports.processes import NODES, name_of
from omega.reports.wording import things
from omega.store.opening import store_at
from omega.store.postgres.assignment import assign_machines
from omega.store.protocols import Store
from omega.terminal.consoles import Output
from omega.terminal.options import DataDir, number_option
from omega.terminal.process_log import LogFormat, LogLevel, ProcessLog
from omega.terminal.rng import rng_from_seed

REPORT_INTERVAL_MS: Final = 1_000
RESTART_S_MAX: Final = 86_400.0

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")
app.command("run")(run.command)
app.command("watch", hidden=True)(watch.command)


@app.callback()
def _nodes() -> None:
    """Run what is placed on a machine, or simulate the cell's machines."""


@app.command()
def simulate(  # noqa: PLR0913, PLR0917 - a parameter is an option
    speedup: Speedup = None,
    rates: Annotated[
        str | None,
        typer.Option(metavar="[NAME:]FILE", help="Rates at which jobs in steps make them."),
    ] = None,
    restart: Annotated[
        float,
        number_option(
            lowest=0,
            highest=RESTART_S_MAX,
            metavar="SECONDS",
            help="What a job in steps loses to an interruption, in its own time.",
        ),
    ] = 0.0,
    gpu_attribute: Annotated[
        str,
        typer.Option(
            callback=process_name, metavar="NAME", help="What names a machine's type of GPU."
        ),
    ] = "gpu_model",
    replica: Annotated[str, typer.Option(callback=process_name, metavar="NAME", hidden=True)] = "0",
    log_level: LogLevelOption = LogLevel.INFO,
    log_format: LogFormatOption = LogFormat.AUTO,
    data_dir: DataDir = None,
    end_with_parent: EndWithParent = False,
) -> None:
    """End tasks when their time is up, until Ctrl-C or SIGTERM.

    Sixty times as fast as they say: [bold]omega node simulate --speedup 60[/]

    Jobs in steps make them at the rates of a file, and end with the last one. Packages register
    readers of such files; where there are several, a reader's name goes before the file's.
    """
    model = None if rates is None else read_rates(rates, gpu_attribute=gpu_attribute)
    its = StepRates(model=model, restart_s=restart)
    with (
        stop_on_signals() as stop,
        cell_settings(data_dir, nodes_speedup=speedup) as (settings, url),
    ):
        if end_with_parent:
            stop_with_parent(stop)
        with closing(store_at(url, settings, "omega node", stop)) as store:
            clock = RealClock(stop)
            log = ProcessLog(name_of(NODES, replica), clock, log_level, log_format)
            _run(store, settings, clock, stop, replica, its, log)


@app.command()
def assign(
    role: Annotated[str, typer.Argument(help="A login of Postgres, or a role that it has.")],
    machine: Annotated[
        list[str] | None, typer.Argument(help="Names of machines; any others are its no more.")
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Every machine, also those that join later.")
    ] = False,
    none: Annotated[bool, typer.Option("--none", help="No machine.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Say on which machines the nodes of a login may end tasks: on these and on no others.

    A login that is not the owner's needs the role omega_node besides: see [bold]omega db init
    --roles[/].
    """
    if (machine is not None) + every + none != 1:
        raise BadInput("name machines, or say --all, or --none")
    with cell_settings(data_dir) as (settings, url):
        assigned = assign_machines(
            url,
            role,
            None if every else machine or [],
            statement_timeout_ms=settings.statement_timeout_ms,
        )
    Output().console.print(f"{role} stands for {things(assigned, 'machine')}.", highlight=False)


def _run(
    store: Store,
    settings: Settings,
    clock: Clock,
    stop: threading.Event,
    replica: str,
    rates: StepRates,
    log: Sink,
) -> None:
    fold = SchedulerFold(clock)
    sink = fan_out(fold, log)
    retry = Retry(clock, sink, settings, rng_from_seed(os.getpid()), stop)
    nodes = LiveNodes(store, clock, sink, retry, speedup=settings.nodes_speedup, rates=rates)
    reports = Timer(clock, REPORT_INTERVAL_MS)

    def report_when_due() -> Effects[None]:
        if reports.due():
            facts = {**fold.facts(), "speedup": settings.nodes_speedup}
            yield from called(
                "report", lambda cell: cell.report(NODES, replica, pid=os.getpid(), facts=facts)
            )
            sink(ProcessReported())

    nodes.run(stop, report_when_due)
    with suppress(StoreUnavailable):  # a report that remains is soon shown as silent
        store.forget(NODES, replica)
