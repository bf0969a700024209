"""Trees: all processes of a task, also those that left its session.

Goal     Signal and kill a whole task, whatever its processes do to get away.
Promise  A process belongs to a task if it is in the session of its shell, descends from one that
         is, or carries the task's variable in its environment; and it stays the task's once seen.
         The shell itself gets no signal: it has to write how the command ended.
Source   setsid(2), proc(5).
"""

import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from omega.nodes.agent.launching import MARKER
from omega.nodes.agent.linux_processes import LinuxProcess, all_processes, environment_of, send
from omega.nodes.agent.task_driver import TaskKey
from omega.nodes.agent.task_folder import Shell

ROUNDS_MAX: Final = 20
"""How often one call looks for processes that were forked while their parents were killed."""

Wanted = Mapping[TaskKey, tuple[Path, Shell | None]]


class Trees:
    """Attributes processes to tasks."""

    def __init__(self) -> None:
        self._seen: dict[tuple[int, int], bytes] = {}

    def of(self, wanted: Wanted) -> dict[TaskKey, list[LinuxProcess]]:
        """Return the processes of some tasks that run, without their shells."""
        processes = all_processes()
        self._remember(processes)
        children: dict[int, list[LinuxProcess]] = {}
        sessions: dict[int, list[LinuxProcess]] = {}
        marked: dict[bytes, list[LinuxProcess]] = {}
        for process in processes.values():
            children.setdefault(process.parent, []).append(process)
            sessions.setdefault(process.session, []).append(process)
            marked.setdefault(self._seen[process.pid, process.ticks], []).append(process)
        found = {}
        for key, (folder, shell) in wanted.items():
            marker = os.fsencode(f"{MARKER}={folder}")
            open_ = list(marked.get(marker, ()))
            # The session's number is its first process's pid, and another's once it has no
            # process left.
            leader = processes.get(shell.pid) if shell is not None else None
            if shell is not None and (leader is None or leader.ticks == shell.ticks):
                open_ += sessions.get(shell.pid, ()) if leader is not None else ()
            tree: dict[int, LinuxProcess] = {}
            while open_:
                process = open_.pop()
                if process.pid not in tree:
                    tree[process.pid] = process
                    self._seen[process.pid, process.ticks] = marker
                    open_ += children.get(process.pid, ())
            if shell is not None:
                tree.pop(shell.pid, None)
            found[key] = list(tree.values())
        return found

    def send(self, process: LinuxProcess, number: signal.Signals) -> None:
        """Send a signal to one process."""
        send(process, number)

    def signal(self, key: TaskKey, folder: Path, shell: Shell, number: signal.Signals) -> None:
        """Send a signal to all processes of a task; SIGKILL also to those forked meanwhile."""
        sent: set[tuple[int, int]] = set()
        for _ in range(ROUNDS_MAX if number is signal.SIGKILL else 1):
            tree = self.of({key: (folder, shell)})[key]
            new = [process for process in tree if (process.pid, process.ticks) not in sent]
            if not new:
                return
            for process in new:
                send(process, number)
                sent.add((process.pid, process.ticks))

    def _remember(self, processes: Mapping[int, LinuxProcess]) -> None:
        now = {(process.pid, process.ticks) for process in processes.values()}
        self._seen = {seen: marker for seen, marker in self._seen.items() if seen in now}
        prefix = os.fsencode(f"{MARKER}=")
        for pid, ticks in now - self._seen.keys():
            mine = (word for word in environment_of(pid) if word.startswith(prefix))
            self._seen[pid, ticks] = next(mine, b"")
