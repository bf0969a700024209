"""Task drivers: what starts, watches and stops the programs of tasks on a machine.

Goal     One small interface for processes and containers, and for tests.
Promise  Tasks outlive the agent: a new driver of the same folder finds all that an earlier one
         started. An exit is kept until it is forgotten, so that an agent that is killed reports it
         later. No method waits for a program.
Source   docs/decisions/0044-programs-and-agents.md; Nomad's task drivers.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from omega.errors import OmegaError
from omega.model.exits import Exit
from omega.model.programs import Check, Program

Probe = Callable[[], str | None]
"""Makes one check of a task: returns why it failed, or None."""


@dataclass(frozen=True, order=True)
class TaskKey:
    """One allocation: a task that is placed anew has another key."""

    job: int
    task: int
    started_ms: int

    @property
    def of_job(self) -> tuple[int, int]:
        """Which task it is of which job, whenever it was placed."""
        return self.job, self.task

    def __str__(self) -> str:
        return f"{self.job}-{self.task}-{self.started_ms}"

    @classmethod
    def of_text(cls, text: str) -> "TaskKey":
        """Return the key that `str` wrote; raise ValueError for any other text."""
        job, task, started_ms = map(int, text.split("-"))
        key = cls(job, task, started_ms)
        if str(key) != text:
            raise ValueError(f"{text!r} is no key of a task")
        return key


@dataclass(frozen=True, kw_only=True)
class Launch:
    """What a driver needs to start a task."""

    key: TaskKey
    program: Program
    env: Mapping[str, str]
    """Variables that the agent sets, besides those of the program."""
    cpu_milli: int
    memory_mib: int
    """The most memory that it may use; 0: as much as there is."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """Variables that the agent sets unless the program does."""
    peers: tuple[str, ...] = ()
    """Of a gang, the address of each task's machine, by task; empty of tasks that are over."""
    gpus: tuple[int, ...] = ()
    """The device slots that it may use."""
    restarts: int = 0
    """How often the task was started before, for whatever reason. A driver's exit of this start has
    the same number in `restarts`. The agent reports how many of these came after failures."""


class Stream(Enum):
    """An output of a program."""

    STDOUT = "stdout"
    STDERR = "stderr"


class NotStarted(OmegaError):
    """A program could not be started; the message says why, in a sentence for its user."""


class DiskFull(NotStarted):
    """The disk has no room for what a start writes; the same start may succeed later."""


class TaskDriver(Protocol):
    """Starts and stops tasks."""

    def start(self, launch: Launch) -> None:
        """Start a task. Raises NotStarted; DiskFull if the start may be tried again.

        A task of this key that has ended is started again; its output goes on in the same files.
        """
        ...

    def look(self) -> Mapping[TaskKey, Exit | None]:
        """Return every task that was started and not forgotten: None if it runs, else its exit."""
        ...

    def signal(self, key: TaskKey, signal: str) -> None:
        """Send a signal of `SIGNALS` to all processes of a task; harmless if it has ended."""
        ...

    def forget(self, key: TaskKey) -> None:
        """Drop what is kept of a task that has ended, but its output; harmless if unknown."""
        ...

    def probe_of(self, launch: Launch, check: Check) -> Probe:
        """Return a probe of a task that runs: it returns why the check failed, or None.

        It is called in another thread, and may take a little longer than the check's timeout.
        """
        ...

    def steps(self, key: TaskKey) -> int | None:
        """Return how many steps a task says that its job has made; None if it says nothing."""
        ...

    def output(self, key: TaskKey, stream: Stream, bytes_max: int) -> tuple[int, bytes]:
        """Return how many bytes a task has written so far, and the last of them."""
        ...


class ClosableDriver(TaskDriver, Protocol):
    """A task driver that holds connections or threads."""

    def close(self) -> None:
        """Let go of them; tasks run on."""
        ...


def why_of_check(code: int | None, timeout_s: float) -> str | None:
    """Return why a check by command failed, or None; a code of None is none in its time."""
    if code is None:
        return f"the check took longer than {timeout_s:g} s"
    return None if code == 0 else f"the check exited with code {code}"
