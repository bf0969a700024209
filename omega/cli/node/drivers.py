"""The task drivers of an agent's folder, as its options describe them.

Goal     Have an agent and its watchdog find the same tasks.
Promise  Both use the same folders and labels. The records of the tasks that run say in which engine
         their containers are: an agent works with that engine or does not start, unless it is told
         to do without containers.
Source   omega.nodes.agent; docs/decisions/0045-machine-leases.md.
"""

from collections.abc import Callable, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import Final

from omega.clock import Clock
from omega.errors import BadInput, SettingsError
from omega.nodes.agent import engine_search
from omega.nodes.agent.cgroups import Cgroups
from omega.nodes.agent.engine_search import container_driver, find_engine
from omega.nodes.agent.process_driver import ProcessDriver
from omega.nodes.agent.records import RECORDS, engines_of
from omega.nodes.agent.task_driver import ClosableDriver, TaskDriver, TaskKey

TASKS: Final = "tasks"
"""The folder of tasks that run as processes, in an agent's."""
AUTO, NONE = "auto", "none"
"""What may be said instead of an engine's address."""
ENGINE_HELP: Final = "The engine for tasks with an image: one that is found, none, or this one."


def engine_to_use(folder: Path, containers: str, warn: Callable[[str], None]) -> str | None:
    """Return the address of the engine that an agent is to work with; None: it has none.

    Raises BadInput for another one than that of the tasks that run.
    """
    recorded = engines_of(folder / RECORDS)
    if containers == NONE:
        for engine in recorded:
            warn(f"containers of tasks may run on in the engine {engine!r}: they are given up")
        return None
    if containers == AUTO:
        return recorded[0] if recorded else find_engine()
    for engine in recorded:
        if _resolved(engine) != _resolved(containers):
            raise BadInput(
                f"it is {containers!r}, and containers of tasks may run in the engine {engine!r}:"
                f" say {AUTO} to take them up, or {NONE} to give them up",
                field="--containers",
            )
    return containers


def _resolved(address: str) -> str:
    """Return an engine's address without the links in the path of its socket."""
    scheme, separator, path = address.partition("://")
    return f"unix://{Path(path).resolve()}" if scheme + separator == "unix://" else address


def container_tasks(
    folder: Path,
    clock: Clock,
    engine: str,
    warn: Callable[[str], None],
    *,
    env_dirs: Sequence[Path] = (),
) -> ClosableDriver:
    """Return the driver of tasks with an image. Raises SettingsError if the engine is away."""
    try:
        return container_driver(
            folder / "containers",
            clock,
            agent=str(folder),
            engine=engine,
            env_dirs=env_dirs,
            warn=warn,
        )
    except SettingsError as error:
        if engine not in engines_of(folder / RECORDS):
            raise
        why = (
            f"{error}; containers of tasks may run there: start the engine, or give them up"
            f" with --containers {NONE}"
        )
        raise SettingsError([why]) from error


def kill_containers(folder: Path, containers: str) -> set[TaskKey]:
    """Kill the containers of an agent's tasks that run; return the tasks.

    The option's engine is asked, too, if it answers: tasks that an agent of an earlier version
    started have no engine on record. Raises SettingsError if an engine on record does not answer.
    """
    recorded = engines_of(folder / RECORDS)
    killed: set[TaskKey] = set()
    away: list[SettingsError] = []
    for engine in recorded:
        try:
            killed |= engine_search.kill_containers(engine, str(folder))
        except SettingsError as error:  # the others do not wait for it
            away.append(error)
    option = find_engine() if containers == AUTO else containers
    if option is not None and option not in (NONE, *recorded):
        with suppress(SettingsError):
            killed |= engine_search.kill_containers(option, str(folder))
    if away:
        raise away[0]
    return killed


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
        folder / TASKS,
        clock,
        users=users,
        env_dirs=env_dirs,
        cgroups=cgroups,
        warn=warn,
    )
