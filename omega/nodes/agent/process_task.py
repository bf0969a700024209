"""One task that runs as processes, as its driver follows it, and how it ended.

Goal     Tell a program's own end from what the kernel, the agent or the machine did to it.
Promise  An end is what the task's shell saw, unless the shell is gone without a word, or the
         machine was restarted since and may have ended the task. If the kernel killed the task for
         want of memory, that is the cause.
Source   docs/decisions/0044-programs-and-agents.md; docs/decisions/0051-cgroups.md.
"""

import signal
from dataclasses import dataclass
from typing import Final

from omega.model.exits import Exit, ExitCause
from omega.nodes.agent.linux_processes import boot_id
from omega.nodes.agent.shell_script import OUTSIDE, SIGNALLED_FROM, UNABLE, exit_of_code
from omega.nodes.agent.shells import status_of
from omega.nodes.agent.task_cgroup import TaskCgroup
from omega.nodes.agent.task_folder import Launched, Shell, TaskFolder
from omega.nodes.agent.trees import Root
from omega.reports.exits import signal_name

BY_SHUTDOWN: Final = tuple(SIGNALLED_FROM + it for it in (signal.SIGTERM, signal.SIGKILL))
WHY_UNABLE: Final = {
    UNABLE: "nothing could be written to the task's folder",
    OUTSIDE: "the program could not be put into its cgroup",
}


@dataclass
class ProcessTask:
    """A task of a process driver."""

    folder: TaskFolder
    launched: Launched
    shell: Shell | None
    cgroup: TaskCgroup | None
    end: Exit | None = None
    """How it ended, while processes of its tree may be left."""
    swept_since: float | None = None
    killing: bool = False
    undelivered: signal.Signals | None = None
    """A signal that came before there was a process to get it."""

    @property
    def root(self) -> Root:
        """Where its tree begins."""
        return Root(self.folder.path, self.shell, self.cgroup)

    @property
    def is_watched(self) -> bool:
        """Whether its use of memory must be looked at, because the kernel does not limit it."""
        is_limited = self.cgroup is not None and self.cgroup.limits_memory
        return bool(self.launched.memory_mib) and not is_limited

    def kill_all(self) -> None:
        """Kill all that is in its cgroup, if it has one; the shell, too."""
        if self.cgroup is not None:
            self.cgroup.kill()

    def is_empty(self) -> bool:
        """Whether its shell has ended and its cgroup holds nobody."""
        has_shell = self.shell is not None and status_of(self.shell) is None
        return not has_shell and (self.cgroup is None or self.cgroup.is_empty)

    def end_of_shell(self) -> Exit | None:
        """Return how it ended if its shell is gone; None if that is there."""
        restarts = self.launched.restarts
        killed: int | None = None
        code: int | None
        if self.shell is not None and self.shell.boot == boot_id():
            status = status_of(self.shell)
            if status is None:
                return None
            killed = status if status < 0 else None
            if status in WHY_UNABLE and self.folder.read_shell(self.launched.run) is None:
                why = WHY_UNABLE[status]
                return Exit(cause=ExitCause.NOT_STARTED, restarts=restarts, detail=why)
            code = self.folder.read_code(self.launched.run)
            if code is None and killed is None:
                code = status
        else:
            code = self._code_before_boot()
        if code != 0 and (no_memory := self._why_out_of_memory()) is not None:
            return Exit(cause=ExitCause.OUT_OF_MEMORY, restarts=restarts, detail=no_memory)
        if code is not None:
            return exit_of_code(code, restarts)
        if killed is not None:
            return self._killed(-killed)
        why = "the agent ended while it started the program"
        if self.shell is not None:
            why = "the machine was restarted"
        return Exit(cause=ExitCause.LOST, restarts=restarts, detail=why)

    def _code_before_boot(self) -> int | None:
        """Return the code that a shell wrote which is not known, or is of an earlier boot.

        None, too, if the restart may have ended the task: a shutdown sends SIGTERM and then SIGKILL
        to all processes.
        """
        run = self.launched.run
        code = self.folder.read_code(run)
        may_be_shutdown = code in BY_SHUTDOWN or self.folder.was_asked_to_end(run)
        return None if may_be_shutdown and self.shell is not None else code

    def _killed(self, number: int) -> Exit:
        """Return the exit of a task whose shell a signal ended: all that is left gets SIGKILL."""
        why = ""
        if self.shell is not None and not self.killing:
            shell = "the shell above the program"
            known = f"{shell} was killed by {signal_name(number)}"
            seen = known if self.shell.is_child else f"{shell} is gone and left no exit code"
            why = f"{seen}, so the agent ended what was left of the program"
        return Exit(
            cause=ExitCause.SIGNALLED,
            signal=int(signal.SIGKILL),
            restarts=self.launched.restarts,
            detail=why,
        )

    def _why_out_of_memory(self) -> str | None:
        memory_mib = self.launched.memory_mib
        return None if self.cgroup is None else self.cgroup.why_out_of_memory(memory_mib)
