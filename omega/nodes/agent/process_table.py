"""Looks at all processes of a machine, each of which reads those that may have changed.

Goal     See after each end of a task what it left, without reading a whole machine each time.
Promise  A look returns every process that runs and began at a given moment or later, as it is now.
         Who began before that moment, and was read before, is passed over, unless it is asked for.
         A pid that the kernel may have given away since is read again.
Source   proc(5): `processes` in /proc/stat, the last pid in /proc/loadavg. The kernel gives out
         pids upwards, and begins again at the lowest.
"""

import os
from collections.abc import Iterator, Set
from dataclasses import dataclass
from typing import Final

from omega.nodes.agent.linux_processes import LinuxProcess, process_of, read_proc

LISTINGS_MAX: Final = 50
"""How often one look lists the processes while others are forked."""
FORKS_MAX: Final = 10_000
"""After more forks since the look before, all pids may be others': 32,768 is the least that kernels
have as their number, unless somebody lowers it."""
STAT_BYTES_MAX: Final = 2**20
Identity = tuple[int, int]
"""A pid, and the tick at which its process began."""


@dataclass(frozen=True, slots=True)
class GivenPids:
    """How far the kernel is in giving out pids."""

    forks: int
    """Since the boot, threads too."""
    last: int
    """The pid that was given out last."""

    @classmethod
    def now(cls) -> "GivenPids | None":
        """Return how far it is now; None if it does not tell."""
        lines = read_proc("/proc/stat", STAT_BYTES_MAX).splitlines()
        forks = [line.split()[1] for line in lines if line.startswith(b"processes ")]
        words = read_proc("/proc/loadavg", STAT_BYTES_MAX).split()
        return cls(int(forks[0]), int(words[-1])) if forks and words else None

    def may_hold(self, pid: int, before: "GivenPids") -> bool:
        """Return whether this pid may have been given out between that moment and this."""
        if self.forks - before.forks > FORKS_MAX:
            return True
        if self.last < before.last:
            return pid > before.last or pid <= self.last
        return before.last < pid <= self.last


class ProcessTable:
    """The processes of this machine, as they were read last."""

    def __init__(self) -> None:
        self._known: dict[int, LinuxProcess] = {}
        self._given: GivenPids | None = None

    @property
    def identities(self) -> set[Identity]:
        """Who was there at the last look, passed over or not."""
        return {(process.pid, process.ticks) for process in self._known.values()}

    def look(self, since: int, besides: Set[Identity] = frozenset()) -> dict[int, LinuxProcess]:
        """Return the processes that began at this tick or later, and some besides, by pid.

        Those that only wait to be reaped are among them; so may others be.

        One listing is not enough: a process of it may fork and end before it is read, and its child
        is in no listing then. Once all pids of a listing have been read, every process that runs
        has been, or its parent ran when it was read.
        """
        before, self._given = self._given, GivenPids.now()
        known: dict[int, LinuxProcess] = {}
        read: dict[int, LinuxProcess] = {}
        for pid in _pids():
            process = self._known.get(pid)
            if (
                process is not None
                and process.ticks < since
                and (pid, process.ticks) not in besides
                and before is not None
                and self._given is not None
                and not self._given.may_hold(pid, before)
            ):
                known[pid] = process
            elif (process := process_of(pid)) is not None:
                known[pid] = read[pid] = process
        self._known = known
        return read


def _pids() -> Iterator[int]:
    """Yield the pid of each process, also of those that are forked meanwhile."""
    seen: set[int] = set()
    for _ in range(LISTINGS_MAX):
        new = {int(name) for name in os.listdir("/proc") if name.isdigit()} - seen
        if not new:
            break
        seen |= new
        yield from sorted(new)
