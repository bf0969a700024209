"""`omega node run`: the agent of this machine.

Goal     Make a machine part of the cell, and run what is placed there.
Promise  Ctrl-C and SIGTERM end the agent and not its tasks; the next agent with the same folder
         takes these up. A second agent with the folder is refused. Root is refused unless allowed.
Source   docs/guide/agents.md; docs/decisions/0044-programs-and-agents.md.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Final
from uuid import uuid4

import numpy as np
import typer

from omega.cli.cell.sizes import Size, read_attributes, refuse_bad_name
from omega.cli.cell_access import cell_settings
from omega.cli.node.drivers import (
    ENGINE_HELP,
    NONE,
    TASKS,
    container_tasks,
    engine_to_use,
    process_tasks,
)
from omega.cli.node.watch import WatchdogProcess
from omega.cli.options import EndWithParent, LogFormatOption, LogLevelOption
from omega.clock import BootClock, Clock
from omega.errors import BadInput
from omega.events import AgentWarned, Sink
from omega.framework.retry import Retry
from omega.model.arrays import Amounts
from omega.model.names import ADDRESS_RULE, is_address
from omega.model.resources import DEVICES_MAX, KINDS, Kind, named
from omega.nodes.agent.background_driver import BackgroundDriver
from omega.nodes.agent.cgroups import find_cgroups
from omega.nodes.agent.hardware import found_capacity
from omega.nodes.agent.live import LiveAgent, keep_tasks, register
from omega.nodes.agent.locks import alone_in
from omega.nodes.agent.machine_lease import MachineLease, holder_of
from omega.nodes.agent.own_address import address_towards
from omega.nodes.agent.own_machine import TaskDrivers
from omega.processes.stopping import stop_on_signals, stop_with_parent
from omega.reports.printable import short
from omega.reports.processes import AGENT, name_of
from omega.reports.wording import amounts
from omega.store.opening import store_at
from omega.store.postgres.databases import host_of
from omega.terminal.consoles import Output
from omega.terminal.dataclass_options import takes
from omega.terminal.options import DataDir, number_option
from omega.terminal.process_log import LogFormat, LogLevel, ProcessLog
from omega.terminal.rng import rng_from_seed
from omega.workload.quantities import shown

AGENTS: Final = "agents"
"""The folder of agents' state in the data folder."""
NOTHING: Final = np.zeros(KINDS, dtype=np.int64)
ABSENCE_S: Final = 600.0
"""How long the tasks of an agent that was asked to end wait for the next one."""
LEASE_S_MIN: Final = 2.0
LEASE_S_MAX: Final = 86_400.0


class OnSilence(Enum):
    """What becomes of tasks while the database is away."""

    STOP = "stop"
    KEEP = "keep"


@dataclass(frozen=True)
class AgentPlan:
    """What the options say of an agent."""

    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The machine's; the host's name if not given."),
    ] = None
    attribute: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="What constraints can name, as in zone=b; can be said again.",
        ),
    ] = None
    cpu: Annotated[
        str | None, typer.Option(metavar="CORES", help="To offer, instead of all that there are.")
    ] = None
    memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="To offer, instead of all that there is.")
    ] = None
    gpus: Annotated[
        int | None,
        typer.Option(min=0, max=DEVICES_MAX, metavar="N", help="To offer, not all that are found."),
    ] = None
    reserve_cpu: Annotated[
        str, typer.Option(metavar="CORES", help="To leave for others, of what there is.")
    ] = "0"
    reserve_memory: Annotated[
        str, typer.Option(metavar="SIZE", help="To leave for others, of what there is.")
    ] = "0"
    address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST",
            help="Where tasks on other machines reach those here; that of the network interface"
            " towards the database if not given.",
        ),
    ] = None
    state_dir: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where tasks and their outputs are kept; in the data folder."
        ),
    ] = None
    containers: Annotated[
        str,
        typer.Option(
            metavar="auto|none|URL",
            help=ENGINE_HELP,
        ),
    ] = "auto"
    allow_user: Annotated[
        list[str] | None,
        typer.Option(metavar="USER", help="A user as whom tasks may run; can be said again."),
    ] = None
    allow_env_dir: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="A folder whose env files tasks may name; again."),
    ] = None
    allow_root: Annotated[
        bool, typer.Option("--allow-root", help="Run as root: tasks then are root's, too.")
    ] = False
    lease: Annotated[
        float,
        number_option(
            lowest=LEASE_S_MIN,
            highest=LEASE_S_MAX,
            metavar="S",
            help="How long the cell waits for a silent agent before it places its tasks elsewhere.",
        ),
    ] = 30.0
    on_silence: Annotated[
        OnSilence,
        typer.Option(
            help="If the database is away for longer: stop the tasks before others may run them,"
            " or keep them however long it takes."
        ),
    ] = OnSilence.STOP
    end_tasks: Annotated[
        bool, typer.Option("--end-tasks", help="End the tasks with the agent, to be placed anew.")
    ] = False

    def capacity(self, folder: Path) -> Amounts:
        """Return what the machine offers, (kinds,). Raises BadInput."""
        reserved = Size.read(self.reserve_cpu, self.reserve_memory, None, None).of(NOTHING)
        offered = Size.read(self.cpu, self.memory, None, self.gpus)
        return offered.of(found_capacity(folder, reserved))

    def refuse_contradictions(self) -> None:
        """Raise BadInput if an option contradicts another."""
        if self.end_tasks and self.on_silence is OnSilence.KEEP:
            raise BadInput("it contradicts --on-silence keep", field="--end-tasks")

    def machine_lease(self, folder: Path, now_s: float) -> MachineLease | None:
        """Return the lease to hold; None if tasks go on whatever becomes of the database."""
        if self.on_silence is OnSilence.KEEP:
            return None
        return MachineLease.taken_up(folder, holder_of(folder, uuid4()), self.lease, now_s)

    def own_address(self, url: str) -> str:
        """Return the machine's address, of an agent of the cell at this URL. Raises BadInput."""
        if self.address is None:
            return address_towards(host_of(url))
        if not is_address(self.address):
            raise BadInput(
                f"{shown(self.address)} is no address: {ADDRESS_RULE}", field="--address"
            )
        return self.address

    @contextmanager
    def drivers(
        self, folder: Path, clock: Clock, capacity: Amounts, sink: Sink
    ) -> Iterator[TaskDrivers]:
        """Have the drivers of an agent that offers this capacity, (kinds,).

        A warning tells what they cannot do. Raises SettingsError for an engine that is away, and
        BadInput for another one than that of tasks that run.
        """

        def warn(why: str) -> None:
            sink(AgentWarned(why))

        env_dirs = tuple(path.resolve() for path in self.allow_env_dir or [])
        engine = engine_to_use(folder, self.containers, warn)
        containers = None
        if engine is not None:
            driver = container_tasks(folder, clock, engine, warn, env_dirs=env_dirs)
            containers = BackgroundDriver(driver, clock)
        cgroups = find_cgroups(folder / TASKS, cpu_milli=int(capacity[Kind.CPU_MILLI]), warn=warn)
        users = frozenset(self.allow_user or [])
        processes = process_tasks(
            folder, clock, warn, users=users, env_dirs=env_dirs, cgroups=cgroups
        )
        try:
            yield TaskDrivers(processes=processes, containers=containers, engine=engine or "")
        finally:
            if containers is not None:
                containers.close()
            if cgroups is not None:
                cgroups.close()

    def folder(self, data_dir: Path) -> Path:
        """Return the agent's folder; containers have its name, wherever the agent was started."""
        of_machine = data_dir / AGENTS / self.machine().replace("/", "_")
        return (self.state_dir or of_machine).absolute()

    def machine(self) -> str:
        """Return the machine's name. Raises BadInput."""
        name = self.name or socket.gethostname()
        refuse_bad_name(name, field="--name")
        return name


