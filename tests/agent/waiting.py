"""Waits for what a driver will show."""

import time
from collections.abc import Callable
from pathlib import Path

from omega.model.exits import Exit
from omega.nodes.agent.task_driver import TaskDriver, TaskKey

DEADLINE_S = 30.0


def until(condition: Callable[[], object]) -> None:
    """Wait until something holds; fail after the deadline."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)


def ended(driver: TaskDriver, key: TaskKey) -> Exit:
    """Wait for the end of a task, and return it."""
    until(lambda: driver.look()[key] is not None)
    exit_ = driver.look()[key]
    assert exit_ is not None
    return exit_


def runs(pid: int) -> bool:
    """Return whether a process has this pid and is no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("ascii")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"
