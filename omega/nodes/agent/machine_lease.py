"""The lease on a machine, as its agent holds it, by the machine's own clock.

Goal     Let at most one copy of a task run: what the cell may give away must not run here any more.
Promise  An agent counts its lease from before it asked for it, so it runs out here before it does
         in the database. Tasks are asked to stop at half of it and killed at three quarters, which
         leaves a quarter for the kill. A watchdog kills them if the agent cannot.
Source   Gray and Cheriton, Leases (SOSP 1989); docs/decisions/0045-machine-leases.md.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

from omega.nodes.agent.linux_processes import boot_id
from omega.nodes.agent.small_files import read_small, write_small

RENEW_AT: Final = 0.2
STOP_AT: Final = 0.5
KILL_AT: Final = 0.75
"""Shares of a lease at which it is renewed, tasks are asked to stop, and tasks are killed."""
HOLDER, DEADLINE, BOOT = "holder", "deadline", "boot"


@dataclass
class MachineLease:
    """What an agent knows of its lease. Times are seconds since the boot."""

    holder: UUID
    """Names the agent's folder: whoever works with it holds the lease."""
    length_s: float
    asked_s: float = float("-inf")
    """When the lease was asked for that was granted last."""

    @classmethod
    def taken_up(cls, folder: Path, holder: UUID, length_s: float, now_s: float) -> "MachineLease":
        """Return the lease with which an agent goes on in a folder.

        The tasks that run there may do so until the deadline that the agent before has left. If it
        held no lease there is none: then there is time to ask for a lease, which is due at once.
        """
        deadline_s = Deadline(folder).read()
        if deadline_s is None:
            return cls(holder, length_s, asked_s=now_s - RENEW_AT * length_s)
        return cls(holder, length_s, asked_s=deadline_s - KILL_AT * length_s)

    def is_due(self, now_s: float) -> bool:
        """Return whether it is to be renewed."""
        return now_s >= self.asked_s + RENEW_AT * self.length_s

    def is_fresh(self, now_s: float) -> bool:
        """Return whether tasks may run and be started."""
        return now_s < self.asked_s + STOP_AT * self.length_s

    @property
    def kill_due_s(self) -> float:
        """When nothing may run any more, unless it is renewed before."""
        return self.asked_s + KILL_AT * self.length_s


class Deadline:
    """When the watchdog kills the tasks: a small file in the agent's folder.

    The boot is in a file of its own, because the watchdog of an agent of an earlier version, which
    outlives it, takes a deadline with anything but a number for one that has passed.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / DEADLINE
        self._boot = folder / BOOT

    def write(self, deadline_s: float) -> bool:
        """Put it off; return False if the disk refuses."""
        try:
            if read_small(self._boot) != boot_id():
                self._path.unlink(missing_ok=True)  # first, or it would count for this boot
                write_small(self._boot, boot_id())
            write_small(self._path, repr(deadline_s))
        except OSError:
            return False
        return True

    def remove(self) -> None:
        """Remove it: tasks are not watched any more."""
        self._path.unlink(missing_ok=True)

    def read(self) -> float | None:
        """Return it; None without one of this boot. What cannot be read has passed.

        What ran before the machine was restarted does not run any more.
        """
        text = read_small(self._path)
        if text is None:
            return None if not self._path.exists() else float("-inf")
        if read_small(self._boot) not in (None, boot_id()):  # an earlier version wrote none
            return None
        try:
            return float(text)
        except ValueError:
            return float("-inf")


def holder_of(folder: Path, drawn: UUID) -> UUID:
    """Return the holder that is kept in an agent's folder; the drawn one if there is none."""
    path = folder / HOLDER
    try:
        return UUID(read_small(path) or "")
    except ValueError:
        write_small(path, str(drawn))
        return drawn
