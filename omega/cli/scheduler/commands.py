"""`omega scheduler`: run one replica of a scheduler, or list the kinds there are.

Goal     Run any registered scheduler against the cell, ours or another package's.
Promise  Ctrl-C and SIGTERM end it cleanly: its leases are returned, and no work is left half done.
Source   omega.framework.runner; omega.framework.registry.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from omega.cli.cell_access import cell_settings, cell_store
from omega.cli.options import (
    EndWithParent,
    Gap,
    LogFormatOption,
    LogLevelOption,
    PartsOf,
    Rule,
    SyncBy,
    TJob,
    TTask,
    TurnOf,
    Unit,
    process_name,
    read_turn,
)
from omega.cli.scheduler.record import RecordTo, recorded
from omega.clock import RealClock
from omega.errors import BadInput, OmegaError, shortened
from omega.framework.kinds import registered
from omega.framework.registry import configured
from omega.framework.runner import SchedulerProcess
from omega.framework.scheduler import DecisionTime, Scheduler
from omega.model.claims import ConflictRule, Granularity
from omega.processes.stopping import stop_on_signals, stop_with_parent
from omega.reports.printable import short
from omega.reports.processes import is_alive, name_of
from omega.store.opening import store_at
from omega.store.protocols import ReaderStore
from omega.store.status import ProcessReport
from omega.sync.choice import Sync
from omega.sync.turns import TurnSettings
from omega.terminal.consoles import Output
from omega.terminal.options import DataDir, JsonTo, Seed, read_pairs
from omega.terminal.process_log import LogFormat, LogLevel, ProcessLog

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich")

ItsOwn = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A setting of the scheduler's own, for example round=360 for ml-gpu; or order=drf or"
        " order=choosy, to lease in an order that is fair to tenants.",
    ),
]


@app.command()
def run(  # noqa: PLR0913, PLR0917 - a parameter is an option
    kind: Annotated[str, typer.Argument(help="Which scheduler, as `omega scheduler list` shows.")],
    replica: Annotated[
        str,
        typer.Option(
            callback=process_name,
            metavar="NAME",
            help="Tells replicas of a kind apart; give each its own.",
        ),
    ] = "0",
    rule: Rule = None,
    granularity: Unit = None,
    sync: SyncBy = Sync.DELTA,
    turn: TurnOf = None,
    parts: PartsOf = None,
    gap: Gap = 1.0,
    t_job: TJob = 0.0,
    t_task: TTask = 0.0,
    seed: Seed = 0,
    settings_of_its_own: ItsOwn = None,
    record: RecordTo = None,
    log_level: LogLevelOption = LogLevel.INFO,
    log_format: LogFormatOption = LogFormat.AUTO,
    data_dir: DataDir = None,
    end_with_parent: EndWithParent = False,
) -> None:
    """Run one replica until Ctrl-C or SIGTERM.

    Two that race for the same machines: [bold]omega scheduler run batch --replica a &[/] and
    [bold]omega scheduler run batch --replica b &[/]
    """
    fixed = read_turn(turn, sync, parts)
    scheduler = _chosen(kind, rule, granularity, its_own(settings_of_its_own or []))
    name = f"omega {kind}/{replica}"
    with stop_on_signals() as stop, cell_settings(data_dir) as (settings, url):
        if end_with_parent:
            stop_with_parent(stop)
        turns = TurnSettings(kind, replica, gap, settings.lease_ms, parts or 0, fixed)
        clock = RealClock(stop)
        log = ProcessLog(name_of(kind, replica), clock, log_level, log_format)
        with (
            closing(store_at(url, settings, name, stop)) as opened,
            recorded(opened, record, (kind, replica), clock, log) as store,
        ):
            SchedulerProcess(
                scheduler=scheduler,
                store=store,
                open_store=lambda: store_at(url, settings, f"{name} heartbeat", stop),
                clock=clock,
                settings=settings,
                sink=log,
                replica=replica,
                run_seed=seed,
                stop=stop,
                decision_time=DecisionTime(job_s=t_job, task_s=t_task),
                refresher=partial(sync.refresher, turn=turns),
            ).run()


@app.command("list")
def list_them(json_to: JsonTo = None) -> None:
    """List the kinds of scheduler that are registered, ours and other packages'."""
    output = Output(json_to)
    kinds = registered()
    output.document(
        parameters={}, rows=[vars(each) for each in kinds], summary={"schedulers": len(kinds)}
    )
    table = Table("kind", "class", "from", box=None, pad_edge=False, header_style="bold")
    for each in kinds:
        table.add_row(*(Text(short(one)) for one in (each.kind, each.origin, each.package)))
    output.console.print(table)


@app.command()
def forget(
    kind: Annotated[str, typer.Argument(help="Its kind, as `omega status` shows.")],
    replica: Annotated[
        str, typer.Option(callback=process_name, metavar="NAME", help="Which replica of the kind.")
    ] = "0",
    data_dir: DataDir = None,
) -> None:
    """Drop a scheduler that was killed from `omega status`.

    Its jobs need nothing: their leases run out, and other replicas take them.
    """
    name = name_of(kind, replica)
    with cell_store(data_dir) as store:
        found = _report_of(store, kind, replica)
        if found is None:
            raise OmegaError(f"no process has reported as {name}")
        if is_alive(found):
            raise OmegaError(f"{name} runs, as process {found.pid}: stop it instead")
        store.forget(kind, replica)
        if _report_of(store, kind, replica) is not None:
            raise OmegaError(f"{name} ran under another login: that one or the owner may drop it")
    Output().console.print(f"{short(name)} is dropped.", highlight=False)


def _report_of(store: ReaderStore, kind: str, replica: str) -> ProcessReport | None:
    named = (it for it in store.reports() if (it.kind, it.replica) == (kind, replica))
    return next(named, None)


def its_own(said: Sequence[str]) -> dict[str, str]:
    """Read NAME=VALUE pairs; raise BadInput for other texts, and for a name that is repeated."""
    settings: dict[str, str] = {}
    for name, value in read_pairs(said, option="--set"):
        if name in settings:
            raise BadInput(f"{shortened(name)} is told twice", field="--set")
        settings[name] = value
    return settings


def _chosen(
    kind: str,
    rule: ConflictRule | None,
    granularity: Granularity | None,
    settings: Mapping[str, str],
) -> Scheduler:
    scheduler = configured(kind, settings)
    if rule is not None:
        scheduler.rule = rule
    if granularity is not None:
        if scheduler.rounds is not None:
            raise BadInput("rounds place each gang whole, and say so", field="--granularity")
        scheduler.granularity = granularity
    return scheduler
