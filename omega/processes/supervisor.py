"""Starts processes, restarts those that crash, and stops them all.

Goal     Run a cell's schedulers and nodes as processes of their own under one command.
Promise  A child that crashes is restarted after a delay that doubles with each crash in a row, and
         is given up after `crashes_max` in a row. No child outlives the supervisor, however that
         ends. The supervisor signals only its own children.
Source   Erlang's supervisors. docs/decisions/0013-processes.md.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Final

from omega.clock import Clock, RealClock

LOG_BYTES_MAX: Final = 1_000_000
"""A longer log is renamed when its process starts, and emptied while it runs."""
LOG_TAIL_BYTES: Final = 4_000


class ChildState(Enum):
    """The state of a child process."""

    RUNNING = "running"
    WAITING = "waiting"  # crashed; is restarted when its delay is over
    ENDED = "ended"  # with code 0, or stopped by the supervisor
    GIVEN_UP = "given up"  # crashed too often in a row


@dataclass(frozen=True, kw_only=True)
class RestartPolicy:
    """How a supervisor deals with crashes, and how long it waits for an end."""

    delay_first_s: float = 0.5
    delay_max_s: float = 10.0
    crashes_max: int = 5
    """Crashes in a row after which a child is given up."""
    steady_after_s: float = 20.0
    """A child that has run this long has recovered: its next crash counts as the first."""
    grace_s: float = 15.0
    """Time from SIGTERM to SIGKILL."""

    def delay_s(self, crashes: int) -> float:
        """Return how long to wait after that many crashes in a row."""
        return float(min(self.delay_max_s, self.delay_first_s * 2 ** (crashes - 1)))


@dataclass(frozen=True)
class ChildSpec:
    """A process to run."""

    name: str
    command: tuple[str, ...]


@dataclass
class Child:
    """A process, and its history."""

    spec: ChildSpec
    log: Path
    state: ChildState = ChildState.WAITING
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    start_due: float = 0.0
    crashes: int = 0
    """In a row."""
    restarts: int = 0
    """In all."""
    last_end: str = field(default="")
    """How it last ended, for people."""

    @property
    def pid(self) -> int | None:
        """The process's id while it runs."""
        return self.process.pid if self.process is not None else None

    def log_tail(self) -> str:
        """Return the last line of the child's log that is not blank; empty if there is none."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as lines:
            lines.seek(max(0, self.log.stat().st_size - LOG_TAIL_BYTES))
            said = lines.read().decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(said) if line.strip()), "")


def omega_command(*arguments: str) -> tuple[str, ...]:
    """Return the command that runs a verb in a process that ends with this one."""
    return (sys.executable, "-m", "omega.cli", *arguments, "--end-with-parent")


class Supervisor:
    """The child processes of this process. They are checked only when `look` is called."""

    def __init__(
        self,
        specs: Sequence[ChildSpec],
        *,
        log_dir: Path,
        environment: Mapping[str, str] | None = None,
        clock: Clock | None = None,
        policy: RestartPolicy | None = None,
        tell: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        assert len({spec.name for spec in specs}) == len(specs), "children's names are distinct"
        self._log_dir = log_dir
        self._environment = {**os.environ, **(environment or {})}
        self._clock = clock if clock is not None else RealClock()
        self._policy = policy if policy is not None else RestartPolicy()
        self._tell = tell
        self._stopping = False
        self.children = [Child(spec, log_dir / f"{spec.name}.log") for spec in specs]

    def __enter__(self) -> "Supervisor":
        self._log_dir.mkdir(parents=True, exist_ok=True)
        for child in self.children:
            self._start(child)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def look(self) -> None:
        """Record the children that have ended, and restart those whose delay is over."""
        assert not self._stopping
        for child in self.children:
            match child.state:
                case ChildState.RUNNING:
                    self._check(child)
                case ChildState.WAITING if self._clock.now() >= child.start_due:
                    child.restarts += 1
                    self._start(child)
                case _:
                    pass

    @property
    def given_up(self) -> list[Child]:
        """The children that will not be started again."""
        return [child for child in self.children if child.state is ChildState.GIVEN_UP]

    def stop(self) -> None:
        """End all children: SIGTERM, then, when the time of grace is over, SIGKILL."""
        self._stopping = True
        living = [child for child in self.children if child.process is not None]
        for child in living:
            _signal(child, signal.SIGTERM)
        deadline = self._clock.now() + self._policy.grace_s
        for child in living:
            self._wait_or_kill(child, deadline)

    def _start(self, child: Child) -> None:
        _set_aside(child.log)
        with child.log.open("ab") as log:
            child.process = subprocess.Popen(
                child.spec.command,
                stdin=subprocess.PIPE,  # never written to; it closes when this process ends
                stdout=log,
                stderr=log,
                env=self._environment,
                process_group=0,  # Ctrl-C reaches only this process
            )
        child.state = ChildState.RUNNING
        child.started_at = self._clock.now()

    def _check(self, child: Child) -> None:
        assert child.process is not None
        code = child.process.poll()
        if code is None:
            with suppress(OSError):  # somebody has removed it, or the disk is full
                _cut(child.log)
            return
        self._reap(child, code)
        if code == 0:
            child.state = ChildState.ENDED
            self._tell(f"{child.spec.name} has ended")
            return

        now = self._clock.now()
        steady = now - child.started_at >= self._policy.steady_after_s
        child.crashes = 1 if steady else child.crashes + 1
        if child.crashes >= self._policy.crashes_max:
            child.state = ChildState.GIVEN_UP
            self._tell(
                f"{child.spec.name} {child.last_end} {child.crashes} times in a row and is given"
                f" up; see {child.log}"
            )
            return
        delay_s = self._policy.delay_s(child.crashes)
        child.state = ChildState.WAITING
        child.start_due = now + delay_s
        self._tell(
            f"{child.spec.name} {child.last_end} and starts again in {delay_s:g} s; see {child.log}"
        )

    def _wait_or_kill(self, child: Child, deadline: float) -> None:
        assert child.process is not None
        try:
            code = child.process.wait(max(0.0, deadline - self._clock.now()))
        except subprocess.TimeoutExpired:
            _signal(child, signal.SIGKILL)
            code = child.process.wait()
        self._reap(child, code)
        child.state = ChildState.ENDED

    def _reap(self, child: Child, code: int) -> None:
        assert child.process is not None
        assert child.process.stdin is not None
        child.process.stdin.close()
        child.process = None
        child.last_end = _how_it_ended(code)


def _signal(child: Child, number: int) -> None:
    """Signal a child; Popen knows whether its process id is still this child's."""
    assert child.process is not None
    child.process.send_signal(number)


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"ended with code {code}"
    return f"was killed by {signal.Signals(-code).name}"


def _set_aside(log: Path) -> None:
    if log.exists() and log.stat().st_size > LOG_BYTES_MAX:
        log.replace(log.with_suffix(".log.1"))


def _cut(log: Path) -> None:
    """Move the end of a log that is too long to another file, and empty it; its writer appends."""
    if log.stat().st_size > LOG_BYTES_MAX:
        log.with_suffix(".log.1").write_bytes(log.read_bytes()[-LOG_BYTES_MAX:])
        os.truncate(log, 0)
