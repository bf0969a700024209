"""Runs tasks as processes of the machine.

Goal     Start a program in a few milliseconds, and know how it ended whatever became of the agent.
Promise  A program runs in a session of its own, below a shim of /bin/sh that writes its exit code
         to a file: so an agent that is killed loses no exit. It gets the environment of its job
         and nothing of the agent's. What it leaves running when it ends is killed. A file that a
         program wrote into its folder never stops the agent. A program that exits with 128 + n
         counts as killed by signal n, as in every shell.
Source   docs/decisions/0044-programs-and-agents.md; setsid(2), POSIX sh.
"""

import os
import pwd
import shutil
import signal
import subprocess
from collections import deque
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from omega.clock import Clock
from omega.framework.timer import Timer
from omega.model.exits import CODE_MAX, SIGNAL_MAX, Exit, ExitCause
from omega.nodes.agent.environment import MARK, environment_of
from omega.nodes.agent.linux_processes import (
    Process,
    boot_id,
    has_variable,
    members,
    number_of,
    process,
    processes,
    send,
)
from omega.nodes.agent.output_files import OutputFiles, small_text, write_small
from omega.nodes.agent.task_driver import Launch, NotStarted, Stream, TaskKey

SHIM: Final = r"""
folder=$1
shift
read -r boot < /proc/sys/kernel/random/boot_id
read -r stat < /proc/$$/stat
printf '%s\n%s\n' "$boot" "$stat" > "$folder/id"
trap : HUP INT QUIT TERM USR1 USR2
(exec "$@")
code=$?
printf '%s\n' $code > "$folder/exit"
exit $code
"""
"""Its arguments: the task's folder and the command. Signals to the whole task end the command and
not the shim; a trap, unlike an ignored signal, is not inherited."""
ID, EXIT, MEMORY, OVER_MEMORY, WORK = "id", "exit", "memory", "over-memory", "work"
KEPT: Final = (ID, EXIT, MEMORY, OVER_MEMORY)
"""The files that tell of a task, until it is forgotten."""
SMALL_FILE_MAX: Final = 1_000
SIGNALLED: Final = 128
LOOK_AT_MEMORY_MS: Final = 1_000
LOOK_AT_OUTPUTS_MS: Final = 5_000
FOLDERS_KEPT_MAX: Final = 1_000
"""Folders of tasks that are over, kept for their outputs."""
KILLS_MAX: Final = 20
"""How often a task is looked for that starts processes while it is killed."""
MIB: Final = 2**20
LOST: Final = Exit(cause=ExitCause.LOST)
KILLED: Final = Exit(cause=ExitCause.SIGNALLED, signal=int(signal.SIGKILL))


@dataclass(eq=False)
class _Started:
    """A task that was started and is not forgotten."""

    key: TaskKey
    folder: Path
    memory_bytes: int = 0
    """The most that it may use; 0: as much as there is."""
    child: subprocess.Popen[bytes] | None = None
    """Its shim, if this process started it."""
    shim: Process | None = None
    """Its shim, if an earlier agent started it and it runs."""
    exit: Exit | None = None

    @property
    def variable(self) -> str:
        """What its processes have in their environment."""
        return f"{MARK}={self.key}"

    @property
    def session(self) -> int:
        """The session of its processes; 0 if none is known."""
        if self.child is not None:
            return self.child.pid
        return 0 if self.shim is None else self.shim.pid


