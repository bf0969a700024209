"""`omega node watch`: the watchdog of an agent, which the agent starts.

Goal     Kill an agent's tasks before the cell may place them elsewhere, if the agent cannot.
Promise  A process in a session of its own, which outlives the agent while there are tasks. A second
         watchdog of a folder ends at once.
Source   docs/decisions/0045-machine-leases.md.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from omega.cli.node.drivers import ENGINE_HELP, kill_containers, process_tasks
from omega.clock import BootClock
from omega.errors import BadInput
from omega.nodes.agent.locks import AGENT_LOCK, WATCHDOG_LOCK, alone_in, is_locked
from omega.nodes.agent.machine_lease import Deadline
from omega.nodes.agent.task_driver import TaskKey
from omega.nodes.agent.watchdog import Watchdog, kill_running, watch_all
from omega.processes.stopping import stop_on_signals
from omega.reports.wording import things
from omega.terminal.consoles import warn


def command(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The agent's --state-dir.")],
    containers: Annotated[str, typer.Option(metavar="auto|none|URL", help=ENGINE_HELP)] = "auto",
) -> None:
    """Kill the tasks of an agent whose lease runs out; the agent starts this itself."""
    with stop_on_signals() as stop:
        clock = BootClock(stop)

        def watchdog(kill: Callable[[], set[TaskKey]]) -> Watchdog:
            return Watchdog(
                Deadline(folder),
                clock,
                kill=kill,
                is_alone=lambda: not is_locked(folder, AGENT_LOCK),
                warn=warn,
            )

        # The driver of processes must be made in the main thread.
        processes = watchdog(lambda: kill_running(process_tasks(folder, clock, warn)))
        in_engines = watchdog(lambda: kill_containers(folder, containers))
        try:
            with alone_in(folder, WATCHDOG_LOCK):
                killed = watch_all(processes, [in_engines], clock, stop)
        except BadInput:  # another watchdog is at work
            return
    if killed:
        warn(f"the watchdog of {folder} has killed {things(len(killed), 'task')}")


class WatchdogProcess:
    """The watchdog of an agent: a process, which is started again if it ends."""

    def __init__(self, folder: Path, containers: str) -> None:
        self._folder = folder
        self._words = ["node", "watch", str(folder), "--containers", containers]
        self._process: subprocess.Popen[bytes] | None = None

    def ensure(self) -> None:
        """Start one if none is at work; one that outlived an earlier agent counts."""
        if self._process is not None and self._process.poll() is None:
            return
        if not is_locked(self._folder, WATCHDOG_LOCK):
            self._process = subprocess.Popen(
                [sys.executable, "-m", "omega.cli", *self._words],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
