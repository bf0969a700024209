"""What tests of tasks in cgroups share: what they need, and looks at the hierarchy."""

import os
from pathlib import Path

import pytest

from omega.model.programs import Program, shell_line
from omega.nodes.agent.cgroups import hierarchy_of_this_process
from omega.nodes.agent.task_cgroup import group_name
from omega.nodes.agent.task_driver import Launch, Stream, TaskDriver, TaskKey
from tests.agent.waiting import ended

KEY = TaskKey(1, 0, 1_000)
SIBLING = TaskKey(2, 0, 1_000)
HIERARCHY = hierarchy_of_this_process()
CONTROLLERS = (
    set()
    if HIERARCHY is None
    else set((HIERARCHY.mount / "cgroup.controllers").read_text("ascii").split())
)

needs_cgroups = pytest.mark.skipif(
    HIERARCHY is None or os.geteuid() != 0 or not os.access(HIERARCHY.mount, os.W_OK),
    reason="no cgroup v2 hierarchy here that these tests may write",
)
needs_controllers = pytest.mark.skipif(
    os.geteuid() != 0 or not {"memory", "cpu", "pids"} <= CONTROLLERS,
    reason="cgroup v2 has no memory, cpu and pids here; make test-cgroups has them",
)


def kill_all(driver: TaskDriver) -> None:
    for key in driver.look():
        driver.signal(key, "KILL")
        ended(driver, key)


def group_of(folder: Path) -> Path:
    assert HIERARCHY is not None
    return HIERARCHY.mount / group_name(folder)


def members(folder: Path, key: TaskKey = KEY, run: int = 1) -> list[int]:
    path = group_of(folder) / f"{key}.{run}" / "cgroup.procs"
    return [int(pid) for pid in path.read_text("ascii").split()]


def a_launch(
    line: str,
    key: TaskKey = KEY,
    *,
    memory_mib: int = 0,
    cpu_milli: int = 0,
    user: str | None = None,
) -> Launch:
    program = Program(command=shell_line(line), user=user)
    return Launch(key=key, program=program, env={}, cpu_milli=cpu_milli, memory_mib=memory_mib)


def text(driver: TaskDriver, key: TaskKey = KEY) -> str:
    return driver.output(key, Stream.STDOUT, 10_000)[1].decode()
