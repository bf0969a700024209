"""Processes as Linux shows them: who they are, and which belong to a task.

Goal     Never take one process for another, and find all processes of a task.
Promise  A process is known by its number and its start, in ticks since the boot: numbers are used
         again. What cannot be read is left out, as a process may end at any moment.
Source   proc_pid_stat(5); proc_pid_environ(5).
"""

import os
import signal
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROC: Final = Path("/proc")
PAGE: Final = os.sysconf("SC_PAGE_SIZE")
ZOMBIE: Final = "Z"
ENVIRON_BYTES_MAX: Final = 4 * 2**20


@dataclass(frozen=True)
class Process:
    """One process at one moment."""

    pid: int
    parent: int
    session: int
    start_ticks: int
    rss_bytes: int
    is_zombie: bool

    @classmethod
    def of_stat(cls, line: str) -> "Process":
        """Return the process of a line of /proc/PID/stat; raise ValueError for another text."""
        number, _, rest = line.partition(" (")
        fields = rest[rest.rindex(")") + 2 :].split()  # a name may hold spaces and parentheses
        if len(fields) < 22:  # noqa: PLR2004 - up to the field that is read last
            raise ValueError("this is no line of /proc/PID/stat")
        return cls(
            pid=int(number),
            parent=int(fields[1]),
            session=int(fields[3]),
            start_ticks=int(fields[19]),
            rss_bytes=int(fields[21]) * PAGE,
            is_zombie=fields[0] == ZOMBIE,
        )


def boot_id() -> str:
    """Return what names this boot of the machine."""
    return (PROC / "sys/kernel/random/boot_id").read_text().strip()


def process(pid: int) -> Process | None:
    """Return a process; None if there is none of this number."""
    with suppress(OSError, ValueError):
        return Process.of_stat((PROC / str(pid) / "stat").read_text(errors="replace"))
    return None


def processes() -> Iterator[Process]:
    """Yield all processes that run."""
    for name in os.listdir(PROC):
        if name.isdecimal() and (it := process(int(name))) is not None and not it.is_zombie:
            yield it


def has_variable(pid: int, variable: str) -> bool:
    """Return whether a process was started with `NAME=value` in its environment."""
    try:
        with (PROC / str(pid) / "environ").open("rb") as environ:
            said = environ.read(ENVIRON_BYTES_MAX)
    except OSError:  # another user's, or gone
        return False
    return os.fsencode(variable) in said.split(b"\0")


def members(session: int, variable: str, among: Iterable[Process]) -> list[Process]:
    """Return the processes of a session, their descendants, and those that have the variable.

    A process that left its session and lost its parent is found by its environment.
    """
    assert session > 0, "the kernel's own threads are in session 0"
    there = list(among)
    found = {it.pid for it in there if it.session == session}
    found |= {it.pid for it in there if it.pid not in found and has_variable(it.pid, variable)}
    while more := {it.pid for it in there if it.parent in found} - found:
        found |= more
    return [it for it in there if it.pid in found]


def send(it: Process, number: int) -> None:
    """Signal a process, unless it has ended and its number may be another's."""
    now = process(it.pid)
    if now is not None and now.start_ticks == it.start_ticks:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(it.pid, number)


def number_of(name: str) -> int:
    """Return the number of a signal that is named without SIG."""
    return int(signal.Signals[f"SIG{name}"])