@takes(AgentPlan)
def command(
    plan: AgentPlan,
    log_level: LogLevelOption = LogLevel.INFO,
    log_format: LogFormatOption = LogFormat.AUTO,
    data_dir: DataDir = None,
    end_with_parent: EndWithParent = False,
) -> None:
    """Run what is placed on this machine, until Ctrl-C or SIGTERM; its tasks then go on.

    The machine joins the cell under its name, with what it has.

    For example [bold]omega node run --attribute zone=b --reserve-memory 2GiB[/]
    """
    refuse_root(plan.allow_root)
    plan.refuse_contradictions()
    name, attributes = plan.machine(), read_attributes(plan.attribute or [])
    with stop_on_signals() as stop, cell_settings(data_dir) as (settings, url):
        if end_with_parent:
            stop_with_parent(stop)
        folder = plan.folder(settings.data_dir)
        with alone_in(folder), closing(store_at(url, settings, "omega agent", stop)) as store:
            clock = BootClock(stop)
            sink = ProcessLog(name_of(AGENT, name), clock, log_level, log_format)
            retry = Retry(clock, sink, settings, rng_from_seed(os.getpid()), stop)
            capacity, address = plan.capacity(folder), plan.own_address(url)
            # Whatever is refused is refused before the machine is in the cell.
            with plan.drivers(folder, clock, capacity, sink) as drivers:
                machine = register(
                    store, retry, name, capacity=capacity, attributes=attributes, address=address
                )
                held = plan.machine_lease(folder, clock.now())  # registering may have taken long
                if held is None:
                    keep_tasks(store, retry, machine, folder)
                agent = LiveAgent(
                    store,
                    clock,
                    sink,
                    machine=machine,
                    drivers=drivers,
                    folder=folder,
                    poll_s=settings.poll_interval_ms / 1_000,
                    lease=held,
                )
                offered = amounts(named(capacity))
                Output().console.print(f"{short(name)} offers {offered}.", highlight=False)
                watchdog = WatchdogProcess(folder, drivers.engine or NONE)
                agent.run(stop, watchdog.ensure if held is not None else lambda: None)
                depart(agent, end_tasks=plan.end_tasks)


def depart(agent: LiveAgent, *, end_tasks: bool) -> None:
    """Leave the cell: end the tasks first, or let them go on without an agent for a while."""
    if end_tasks:
        agent.end_tasks()
    else:
        agent.be_absent(ABSENCE_S)
    agent.leave()


def refuse_root(allowed: bool) -> None:
    """Raise BadInput if this is root, unless that is allowed."""
    if os.geteuid() == 0 and not allowed:
        raise BadInput(
            "this user is root, so tasks could do anything here; give the option to permit it",
            field="--allow-root",
        )
