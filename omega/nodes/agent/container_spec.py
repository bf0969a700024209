"""Container specifications: what the engine is told of a task, and what it says of its end.

Goal     Translate a launch into the terms of the Docker Engine API, and a state into an exit.
Promise  Pure functions. A limit of 0 is no limit.
Source   The Docker Engine API, /containers/create and /containers/{id}/json.
"""

import signal
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from omega.model.exits import CODE_MAX, Exit, ExitCause
from omega.nodes.agent.shell_script import exit_of_code
from omega.nodes.agent.task_driver import Launch

LABEL_TASK: Final = "omega.task"
LABEL_AGENT: Final = "omega.agent"
LABEL_RESTARTS: Final = "omega.restarts"
LABEL_BOOT: Final = "omega.boot"
"""The run of the machine's kernel in which a container was made."""
NANO_CPUS_PER_MILLI: Final = 1_000_000
RUNNING: Final = frozenset({"running", "restarting", "paused", "removing", "stopping"})
NEVER_RAN: Final = frozenset({"created", "initialized", "configured"})
ENDED_WITH_MACHINE: Final = frozenset({128 + signal.SIGTERM, 128 + signal.SIGKILL, 255})
"""Exit codes of containers that a shutdown ended. Docker says 255 of those that it finds dead after
the machine lost its power."""


def labels_of(launch: Launch, agent: str, boot: str) -> dict[str, str]:
    """Return the labels by which a container is found again."""
    return {
        LABEL_TASK: str(launch.key),
        LABEL_AGENT: agent,
        LABEL_RESTARTS: str(launch.restarts),
        LABEL_BOOT: boot,
    }


def by_age(entries: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return listed containers of one task in the order of their starts."""
    return sorted(entries, key=lambda it: (restarts_of(it["Labels"]), it["Created"]))


def restarts_of(labels: Mapping[str, str]) -> int:
    """Return how often a container's task was started before; 0 if no number says so."""
    text = labels.get(LABEL_RESTARTS, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def spec_of(launch: Launch, from_file: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of `Engine.create` but for image, labels and GPUs."""
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


def exit_of_container(inspected: Mapping[str, Any], restarts: int, boot: str) -> Exit:
    """Return how a container ended that does not run; `boot` is this run of the kernel.

    One without a label of its boot, which an older agent made, counts as one of this boot.
    """
    state = inspected["State"]
    code, never_ran = state["ExitCode"], state["Status"] in NEVER_RAN
    is_known = 0 <= code <= CODE_MAX  # -1 where the engine does not know
    if state.get("OOMKilled"):
        return Exit(cause=ExitCause.OUT_OF_MEMORY, restarts=restarts)
    is_of_this_boot = inspected["Config"]["Labels"].get(LABEL_BOOT, boot) == boot
    if not is_of_this_boot and (never_ran or not is_known or code in ENDED_WITH_MACHINE):
        # Podman says "created" of containers that ran until the machine went down.
        return Exit(cause=ExitCause.LOST, restarts=restarts, detail="the machine was restarted")
    if never_ran:
        why = state.get("Error") or "the agent ended while it started the program"
        return Exit(cause=ExitCause.LOST, restarts=restarts, detail=why)
    if not is_known:
        return Exit(
            cause=ExitCause.LOST, restarts=restarts, detail="the engine does not know its exit code"
        )
    end = exit_of_code(code, restarts)
    if end.signal == signal.SIGKILL and inspected["HostConfig"].get("Memory"):
        # Podman with cgroups v1 says nothing of it.
        return replace(end, detail="it may have used too much memory: the engine does not say")
    return end
