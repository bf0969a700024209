"""Waits for what a driver will show."""

from collections.abc import Callable
from pathlib import Path

from omega.clock import RealClock
from omega.model.exits import Exit
from omega.nodes.agent.task_driver import TaskDriver, TaskKey

DEADLINE_S = 30.0


def until(condition: Callable[[], object]) -> None:
    """Wait until something holds; fail after the deadline."""
    clock = RealClock()
    deadline = clock.now() + DEADLINE_S
    while not condition():
        assert clock.now() < deadline, "it never happened"
        clock.sleep(0.005)


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