class ProcessDriver:
    """Tasks as processes; each has a folder of its own below `folder`."""

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        *,
        users: Collection[str] = (),
        env_dirs: Collection[Path] = (),
    ) -> None:
        """`users` are those as whom tasks may run, `env_dirs` hold the files that they may name."""
        folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        self._folder = folder.resolve()
        self._users = frozenset(users)
        self._env_dirs = tuple(path.resolve() for path in env_dirs)
        self._look_at_memory = Timer(clock, LOOK_AT_MEMORY_MS)
        self._look_at_outputs = Timer(clock, LOOK_AT_OUTPUTS_MS)
        self._tasks: dict[TaskKey, _Started] = {}
        self._over: deque[Path] = deque()
        """Folders of tasks that are over, oldest first."""
        self._adopt()

    def start(self, launch: Launch) -> None:
        """Start a task. Raises NotStarted."""
        known = self._tasks.get(launch.key)
        assert known is None or known.exit is not None, "it runs already"
        program, folder = launch.program, self._folder / str(launch.key)
        work = folder / WORK
        user = self._user(program.user)
        env = environment_of(launch, home=user.pw_dir, work=work, env_dirs=self._env_dirs)
        directory = Path(program.working_dir or work)
        self._make_folder(folder, user)
        _refuse_missing(program.command[0], directory, env["PATH"])
        _remove_kept(folder)
        write_small(folder / MEMORY, str(launch.memory_mib * MIB))
        task = _Started(launch.key, folder, memory_bytes=launch.memory_mib * MIB)
        task.child = self._spawn(folder, program.command, directory, env, user)
        self._tasks[launch.key] = task

    def look(self) -> Mapping[TaskKey, Exit | None]:
        """Return every task that was started and not forgotten: None if it runs, else its exit."""
        running = [task for task in self._tasks.values() if task.exit is None]
        if running and self._look_at_memory.due():
            self._end_hungry(running)
        if running and self._look_at_outputs.due():
            for task in running:
                OutputFiles(task.folder).shorten()
        for task in running:
            task.exit = self._exit_of(task)
        return {key: task.exit for key, task in self._tasks.items()}

    def signal(self, key: TaskKey, signal: str) -> None:
        """Send a signal to all processes of a task; harmless if it has ended."""
        task = self._tasks.get(key)
        if task is None or task.exit is not None:
            return
        if signal == "KILL":
            self._kill(task)
            return
        for it in members(task.session, task.variable, processes()):
            send(it, number_of(signal))

    def forget(self, key: TaskKey) -> None:
        """Drop what is kept of a task that has ended, but its output; harmless if unknown."""
        task = self._tasks.get(key)
        if task is None:
            return
        assert task.exit is not None, "it still runs"
        del self._tasks[key]
        _remove_kept(task.folder)
        shutil.rmtree(task.folder / WORK, ignore_errors=True)
        self._over.append(task.folder)
        while len(self._over) > FOLDERS_KEPT_MAX:
            shutil.rmtree(self._over.popleft(), ignore_errors=True)

    def output(self, key: TaskKey, stream: Stream, bytes_max: int) -> tuple[int, bytes]:
        """Return how many bytes a task has written so far, and the last of them."""
        return OutputFiles(self._folder / str(key)).tail(stream, bytes_max)

    # Starting.

    def _user(self, name: str | None) -> pwd.struct_passwd:
        """Return who is to run a program. Raises NotStarted."""
        if name is None:
            return pwd.getpwuid(os.geteuid())
        if name not in self._users:
            raise NotStarted(f"this machine runs nothing as user {name}")
        if os.geteuid() != 0:
            raise NotStarted(f"only an agent that is root can run programs as user {name}")
        try:
            return pwd.getpwnam(name)
        except KeyError:
            raise NotStarted(f"there is no user {name} on this machine") from None

    def _make_folder(self, folder: Path, user: pwd.struct_passwd) -> None:
        try:
            for path in (folder, folder / WORK):
                path.mkdir(mode=0o700, exist_ok=True)
                if user.pw_uid != os.geteuid():
                    os.chown(path, user.pw_uid, user.pw_gid, follow_symlinks=False)
        except OSError as error:
            raise NotStarted(f"its folder cannot be made: {error.strerror}") from None

    def _spawn(
        self,
        folder: Path,
        command: tuple[str, ...],
        directory: Path,
        env: Mapping[str, str],
        user: pwd.struct_passwd,
    ) -> subprocess.Popen[bytes]:
        files = OutputFiles(folder)
        opened: list[int] = []
        other = user.pw_uid != os.geteuid()
        try:
            opened.extend(files.open(stream) for stream in Stream)
            return subprocess.Popen(
                ["/bin/sh", "-c", SHIM, "omega-task", str(folder), *command],
                stdin=subprocess.DEVNULL,
                stdout=opened[0],
                stderr=opened[1],
                cwd=directory,
                env=env,
                start_new_session=True,
                user=user.pw_uid if other else None,
                group=user.pw_gid if other else None,
                extra_groups=os.getgrouplist(user.pw_name, user.pw_gid) if other else None,
            )
        except (OSError, subprocess.SubprocessError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise NotStarted(f"it cannot be started in {directory}: {why}") from None
        finally:
            for descriptor in opened:
                os.close(descriptor)

    def _adopt(self) -> None:
        """Find the tasks that an earlier agent started and did not forget."""
        boot = boot_id()
        folders = []
        for path in self._folder.iterdir():
            with suppress(ValueError, OSError):
                folders.append((path.stat().st_mtime, path, TaskKey.of_text(path.name)))
        for _, path, key in sorted(folders):
            if not (path / ID).exists():
                self._over.append(path)
                continue
            memory = small_text(path / MEMORY, SMALL_FILE_MAX)
            task = _Started(key, path, memory_bytes=int(memory) if memory.isdecimal() else 0)
            its_boot, _, stat = small_text(path / ID, SMALL_FILE_MAX).partition("\n")
            if its_boot != boot:
                task.exit = self._recorded(task) or LOST
            else:
                task.shim = _shim_of(stat, task.variable)
            self._tasks[key] = task

    # Watching.

    def _exit_of(self, task: _Started) -> Exit | None:
        """Return how a task ended; None while its shim runs."""
        if task.child is not None:
            code = task.child.poll()
            if code is None:
                return None
            seen = _of_code(code) if code >= 0 else _of_code(SIGNALLED - code)
        else:
            if task.shim is not None and _runs(task.shim):
                return None
            seen = None
        if task.session:
            self._kill_rest(task)
        seen = seen or self._recorded(task) or KILLED
        if (task.folder / OVER_MEMORY).exists():
            return Exit(cause=ExitCause.OUT_OF_MEMORY, signal=seen.signal)
        return seen

    def _recorded(self, task: _Started) -> Exit | None:
        """Return the exit that the shim wrote; None if there is none that can be read."""
        said = small_text(task.folder / EXIT, SMALL_FILE_MAX).strip()
        return _of_code(int(said)) if said.isdecimal() and int(said) <= CODE_MAX else None

    def _kill_rest(self, task: _Started) -> None:
        """Kill what a task that has ended left running."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(task.session, signal.SIGKILL)

    def _kill(self, task: _Started) -> None:
        """Kill all processes of a task but its shim, which then writes the exit."""
        for _ in range(KILLS_MAX):
            living = members(task.session, task.variable, processes())
            victims = [it for it in living if it.pid != task.session]
            if not victims:
                break
            for it in victims:
                send(it, signal.SIGKILL)

    def _end_hungry(self, running: list[_Started]) -> None:
        """Kill tasks that use more memory than they may."""
        limited = [task for task in running if task.memory_bytes]
        if not limited:
            return
        used: dict[int, int] = {}
        for it in processes():
            used[it.session] = used.get(it.session, 0) + it.rss_bytes
        for task in limited:
            if used.get(task.session, 0) > task.memory_bytes:
                write_small(task.folder / OVER_MEMORY, "")
                self._kill(task)


def _refuse_missing(word: str, directory: Path, search_path: str) -> None:
    """Raise NotStarted for a folder or a program that is not there."""
    if not directory.is_dir():
        raise NotStarted(f"there is no folder {directory} on this machine")
    found = (
        shutil.which(str(directory / word)) if "/" in word else shutil.which(word, path=search_path)
    )
    if found is None:
        raise NotStarted(f"there is no program {word} on this machine that could be run")


def _remove_kept(folder: Path) -> None:
    """Remove what tells of a task, whatever a program made of it."""
    for name in KEPT:
        path = folder / name
        try:
            path.unlink(missing_ok=True)
        except OSError:  # a folder
            shutil.rmtree(path, ignore_errors=True)


def _shim_of(stat: str, variable: str) -> Process | None:
    """Return the shim that wrote this line, if it runs; it is not another task's process."""
    with suppress(ValueError):
        said = Process.of_stat(stat)
        now = process(said.pid)
        if now is not None and now.start_ticks == said.start_ticks:
            return now if has_variable(now.pid, variable) else None
    return None


def _runs(shim: Process) -> bool:
    now = process(shim.pid)
    return now is not None and now.start_ticks == shim.start_ticks and not now.is_zombie


def _of_code(code: int) -> Exit:
    """Return the exit of a shell's code: 128 + n stands for the signal n."""
    number = code - SIGNALLED
    if 1 <= number <= SIGNAL_MAX:
        return Exit(cause=ExitCause.SIGNALLED, signal=number)
    return Exit(cause=ExitCause.EXITED, code=code)
