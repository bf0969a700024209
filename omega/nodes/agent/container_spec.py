"""Container specifications: what the engine is told of a task, and what it says of its end.

Goal     Translate a launch into the terms of the Docker Engine API, and a state into an exit.
Promise  Pure functions. A limit of 0 is no limit.
Source   The Docker Engine API, /containers/create and /containers/{id}/json.
"""

import signal
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from omega.model.exits import CODE_MAX, Exit, ExitCause
from omega.nodes.agent.shell_script import exit_of_code
from omega.nodes.agent.task_driver import Launch

NANO_CPUS_PER_MILLI: Final = 1_000_000
NEVER_RAN: Final = frozenset({"created", "initialized", "configured"})


def spec_of(launch: Launch, from_file: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of `containers.create` but for image, labels and GPUs."""
    program = launch.program
    spec: dict[str, Any] = {
        "environment": {
            **launch.defaults,
            **from_file,
            **dict(program.env),
            **launch.env,
        },
        "init": True,  # it reaps, and hands signals on to the command
        "stdin_open": False,
        "tty": False,
    }
    if program.command:
        spec["entrypoint"] = list(program.command)
    if program.user is not None:
        spec["user"] = program.user
    if program.working_dir is not None:
        spec["working_dir"] = program.working_dir
    if launch.cpu_milli:
        spec["nano_cpus"] = launch.cpu_milli * NANO_CPUS_PER_MILLI
    if launch.memory_mib:
        spec["mem_limit"] = spec["memswap_limit"] = f"{launch.memory_mib}m"
    return spec


def exit_of_container(inspected: Mapping[str, Any], restarts: int) -> Exit:
    """Return how a container ended that does not run."""
    state = inspected["State"]
    if state["Status"] in NEVER_RAN:
        why = state.get("Error") or "the agent ended while it started the program"
        return Exit(cause=ExitCause.LOST, restarts=restarts, detail=why)
    if state.get("OOMKilled"):
        return Exit(cause=ExitCause.OUT_OF_MEMORY, restarts=restarts)
    code = state["ExitCode"]
    if not 0 <= code <= CODE_MAX:  # -1 where the engine does not know
        return Exit(
            cause=ExitCause.LOST, restarts=restarts, detail="the engine does not know its exit code"
        )
    end = exit_of_code(code, restarts)
    if end.signal == signal.SIGKILL and inspected["HostConfig"].get("Memory"):
        # Podman with cgroups v1 says nothing of it.
        return replace(end, detail="it may have used too much memory: the engine does not say")
    return end
