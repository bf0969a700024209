"""The container engine of a machine: where it listens, and the driver for it.

Goal     Find Docker or Podman without settings, and do without their library where it is missing.
Promise  An address that is returned has answered. The library, an extra, is imported only if there
         may be an engine.
Source   The usual places of the sockets of Docker and Podman.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from omega.clock import Clock
from omega.errors import SettingsError
from omega.nodes.agent.task_driver import ClosableDriver, TaskKey

LIBRARY: Final = "docker"
NO_LIBRARY: Final = "containers need the extra `containers` to be installed"


def find_engine() -> str | None:
    """Return the address of the first engine that answers; None without one or its library."""
    if find_spec(LIBRARY) is None:
        return None
    module = import_module("omega.nodes.agent.container_engine")
    for address in addresses(os.environ):
        try:
            module.Engine(address).close()
        except module.EngineError:
            continue
        return address
    return None


def addresses(env: Mapping[str, str]) -> Sequence[str]:
    """Return where an engine may listen, the likeliest first."""
    sockets = ["/run/docker.sock", "/run/podman/podman.sock"]
    if runtime_dir := env.get("XDG_RUNTIME_DIR"):
        sockets.append(f"{runtime_dir}/podman/podman.sock")
    named = [env["DOCKER_HOST"]] if env.get("DOCKER_HOST") else []
    return [*named, *(f"unix://{socket}" for socket in sockets)]


def kill_containers(engine: str, agent: str) -> set[TaskKey]:
    """Kill the containers of an agent that run; return their tasks.

    Raises SettingsError without the library or an answer of the engine.
    """
    if find_spec(LIBRARY) is None:
        raise SettingsError([NO_LIBRARY])
    module = import_module("omega.nodes.agent.container_driver")
    try:
        killed: set[TaskKey] = module.kill_containers(engine, agent)
    except module.EngineError as error:
        why = f"the container engine at {engine!r} does not answer: {error}"
        raise SettingsError([why]) from error
    return killed


def container_driver(
    folder: Path,
    clock: Clock,
    *,
    agent: str,
    engine: str,
    env_dirs: Sequence[Path],
    warn: Callable[[str], None],
) -> ClosableDriver:
    """Return the driver for an engine. Raises SettingsError without its library or an answer."""
    if find_spec(LIBRARY) is None:
        raise SettingsError([NO_LIBRARY])
    module = import_module("omega.nodes.agent.container_driver")
    driver: ClosableDriver = module.ContainerDriver(
        folder, clock, agent=agent, engine=engine, env_dirs=env_dirs, warn=warn
    )
    return driver
