"""Trees: all processes of a task, also those that left its session.

Goal     Signal and kill a whole task, whatever its processes do to get away.
Promise  A process belongs to a task if it is in its cgroup or in the session of its shell, descends
         from one that is, or carries the task's variable in its environment; and it stays the
         task's once seen. The shell itself is not counted: it has to write how the command ended.
Source   setsid(2), proc(5).

A process gets away only from a task without a cgroup, if it leaves its session and its parent and
drops the variable, all before anybody has looked once.
"""

import os
import signal
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from omega.nodes.agent.linux_processes import LinuxProcess, environment_of, process_of, send
from omega.nodes.agent.process_start import MARKER
from omega.nodes.agent.process_table import Identity, ProcessTable
from omega.nodes.agent.task_cgroup import TaskCgroup
from omega.nodes.agent.task_folder import Shell

ROUNDS_MAX: Final = 20
"""How often one call looks for processes that were forked while their parents were killed."""
UNREAD_LOOKS_MAX: Final = 10
"""How many looks a process may show no environment before it counts as one that has none."""


@dataclass(frozen=True)
class Root:
    """Where a tree begins."""

    folder: Path
    shell: Shell | None
    cgroup: TaskCgroup | None = None

    @property
    def marker(self) -> bytes:
        """The entry in the environment of all of a task's processes."""
        return os.fsencode(f"{MARKER}={self.folder}")

    @property
    def since(self) -> int:
        """The tick before which nobody of its tree can have begun; 0 if that is not known.

        What the folder says of a shell is within the program's reach.
        """
        return max(0, self.shell.ticks) if self.shell is not None and self.shell.is_child else 0


class Trees:
    """Attributes processes to tasks."""

    def __init__(self) -> None:
        self._table = ProcessTable()
        self._marker: dict[Identity, bytes] = {}
        self._unread: dict[Identity, int] = {}
        """Of those who have shown no environment, in how many looks."""

    def find(self, roots: Sequence[Root]) -> dict[Root, list[LinuxProcess]]:
        """Return the processes of some tasks that run, without their shells."""
        markers = {root.marker for root in roots}
        theirs = {seen for seen, marker in self._marker.items() if marker in markers}
        since = min((root.since for root in roots), default=0)
        processes = self._table.look(since, theirs | self._unread.keys())
        self._remember(processes)
        children: dict[int, list[LinuxProcess]] = defaultdict(list)
        sessions: dict[int, list[LinuxProcess]] = defaultdict(list)
        marked: dict[bytes, list[LinuxProcess]] = defaultdict(list)
        for process in processes.values():
            children[process.parent].append(process)
            sessions[process.session].append(process)
            marked[self._marker.get((process.pid, process.ticks), b"")].append(process)
        found = {}
        for root in roots:
            first = [*marked[root.marker]]
            if root.cgroup is not None:
                members = (processes.get(pid) or process_of(pid) for pid in root.cgroup.members)
                first += [process for process in members if process is not None]
            # The number of a session is the pid of its shell. Once the shell is reaped, the
            # number may be that of another session.
            shell = processes.get(root.shell.pid) if root.shell is not None else None
            if shell is not None and root.shell is not None and shell.ticks == root.shell.ticks:
                first += sessions[shell.pid]
            tree = self._descend(first, children, root.marker)
            if root.shell is not None:
                tree.pop(root.shell.pid, None)
            found[root] = [process for process in tree.values() if process.is_alive]
        return found

    def signal(self, root: Root, number: signal.Signals) -> bool:
        """Send a signal to a whole tree, SIGKILL also to those who are forked meanwhile.

        Returns whether there was anybody.
        """
        known: set[tuple[int, int]] = set()
        for _ in range(ROUNDS_MAX if number is signal.SIGKILL else 1):
            tree = self.find([root])[root]
            new = [process for process in tree if (process.pid, process.ticks) not in known]
            for process in new:
                send(process, number)
            known.update((process.pid, process.ticks) for process in new)
            if not new:
                break
        return bool(known)

    def _descend(
        self,
        first: list[LinuxProcess],
        children: Mapping[int, list[LinuxProcess]],
        marker: bytes,
    ) -> dict[int, LinuxProcess]:
        tree: dict[int, LinuxProcess] = {}
        while first:
            process = first.pop()
            if process.pid not in tree:
                tree[process.pid] = process
                self._marker[process.pid, process.ticks] = marker
                first += children.get(process.pid, ())
        return tree

    def _remember(self, processes: Mapping[int, LinuxProcess]) -> None:
        """Read the environment of each process once."""
        there = self._table.identities
        self._marker = {seen: marker for seen, marker in self._marker.items() if seen in there}
        self._unread = {seen: looks for seen, looks in self._unread.items() if seen in there}
        prefix = os.fsencode(f"{MARKER}=")
        for process in processes.values():
            seen = process.pid, process.ticks
            if seen in self._marker:
                continue
            words = frozenset() if process.is_kernel else environment_of(process.pid)
            looks = self._unread.pop(seen, 0) + 1
            if words or process.is_kernel or looks == UNREAD_LOOKS_MAX:
                mine = (word for word in words if word.startswith(prefix))
                self._marker[seen] = next(mine, b"")
            else:  # it may be executing a program just now
                self._unread[seen] = looks
