"""The process driver: runs the programs of tasks as processes of the machine itself.

Goal     Start, watch and stop processes so that they outlive the agent, and leave nothing behind.
Promise  See `TaskDriver`. A task ends with its command; what the command left running is killed
         before the end is reported. No zombie stays.
Source   docs/decisions/0044-programs-and-agents.md; Nomad's raw_exec and its executor.
"""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from omega.clock import Clock
from omega.model.exits import Exit, ExitCause
from omega.nodes.agent.launching import (
    account_of,
    check_working_dir,
    command_of,
    environment,
    home_of_agent,
    variables_of_file,
)
from omega.nodes.agent.linux_processes import boot_id, process_of
from omega.nodes.agent.shim import SCRIPT, SHELL, exit_of_code
from omega.nodes.agent.task_driver import Launch, NotStarted, Stream, TaskKey
from omega.nodes.agent.task_folder import Launched, Shell, TaskFolder
from omega.nodes.agent.trees import Trees


@dataclass
class _Task:
    folder: TaskFolder
    launched: Launched
    shell: Shell | None
    exit: Exit | None = None
    ending: Exit | None = None


class ProcessDriver:
    """A `TaskDriver` of processes."""

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        *,
        env_dirs: Sequence[Path] = (),
        users: Set[str] = frozenset(),
    ) -> None:
        self._folder = folder.resolve()
        self._clock = clock
        self._env_dirs = tuple(env_dirs)
        self._users = users
        self._folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        self._tasks: dict[TaskKey, _Task] = {}
        self._trees = Trees()
        self._adopt()

    def start(self, launch: Launch) -> None:
        """Start a task. Raises NotStarted."""
        task = self._tasks.get(launch.key)
        if task is not None and task.exit is None:
            raise NotStarted("The task runs already.")
        folder = TaskFolder(self._folder, launch.key)
        run = task.launched.run + 1 if task is not None else 0
        launched = Launched(
            run=run, boot=boot_id(), restarts=launch.restarts, memory_mib=launch.memory_mib
        )
        try:
            shell = self._start(launch, folder, launched)
        except OSError as error:
            name = f" {error.filename!r}" if error.filename else ""
            raise NotStarted(f"The program could not be started:{name} {error.strerror}.") from None
        self._tasks[launch.key] = _Task(folder, launched, shell)

    def _start(self, launch: Launch, folder: TaskFolder, launched: Launched) -> Shell:
        program = launch.program
        account = account_of(program.user, self._users)
        home = home_of_agent() if account is None else account.home
        from_file = variables_of_file(program.env_file, self._env_dirs)
        env = environment(launch, folder.path, folder.work, home, from_file)
        if program.working_dir is not None:
            check_working_dir(program.working_dir)
        working_dir = Path(program.working_dir or folder.work)
        command = command_of(program, env["PATH"], working_dir)
        run = folder.run(launched.run)
        folder.path.mkdir(mode=0o700 if account is None else 0o711, exist_ok=True)
        for own in (folder.work, run):
            own.mkdir(mode=0o700, exist_ok=True)
            if account is not None:
                os.chown(own, account.uid, account.gid)
        folder.forgotten.unlink(missing_ok=True)
        folder.write_launch(launched)
        append = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        stdout = os.open(folder.path / "stdout", append, 0o600)
        stderr = os.open(folder.path / "stderr", append, 0o600)
        try:
            process = subprocess.Popen(
                [SHELL, "-c", SCRIPT, "omega-task", str(run), *command],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                cwd=working_dir,
                env=env,
                start_new_session=True,
                user=account.uid if account is not None else None,
                group=account.gid if account is not None else None,
                extra_groups=account.groups if account is not None else None,
            )
        finally:
            os.close(stdout)
            os.close(stderr)
        # The shell is to outlive this object, and `look` asks how it ended.
        process.returncode = 0
        found = process_of(process.pid)
        return Shell(process.pid, found.ticks if found else 0, boot_id())

    def look(self) -> Mapping[TaskKey, Exit | None]:
        """Return every task that was started and not forgotten: None if it runs, else its exit."""
        ending: dict[TaskKey, tuple[_Task, Exit]] = {}
        for key, task in self._tasks.items():
            if task.exit is None:
                task.ending = task.ending or self._end_of(task)
                if task.ending is not None:
                    ending[key] = (task, task.ending)
        if ending:
            trees = self._trees.of(
                {key: (t.folder.path, t.shell) for key, (t, _) in ending.items()}
            )
            for key, (task, end) in ending.items():
                if not trees[key]:
                    task.exit = end
                for process in trees[key]:
                    self._trees.send(process, signal.SIGKILL)
        return MappingProxyType({key: task.exit for key, task in self._tasks.items()})

    def _end_of(self, task: _Task) -> Exit | None:
        """Return how a task ended whose shell is gone; None if it is there."""
        restarts = task.launched.restarts
        if task.shell is None or task.shell.boot != boot_id():
            code = task.folder.read_exit(task.launched.run)
            if code is not None:
                return exit_of_code(code, restarts)
            why = "The machine was restarted." if task.shell else "The agent ended as it started."
            return Exit(cause=ExitCause.LOST, restarts=restarts, detail=why)
        status = self._status_of(task.shell)
        if status is None:
            return None
        code = task.folder.read_exit(task.launched.run)
        if code is None and os.WIFEXITED(status):
            code = os.WEXITSTATUS(status)
        if code is not None:
            return exit_of_code(code, restarts)
        return Exit(
            cause=ExitCause.SIGNALLED,
            signal=os.WTERMSIG(status),
            restarts=restarts,
            detail="The shell that watched the program was killed.",
        )

    def _status_of(self, shell: Shell) -> int | None:
        """Return a shell's wait status, as if it was killed if nobody knows; None: it runs."""
        try:
            pid, status = os.waitpid(shell.pid, os.WNOHANG)
        except ChildProcessError:
            now = process_of(shell.pid)
            runs = now is not None and now.is_alive and now.ticks == shell.ticks
            return None if runs else int(signal.SIGKILL)
        return status if pid else None

    def signal(self, key: TaskKey, signal_name: str) -> None:
        """Send a signal of `SIGNALS` to all processes of a task; harmless if it has ended."""
        task = self._tasks.get(key)
        if task is None or task.exit is not None or task.shell is None:
            return
        number = signal.Signals[f"SIG{signal_name}"]
        self._trees.signal(key, task.folder.path, task.shell, number)

    def forget(self, key: TaskKey) -> None:
        """Drop what is kept of a task that has ended, but its output; harmless if unknown."""
        task = self._tasks.get(key)
        if task is None or task.exit is None:
            return
        with suppress(OSError):
            task.folder.forgotten.touch()
        del self._tasks[key]

    def output(self, key: TaskKey, stream: Stream, bytes_max: int) -> tuple[int, bytes]:
        """Return how many bytes a task has written so far, and the last of them."""
        path = TaskFolder(self._folder, key).path / stream.value
        try:
            with path.open("rb") as file:
                total = file.seek(0, os.SEEK_END)
                file.seek(max(0, total - bytes_max))
                return total, file.read(bytes_max)
        except OSError:
            return 0, b""

    def _adopt(self) -> None:
        """Find all that an earlier driver of this folder started."""
        for path in self._folder.iterdir():
            try:
                key = TaskKey.of_text(path.name)
            except ValueError:
                continue
            folder = TaskFolder(self._folder, key)
            launched = folder.read_launch()
            if launched is None or folder.forgotten.exists():
                continue
            shell = folder.read_shell(launched.run)
            if shell is None and not folder.claim_start(launched.run):
                shell = folder.read_shell(launched.run)
            self._tasks[key] = _Task(folder, launched, shell)
