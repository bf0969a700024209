"""The task drivers of an agent's folder, as its options describe them.

Goal     Have an agent and its watchdog find the same tasks.
Promise  Both use the same folders and labels.
Source   omega.nodes.agent.
"""

from collections.abc import Callable, Sequence, Set
from pathlib import Path
from typing import Final

from omega.clock import Clock
from omega.nodes.agent.cgroups import Cgroups
from omega.nodes.agent.engine_search import container_driver, find_engine
from omega.nodes.agent.own_machine import TaskDrivers
from omega.nodes.agent.process_driver import ProcessDriver

TASKS: Final = "tasks"
"""The folder of tasks that run as processes, in an agent's."""
ENGINE_HELP: Final = "The engine for tasks with an image: one that is found, none, or this one."


def task_drivers(
    folder: Path,
    clock: Clock,
    containers: str,
    warn: Callable[[str], None],
    *,
    users: Set[str] = frozenset(),
    env_dirs: Sequence[Path] = (),
    cgroups: Cgroups | None = None,
) -> TaskDrivers:
    """Return the drivers of an agent's folder, which warn of what they cannot do.

    Raises SettingsError for an engine that is away.
    """
    match containers:
        case "auto":
            engine = find_engine()
        case "none":
            engine = None
        case address:
            engine = address
    return TaskDrivers(
        processes=ProcessDriver(
            folder / TASKS, clock, users=users, env_dirs=env_dirs, cgroups=cgroups, warn=warn
        ),
        containers=None
        if engine is None
        else container_driver(
            folder / "containers",
            clock,
            agent=str(folder),
            engine=engine,
            env_dirs=env_dirs,
            warn=warn,
        ),
    )
