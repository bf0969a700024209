"""`omega demo`: several schedulers compete for one cell, on a live screen.

Goal     Show in a minute, with one command and no set-up, what Omega does.
Promise  The demo has a separate database, created anew each time: the user's cell is not touched.
         Its processes end with it, however it ends. Exit 1 when an invariant is broken.
Source   docs/decisions/0013-processes.md.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event
from typing import Annotated, Final

import typer

from omega.cli.cell_access import DEMO
from omega.cli.demo.picture import PICTURE_WIDTH, draw, titled
from omega.cli.demo.plan import DemoPlan, Scenario, scenario_of
from omega.cli.demo.run import DemoProcesses, DemoReplica, DemoRun
from omega.cli.demo.screen import Screen
from omega.cli.demo.summary import Result
from omega.cli.loading import add_machines, place_running
from omega.cli.options import (
    DECISION_S_MAX,
    Speedup,
    TraceOptions,
    TTask,
    read_replica_sets,
    read_trace_options,
    replicas_of,
)
from omega.clock import Clock, RealClock
from omega.config import Settings, load_settings
from omega.errors import BadInput
from omega.framework.registry import find_scheduler
from omega.framework.retry import Retry
from omega.processes.stopping import stop_on_signals
from omega.processes.supervisor import ChildSpec, Supervisor, omega_command
from omega.reports.printable import printable
from omega.reports.processes import NODES
from omega.reports.wording import duration, things
from omega.store.feeding import Feeder
from omega.store.opening import server, store_at
from omega.store.postgres.databases import recreated_database
from omega.store.postgres.schema import migrate
from omega.store.protocols import Store
from omega.terminal.consoles import Output, refuse_unwritable
from omega.terminal.options import DataDir, JsonTo, Seed, number_option
from omega.terminal.rng import rng_from_seed

INTERRUPTED: Final = 130
_T_JOB_S: Final = 0.04
"""The shipped schedulers decide in a millisecond or two, so conflicts would be rare. Schedulers
with elaborate policies take longer (Omega, section 4); this time stands for them."""


Trace = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="A published trace's folder, instead of synthetic work."),
]
Seconds = Annotated[
    float,
    number_option(
        lowest=0.1,
        highest=86_400,
        metavar="N",
        help="How long jobs keep arriving.",
    ),
]
Schedulers = Annotated[
    str,
    typer.Option(
        metavar="KIND=N,...", help="How many of each kind; KIND:sequence=N chooses the rule."
    ),
]
MachineCount = Annotated[
    int, typer.Option(min=1, max=200_000, metavar="N", help="Machines of the synthetic cell.")
]
Fill = Annotated[
    float,
    number_option(
        lowest=0,
        highest=0.95,
        metavar="X",
        help="Share of it that is taken at first.",
    ),
]
PictureTo = Annotated[
    Path | None,
    typer.Option(
        "--picture", metavar="FILE.svg", help="Draw the screen and the results into a file."
    ),
]
TimeOfJob = Annotated[
    float | None,
    number_option(
        lowest=0,
        highest=DECISION_S_MAX,
        metavar="S",
        help="Seconds added to each decision on a job; 0.04 if not given, for traces 0.",
    ),
]


def command(  # noqa: PLR0913, PLR0917 - a parameter is an option
    trace: Trace = None,
    trace_option: TraceOptions = None,
    seconds: Seconds = 30.0,
    schedulers: Schedulers = "batch=2,service=1,ml-gpu=1",
    machines: MachineCount = 10_000,
    fill: Fill = 0.5,
    speedup: Speedup = None,
    t_job: TimeOfJob = None,
    t_task: TTask = 0.0,
    seed: Seed = 0,
    data_dir: DataDir = None,
    json_to: JsonTo = None,
    picture_to: PictureTo = None,
) -> None:
    """See several schedulers compete for the machines of one cell.

    Two conflict rules on the same hot cell:
    [bold]omega demo --schedulers batch:fit=2,batch:sequence=2 --fill 0.8[/]

    All pods of a real GPU cluster: [bold]omega demo --trace openb --seconds 60 --json out.json[/]
    """
    output = Output(json_to)
    if picture_to is not None:
        if picture_to.suffix.lower() != ".svg":
            raise BadInput(f"{picture_to} does not end in .svg", field="--picture")
        refuse_unwritable(picture_to, field="--picture")
    plan = DemoPlan(
        seconds=seconds,
        replica_sets=read_replica_sets(schedulers),
        machines=machines,
        fill=fill,
        speedup=speedup,
        t_job=_T_JOB_S if t_job is None and trace is None else t_job or 0.0,
        t_task=t_task,
        seed=seed,
        trace=trace,
        trace_options=read_trace_options(trace_option or []),
    )
    plan.check()
    settings = load_settings(data_dir=data_dir)
    screen = Screen(output.console)
    with stop_on_signals() as stop:
        result = _demo(plan, settings, output, screen, stop)
    output.document(parameters=plan.parameters(), rows=result.rows(), summary=result.summary())
    result.show(output.console, _next_steps(data_dir))
    if picture_to is not None:
        end = titled(result.figures(), "in the end")
        draw(picture_to, "omega demo", [*screen.of_the_load(PICTURE_WIDTH), end])
    if result.violations:
        raise typer.Exit(1)
    if result.interrupted:
        raise typer.Exit(INTERRUPTED)


def _demo(
    plan: DemoPlan, settings: Settings, output: Output, screen: Screen, stop: Event
) -> Result:
    clock, say = RealClock(stop), output.console.print
    with output.console.status("Drawing the work" if plan.trace is None else "Reading the trace"):
        scenario = scenario_of(plan, rng_from_seed(plan.seed))
    say(_what_comes(plan), highlight=False, soft_wrap=True)
    workload = scenario.workload
    for note in scenario.notes:
        say(printable(note), style="dim")
    with _fresh_cell(settings, output) as (url, store):
        load_machines_s, ids = add_machines(workload, store, output, clock)
        loaded = place_running(workload, store, ids, output, clock, stop)
        with _processes(plan, scenario, settings, url, clock) as processes, screen:
            run = DemoRun(
                store,
                processes,
                Feeder(workload.arrivals, store),
                clock=clock,
                stop=stop,
                show=screen.show,
                seconds=plan.seconds,
                retry=Retry(clock, processes.tell, settings, rng_from_seed(plan.seed), stop),
            )
            run.wait_for_start()
            played = run.play()
        with output.console.status("Checking every invariant"):
            violations = store.verify()
    return Result(
        played=played,
        loaded=loaded,
        load_machines_s=load_machines_s,
        machines=len(workload.machines),
        members=processes.members,
        speedup=scenario.speedup,
        notes=scenario.notes,
        violations=violations,
        interrupted=stop.is_set(),
    )


@contextmanager
def _fresh_cell(settings: Settings, output: Output) -> Iterator[tuple[str, Store]]:
    """Yield the URL and the store of an empty cell; the database is kept after the block."""
    with (
        output.console.status("Starting Postgres") as status,
        server(settings) as url,
        recreated_database(url, DEMO) as fresh,
    ):
        migrate(fresh)
        with closing(store_at(fresh, settings, "omega demo")) as store:
            status.stop()
            yield fresh, store


@contextmanager
def _processes(
    plan: DemoPlan, scenario: Scenario, settings: Settings, url: str, clock: Clock
) -> Iterator[DemoProcesses]:
    """Start the schedulers and the virtual nodes, each a process of its own."""
    schedulers = [
        ChildSpec(name, omega_command(*arguments))
        for name, arguments in plan.scheduler_commands().items()
    ]
    nodes = omega_command("node", "simulate", f"--speedup={scenario.speedup}")
    started = f"{things(len(schedulers), 'scheduler')} and the virtual nodes are started"
    events = [f"{started}, each a process of its own"]
    if plan.t_job:
        took = duration(plan.t_job)
        events.append(f"deciding on a job is made to take {took} (--t-job), so that the race shows")
    supervisor = Supervisor(
        [*schedulers, ChildSpec(NODES, nodes)],
        log_dir=settings.data_dir / "logs" / "demo",
        environment={"OMEGA_DATABASE_URL": url, "OMEGA_DATA_DIR": str(settings.data_dir)},
        clock=clock,
        tell=events.append,
    )
    replicas = replicas_of(plan.replica_sets)
    members = [
        DemoReplica(
            replica_set.kind,
            replica,
            replica_set.rule or find_scheduler(replica_set.kind).rule,
            child,
        )
        for (replica_set, replica), child in zip(replicas, supervisor.children, strict=False)
    ]
    with supervisor:
        yield DemoProcesses(supervisor, members, events)


def _what_comes(plan: DemoPlan) -> str:
    """Return what the demo is about to do, and for how long."""
    schedulers = sum(replica_set.replicas for replica_set in plan.replica_sets)
    where = f"{plan.machines:,} machines" if plan.trace is None else f"the machines of {plan.trace}"
    return (
        f"{things(schedulers, 'scheduler').capitalize()} will compete for {where}: jobs arrive for"
        f" {plan.seconds:g} s, then the queue runs dry. Ctrl-C ends it early."
    )


def _next_steps(data_dir: Path | None) -> list[tuple[str, str]]:
    where = f" --data-dir {data_dir}" if data_dir is not None else ""
    return [
        (f"omega jobs --demo --state parked{where}", "what could not be placed"),
        (f"omega job 1 --demo{where}", "where one job's tasks run"),
        (f"omega status --demo{where}", "the cell as it is now"),
        ("omega demo --schedulers batch:fit=2,batch:sequence=2", "two conflict rules"),
        ("omega demo --help", "real traces, other cells"),
    ]
