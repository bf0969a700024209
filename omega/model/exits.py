"""Exits: how the programs of tasks ended.

Goal     Record why a task ended, so that its user can tell a fault of the program from the cell's.
Promise  Frozen. A task whose program succeeded has the cause `EXITED` and the code 0.
Source   docs/decisions/0044-programs-and-agents.md; wait(2).
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final

from omega.limits import LIMITS

CODE_MAX: Final = 255
SIGNAL_MAX: Final = 64
STREAMS: Final = ("stdout", "stderr")
"""The outputs of a program."""


class ExitCause(Enum):
    """What ended a program."""

    EXITED = "exited"  # it ended itself, with a code
    SIGNALLED = "signalled"  # a signal ended it that the agent did not send
    TIMEOUT = "timeout"  # it ran longer than it may
    UNHEALTHY = "unhealthy"  # its check failed too often
    OUT_OF_MEMORY = "out_of_memory"  # it used more memory than it asked for
    NOT_STARTED = "not_started"  # it could not be started; the detail says why
    LOST = "lost"  # it is gone, and nothing says how it ended: the machine was restarted


@dataclass(frozen=True, kw_only=True)
class Exit:
    """How one task's program ended for good, after its restarts."""

    cause: ExitCause
    code: int | None = None
    """The exit code, 0 to 255, if it ended itself."""
    signal: int | None = None
    """The signal that ended it, 1 to 64."""
    restarts: int = 0
    """How often it was started again before."""
    detail: str = ""
    """One sentence for the user, without a full stop; empty where the cause says all."""

    def __post_init__(self) -> None:
        assert (self.cause is ExitCause.EXITED) == (self.code is not None)
        assert self.code is None or 0 <= self.code <= CODE_MAX
        assert self.signal is None or 1 <= self.signal <= SIGNAL_MAX
        assert self.restarts >= 0

    @property
    def is_success(self) -> bool:
        """Whether the program ended by itself with code 0."""
        return self.code == 0


@dataclass(frozen=True)
class TaskExit:
    """The exit of a task, of the allocation that began at that time."""

    job: int
    task: int
    started_ms: int
    exit: Exit


@dataclass(frozen=True, kw_only=True)
class PastExit:
    """An exit as a store keeps it."""

    job: int
    task: int
    machine: str
    """The machine's name."""
    started_ms: int
    ended_ms: int
    exit: Exit


@dataclass(frozen=True)
class TaskOutput:
    """The end of what a task's program wrote to one of its outputs."""

    job: int
    task: int
    started_ms: int
    stream: str
    """One of STREAMS."""
    bytes_total: int
    """How many bytes it has written in all ..."""
    tail: bytes
    """... and the last of them, at most `LIMITS.output_bytes_kept`."""

    def __post_init__(self) -> None:
        assert self.stream in STREAMS
        assert len(self.tail) <= LIMITS.output_bytes_kept
        assert len(self.tail) <= self.bytes_total
