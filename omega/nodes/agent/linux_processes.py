"""Processes of a Linux machine: who belongs to whom, what they use, and signals to them.

Goal     Read of a process all that tells whether it is a task's, in one read of /proc.
Promise  A process is a pid and the tick at which it started: a pid that is used again is another
         process, and gets no signal that was meant for the first. No function raises for a
         process that has ended.
Source   proc(5), pidfd_open(2). psutil shows neither ticks nor sessions, and reads several files a
         process where one read of `stat` says all.
"""

import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
STAT_BYTES_MAX: Final = 4096
ROLLUP_BYTES_MAX: Final = 4096
KIB: Final = 1024
KERNEL_THREAD: Final = 0x00200000
"""The flag of the kernel's own threads, PF_KTHREAD."""
ENVIRON_BYTES_MAX: Final = 4 * 2**20
"""How far the environment of a process is read."""
DEAD: Final = frozenset({"Z", "X", "x"})
"""States of processes that run no more: somebody only has to ask how they ended."""


@dataclass(frozen=True, slots=True)
class LinuxProcess:
    """One process, as /proc/PID/stat shows it."""

    pid: int
    state: str
    parent: int
    session: int
    ticks: int
    """When it started, in ticks since the boot."""
    rss_bytes: int
    is_kernel: bool = False
    """Whether it is a thread of the kernel."""

    @property
    def is_alive(self) -> bool:
        """Whether it still runs, or may."""
        return self.state not in DEAD


def process_of(pid: int) -> LinuxProcess | None:
    """Return the process that has this pid now."""
    stat = read_proc(f"/proc/{pid}/stat", STAT_BYTES_MAX)
    # The name stands in brackets and may hold brackets, blanks and line ends.
    _, _, after = stat.rpartition(b")")
    words = after.split()
    if len(words) < 22:  # noqa: PLR2004 - up to the resident set
        return None
    return LinuxProcess(
        pid=pid,
        state=words[0].decode(),
        parent=int(words[1]),
        session=int(words[3]),
        ticks=int(words[19]),
        rss_bytes=int(words[21]) * PAGE_BYTES,
        is_kernel=bool(int(words[6]) & KERNEL_THREAD),
    )


def environment_of(pid: int) -> frozenset[bytes]:
    """Return the `NAME=value` that a process started with; empty if we cannot see them.

    A process is without them for a moment while it executes another program.
    """
    return frozenset(read_proc(f"/proc/{pid}/environ", ENVIRON_BYTES_MAX).split(b"\0")) - {b""}


def memory_of(processes: Sequence[LinuxProcess], limit_bytes: int) -> int:
    """Return how many bytes of memory processes use together, if that may be above a limit.

    The sum of their resident sets counts a page that several share once for each: copies of a
    process that forked, say. It suffices if it is below the limit. Above, each process counts with
    its proportional set: of a shared page it has its share. That costs the kernel more to find out.
    """
    resident = sum(process.rss_bytes for process in processes)
    if resident <= limit_bytes or len(processes) == 1:
        return resident
    return sum(_proportional_set(process) for process in processes)


def _proportional_set(process: LinuxProcess) -> int:
    """Return the bytes that a process uses by its share; all that is resident if nobody says so."""
    rollup = read_proc(f"/proc/{process.pid}/smaps_rollup", ROLLUP_BYTES_MAX)
    for line in rollup.splitlines():
        if line.startswith(b"Pss:"):
            return int(line.split()[1]) * KIB
    return process.rss_bytes


@cache
def boot_id() -> str:
    """Return what names this run of the kernel."""
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()


def send(process: LinuxProcess, number: signal.Signals) -> None:
    """Send a signal to this very process; harmless if it has ended or is not ours."""
    with suppress(OSError):
        descriptor = os.pidfd_open(process.pid)
        try:
            # The pid may be another's by now; the descriptor is not.
            now = process_of(process.pid)
            if now is not None and now.ticks == process.ticks:
                signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)


def read_proc(path: str, bytes_max: int) -> bytes:
    """Return what the kernel shows of a process or of itself; nothing if it shows nothing."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        parts = []
        while bytes_max > 0 and (part := os.read(descriptor, bytes_max)):
            parts.append(part)
            bytes_max -= len(part)
        return b"".join(parts)
    except OSError:  # it ended meanwhile
        return b""
    finally:
        os.close(descriptor)
