"""A process that starts tasks and is then killed, as an agent may be.

Run as a program: the folder, and a line of shell for each task.
"""

import sys
from pathlib import Path
from typing import Final

import numpy as np

from omega.clock import RealClock
from omega.model.programs import Program, shell_line
from omega.model.resources import KINDS
from omega.nodes.agent.agent_task import AgentTask
from omega.nodes.agent.process_driver import ProcessDriver
from omega.nodes.agent.records import RECORDS, Records
from omega.nodes.agent.task_driver import Launch, TaskKey

OF_CONTAINER: Final = TaskKey(2, 0, 1_000)


def a_launch(line: str, number: int = 1, memory_mib: int = 0) -> Launch:
    """Return a launch that has the shell run a line."""
    key = TaskKey(number, 0, 1_000)
    program = Program(command=shell_line(line))
    return Launch(key=key, program=program, env={}, cpu_milli=0, memory_mib=memory_mib)


def note_container(folder: Path, engine: str) -> None:
    """Write the record of a task OF_CONTAINER that an agent with this folder runs in an engine."""
    task = AgentTask(OF_CONTAINER, np.zeros(KINDS, dtype=np.int64))
    task.started(0.0, engine)
    Records(folder / RECORDS).write(task)


if __name__ == "__main__":
    driver = ProcessDriver(Path(sys.argv[1]), RealClock())
    for number, line in enumerate(sys.argv[2:], 1):
        driver.start(a_launch(line, number))
    print("started", flush=True)  # noqa: T201 - whom it tells is a test
    sys.stdin.read()
