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
from omega.nodes.agent.process_driver import ProcessDriver
from omega.nodes.agent.task_driver import TaskDriver

TASKS: Final = "tasks"
"""The folder of tasks that run as processes, in an agent's."""
ENGINE_HELP: Final = "The engine for tasks with an image: one that is found, none, or this one."


def container_tasks(
    folder: Path,
    clock: Clock,
    containers: str,
    warn: Callable[[str], None],
    *,
    env_dirs: Sequence[Path] = (),
) -> TaskDriver | None:
    """Return the driver of tasks with an image; None if there is no engine, or none is wanted.

    Raises SettingsError for an engine that is named and away.
    """
    match containers:
        case "auto":
            engine = find_engine()
        case "none":
            engine = None
        case address:
            engine = address
    if engine is None:
        return None
    return container_driver(
        folder / "containers",
        clock,
        agent=str(folder),
        engine=engine,
        env_dirs=env_dirs,
        warn=warn,
    )


def process_tasks(
    folder: Path,
    clock: Clock,
    warn: Callable[[str], None],
    *,
    users: Set[str] = frozenset(),
    env_dirs: Sequence[Path] = (),
    cgroups: Cgroups | None = None,
) -> TaskDriver:
    """Return the driver of tasks without an image."""
    return ProcessDriver(
        folder / TASKS, clock, users=users, env_dirs=env_dirs, cgroups=cgroups, warn=warn
    )
