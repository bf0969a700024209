"""`omega up`: a whole cell on this machine, under one command.

Goal     Have commands run here with nothing else to set up.
Promise  The database, the schedulers, the agent and the page end with this command, and so do the
         tasks: they are back in the queue. What the database holds stays for the next time.
Source   docs/guide/agents.md.
"""

import threading
from contextlib import closing
from typing import Annotated, Final

import typer
from rich.status import Status

from omega.cli.cell_access import cell_settings
from omega.cli.node.drivers import ENGINE_HELP
from omega.cli.node.run import refuse_root
from omega.cli.options import read_replica_sets, replicas_of
from omega.cli.web.command import LOOPBACK, free_port, has_extra
from omega.clock import Clock, RealClock
from omega.config import Settings
from omega.errors import OmegaError
from omega.framework.registry import find_scheduler
from omega.processes.stopping import stop_on_signals
from omega.processes.supervisor import ChildSpec, RestartPolicy, Supervisor, omega_command
from omega.reports.printable import printable
from omega.reports.processes import is_alive
from omega.reports.wording import amounts, things
from omega.store.opening import store_at
from omega.store.postgres.schema import migrate
from omega.store.protocols import ReaderStore
from omega.terminal.consoles import Output
from omega.terminal.options import DataDir

PAGE: Final = "page"
"""The name of the process of the page, which reports nothing."""
LOOK_S: Final = 0.2
START_S_MAX: Final = 60.0
POLL_MS: Final = 50
"""How often idle processes look for work: on one machine that costs little."""
GRACE_S: Final = 90.0
"""Time for the agent to end its tasks, and for schedulers to end theirs."""


def command(
    schedulers: Annotated[
        str, typer.Option(metavar="KIND=N,...", help="Which schedulers to run.")
    ] = "batch=1,service=1",
    cpu: Annotated[
        str | None, typer.Option(metavar="CORES", help="To offer, instead of all that there are.")
    ] = None,
    memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="To offer, instead of all that there is.")
    ] = None,
    containers: Annotated[str, typer.Option(metavar="auto|none|URL", help=ENGINE_HELP)] = "auto",
    allow_root: Annotated[
        bool, typer.Option("--allow-root", help="Run as root: tasks then are root's, too.")
    ] = False,
    data_dir: DataDir = None,
) -> None:
    """Run a whole cell on this machine, until Ctrl-C.

    It has a database, schedulers, an agent that runs what is placed, and a page that shows it
    (with the extra `web`).

    In another terminal: [bold]omega run -- echo hello[/]
    """
    refuse_root(allow_root)
    sets = read_replica_sets(schedulers)
    for each in sets:
        find_scheduler(each.kind)
    output = Output()
    agent = ["node", "run", "--end-tasks", "--containers", containers]
    agent += ["--allow-root"] if allow_root else []
    agent += [] if cpu is None else ["--cpu", cpu]
    agent += [] if memory is None else ["--memory", memory]
    specs = [
        ChildSpec(
            f"{one.kind}-{replica}",
            omega_command("scheduler", "run", one.kind, "--replica", replica),
        )
        for one, replica in replicas_of(sets)
    ]
    specs.append(ChildSpec("agent", omega_command(*agent)))
    port = (free_port() or None) if has_extra() else None
    if port is not None:
        specs.append(ChildSpec(PAGE, omega_command("web", "--port", str(port))))
    with (
        stop_on_signals() as stop,
        output.console.status("Starting Postgres") as status,
        cell_settings(data_dir) as (settings, url),
    ):
        migrate(url)
        supervisor = Supervisor(
            specs,
            log_dir=settings.data_dir / "logs" / "up",
            environment=_environment(settings, url),
            policy=RestartPolicy(grace_s=GRACE_S),
            tell=lambda sentence: output.console.print(printable(sentence), highlight=False),
        )
        with closing(store_at(url, settings, "omega up")) as store, supervisor:
            status.update("Starting the schedulers and the agent")
            _watch(supervisor, store, RealClock(stop), stop, output, status, port)


def _environment(settings: Settings, url: str) -> dict[str, str]:
    """Return the children's settings; what the operator said of polls is left as it is."""
    said = {"OMEGA_DATABASE_URL": url, "OMEGA_DATA_DIR": str(settings.data_dir)}
    if "poll_interval_ms" not in settings.model_fields_set:
        said["OMEGA_POLL_INTERVAL_MS"] = str(POLL_MS)
    return said


def _watch(
    supervisor: Supervisor,
    store: ReaderStore,
    clock: Clock,
    stop: threading.Event,
    output: Output,
    status: Status,
    port: int | None,
) -> None:
    """Watch the processes until a stop is asked for.

    Raises OmegaError if one is given up, but for the page, or if they do not come up in time.
    """
    began_s, is_up = clock.now(), False
    pids = _of_reporters(supervisor)
    while not stop.is_set():
        supervisor.look()
        for child in supervisor.given_up:
            if child.spec.name != PAGE:  # the cell works without it
                raise OmegaError(
                    f"{child.spec.name} {child.last_end}: {child.log_tail()} (see {child.log})"
                )
        if not is_up:
            is_up = pids <= {report.pid for report in store.reports() if is_alive(report)}
            if is_up:
                status.stop()
                _say_ready(store, output, port)
            elif clock.now() - began_s > START_S_MAX:
                raise OmegaError(f"the processes did not come up within {START_S_MAX:g} s")
            pids = _of_reporters(supervisor)
        clock.sleep(LOOK_S)
    status.stop()
    output.console.print("Ending the tasks, the schedulers and the database.", highlight=False)


def _of_reporters(supervisor: Supervisor) -> set[int | None]:
    """Return the ids of the processes that report to the store: all but the page's."""
    return {child.pid for child in supervisor.children if child.spec.name != PAGE}


def _say_ready(store: ReaderStore, output: Output, port: int | None) -> None:
    use = store.use()
    output.console.print(
        f"{things(use.open, 'machine')} with {amounts(use.capacity)}. In another terminal:"
        " omega run -- echo hello",
        highlight=False,
    )
    if port is not None:
        output.console.print(f"A page that shows it: http://{LOOPBACK}:{port}/", highlight=False)
