"""The machine that an agent stands for, and what runs programs there.

Goal     Name what an agent is given, apart from what it does.
Promise  A program with an image goes to the driver of containers, any other to that of processes.
Source   docs/decisions/0044-programs-and-agents.md.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from omega.errors import NotAllowed
from omega.model.arrays import Amounts
from omega.nodes.agent.agent_task import AgentTask
from omega.nodes.agent.checks import Begin, in_a_thread
from omega.nodes.agent.task_driver import TaskDriver


@dataclass(frozen=True, kw_only=True)
class OwnMachine:
    """The machine that an agent stands for."""

    id: int
    name: str
    capacity: Amounts
    """What its tasks may hold, (kinds,)."""

    def held_by_another(self) -> NotAllowed:
        """Return the error of an agent whose machine another agent holds."""
        return NotAllowed(f"another agent holds the machine {self.name}")


@dataclass(frozen=True, kw_only=True)
class TaskDrivers:
    """What runs programs on this machine."""

    processes: TaskDriver
    containers: TaskDriver | None = None
    engine: str = ""
    """The address of the engine that runs the containers; empty if none do."""
    in_background: Begin = in_a_thread
    """Begins the checks of programs."""

    def of(self, task: AgentTask) -> TaskDriver | None:
        """Return the driver of a task's program; None if it needs containers and none run here."""
        program = task.program
        return self.containers if program is not None and program.image else self.processes

    def engine_of(self, driver: TaskDriver) -> str:
        """Return the address of the engine that a driver works with; empty of that of processes."""
        return "" if driver is self.processes else self.engine

    def __iter__(self) -> Iterator[TaskDriver]:
        yield self.processes
        if self.containers is not None:
            yield self.containers
