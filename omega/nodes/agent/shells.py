"""The shells above the tasks, seen from the agent: whether they run, and how they ended.

Goal     Ask about a shell, whether it is this agent's child or an earlier agent's.
Promise  No process that merely has its pid is taken for it. One that somebody stopped is continued:
         it would not see the end of its program.
Source   waitid(2).
"""

import os
import signal
from contextlib import suppress
from typing import Final

from omega.nodes.agent.linux_processes import boot_id, environment_of, process_of, send
from omega.nodes.agent.task_folder import Shell

NOBODY: Final = -1
"""Ticks that no process has."""
STOPPED: Final = "T"
"""The state of a process after SIGSTOP."""


def shell_of(pid: int) -> Shell:
    """Return the shell that was started just now."""
    process = process_of(pid)
    return Shell(pid, process.ticks if process is not None else NOBODY, boot_id(), is_child=True)


def verified(shell: Shell | None, marker: bytes) -> Shell | None:
    """Return a shell that no process is, if the process of its pid is not of this task.

    The file that names it is within the program's reach.
    """
    if shell is None or marker in environment_of(shell.pid):
        return shell
    return Shell(shell.pid, NOBODY, shell.boot)


def status_of(shell: Shell) -> int | None:
    """Return the code of a shell that has ended, or minus its signal; None if it runs.

    It is not reaped: as long as it is a zombie, nobody else gets its pid. Of a shell that another
    agent started nobody can say how it ended: that counts as SIGKILL.
    """
    if not shell.is_child:
        # Whoever has it now reaps it. By now a child of ours may have its pid.
        now = process_of(shell.pid)
        runs = now is not None and now.is_alive and now.ticks == shell.ticks
        if runs and now is not None and now.state == STOPPED:
            send(now, signal.SIGCONT)
        return None if runs else -int(signal.SIGKILL)
    wanted = os.WEXITED | os.WSTOPPED | os.WNOHANG | os.WNOWAIT
    try:
        changed = os.waitid(os.P_PID, shell.pid, wanted)
    except OSError:
        return -int(signal.SIGKILL)
    if changed is None:
        return None
    if changed.si_code == os.CLD_STOPPED:
        free_shell(shell, is_overdue=False)
        return None
    return changed.si_status if changed.si_code == os.CLD_EXITED else -changed.si_status


def reap(shell: Shell) -> None:
    """Let the kernel drop what it keeps of a shell that has ended."""
    with suppress(OSError):
        if shell.is_child:
            os.waitpid(shell.pid, os.WNOHANG)


def free_shell(shell: Shell | None, *, is_overdue: bool) -> None:
    """Continue a shell that its program stopped; kill one that has not ended in time."""
    process = process_of(shell.pid) if shell is not None else None
    if process is not None and shell is not None and process.ticks == shell.ticks:
        send(process, signal.SIGKILL if is_overdue else signal.SIGCONT)
