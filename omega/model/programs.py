"""Programs: what a task runs on a real machine.

Goal     Describe a command so that any agent runs it alike, and nothing about how it is run.
Promise  Frozen. A task without a program runs nothing; only virtual nodes end it.
Source   docs/decisions/0044-programs-and-agents.md; after Nomad's task and Kubernetes' container.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from omega.limits import LIMITS
from omega.model.names import UNPRINTABLE

SIGNALS: Final = ("TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "KILL")
"""The signals that may ask a program to stop."""
VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PORT_MAX: Final = 65_535
HTTP_PATH: Final = re.compile(r"/[!-~]*")
RESERVED: Final = "OMEGA_"
"""Variables of this prefix are the agent's."""


@dataclass(frozen=True, kw_only=True)
class Restart:
    """How often a program that failed is started again on its machine, before its task fails."""

    attempts: int = 0
    """Restarts within the interval; 0: none."""
    within_ms: int = 600_000
    """The interval: earlier restarts are not counted."""
    delay_ms: int = 1_000
    """The time from an end to the restart."""

    def __post_init__(self) -> None:
        assert 0 <= self.attempts <= LIMITS.restarts_max
        assert 1 <= self.within_ms <= LIMITS.duration_ms_max
        assert 0 <= self.delay_ms <= LIMITS.duration_ms_max


@dataclass(frozen=True, kw_only=True)
class Check:
    """A test of a program that runs, made again and again; one that fails too often restarts it.

    It is a request by HTTP if there is a path, a connection by TCP if there is only a port, and
    otherwise a command.
    """

    port: int | None = None
    path: str | None = None
    """What is asked for by HTTP; an answer of 200 to 399 is a success."""
    command: tuple[str, ...] = ()
    """Runs where the program does, with its variables; the exit code 0 is a success."""
    interval_ms: int = 10_000
    """The time from the start to the first check, and from each to the next one."""
    timeout_ms: int = 5_000
    """A check that takes longer has failed."""
    failures: int = 3
    """So many in a row end the program as unhealthy."""

    def __post_init__(self) -> None:
        assert bool(self.command) == (self.port is None), "a check has a port or a command"
        assert self.port is None or 1 <= self.port <= PORT_MAX
        assert self.path is None or (self.port is not None and is_http_path(self.path))
        assert is_command(self.command)
        assert 1 <= self.interval_ms <= LIMITS.duration_ms_max
        assert 1 <= self.timeout_ms <= LIMITS.check_timeout_ms_max
        assert 1 <= self.failures <= LIMITS.check_failures_max


@dataclass(frozen=True, kw_only=True)
class Program:
    """A command and the conditions under which it runs."""

    command: tuple[str, ...]
    """The program and its arguments; no shell reads them. With an image it may be empty: the
    image's own command then runs."""
    env: tuple[tuple[str, str], ...] = ()
    """Environment variables, ascending by name."""
    env_file: str | None = None
    """A file of further variables on the machine, which the agent's settings must allow."""
    image: str | None = None
    """The container image; None: a process of the machine itself."""
    user: str | None = None
    """The user who runs it, if the agent's settings allow that user; None: the agent's own."""
    working_dir: str | None = None
    """An absolute path; None: a folder that the agent makes for the task."""
    timeout_ms: int | None = None
    """How long it may run before it is stopped and counts as failed."""
    stop_signal: str = "TERM"
    stop_grace_ms: int = 10_000
    """The time from that signal to SIGKILL."""
    restart: Restart = field(default_factory=Restart)
    check: Check | None = None
    """Tells whether it does its work; None: as long as it runs."""

    def __post_init__(self) -> None:
        assert self.command or self.image, "a program has a command or an image"
        assert is_command(self.command)
        assert len(self.env) <= LIMITS.variables_max
        names = [name for name, _ in self.env]
        assert names == sorted(set(names)), "variables ascend by name"
        assert all(is_variable(name) for name in names)
        assert all("\0" not in value for _, value in self.env)
        for name in (self.image, self.user):
            assert name is None or _is_printable(name, LIMITS.name_length_max)
        for path in (self.env_file, self.working_dir):
            assert path is None or _is_printable(path, LIMITS.path_length_max)
        assert self.working_dir is None or self.working_dir.startswith("/")
        assert self.timeout_ms is None or 1 <= self.timeout_ms <= LIMITS.duration_ms_max
        assert self.stop_signal in SIGNALS
        assert 0 <= self.stop_grace_ms <= LIMITS.stop_grace_ms_max


def is_command(words: Sequence[str]) -> bool:
    """Return whether these words can be a command, or are none."""
    return (
        all(words[:1])  # the first word names the program
        and all("\0" not in word for word in words)
        and len(words) <= LIMITS.command_words_max
    )


def is_http_path(path: str) -> bool:
    """Return whether a path can be asked for by HTTP as it is written."""
    return len(path) <= LIMITS.path_length_max and HTTP_PATH.fullmatch(path) is not None


def is_variable(name: str) -> bool:
    """Return whether a job may set an environment variable of this name."""
    return VARIABLE.fullmatch(name) is not None and not name.startswith(RESERVED)


def shell_line(line: str) -> tuple[str, ...]:
    """Return the command that has /bin/sh run a line."""
    return ("/bin/sh", "-c", line)


def _is_printable(text: str, length_max: int) -> bool:
    """Return whether the database takes a text as a name of at most so many characters."""
    return 1 <= len(text) <= length_max and not UNPRINTABLE.search(text)
