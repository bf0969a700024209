"""The process driver: runs the programs of tasks as processes of the machine itself.

Goal     Start, watch and stop processes so that they outlive the agent, and leave nothing behind.
Promise  See `TaskDriver`. A task ends with its command; what the command left running is killed
         before the end is reported. No zombie stays. A full disk, or whatever a task writes into
         its folder, never raises out of `look`. Memory is limited by cgroups if there are any, and
         else watched.
Source   docs/decisions/0044-programs-and-agents.md, 0051-cgroups.md; Nomad's raw_exec and exec.
"""

import errno
import os
import signal
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import Final

from omega.clock import Clock
from omega.model.exits import Exit, ExitCause
from omega.model.programs import Check
from omega.nodes.agent.cgroups import Cgroups, hierarchy_of_this_process
from omega.nodes.agent.env_file import variables_of_file
from omega.nodes.agent.linux_processes import boot_id, memory_of, send
from omega.nodes.agent.network_checks import answers, connects
from omega.nodes.agent.own_address import LOOPBACK
from omega.nodes.agent.process_start import (
    Surroundings,
    account_of,
    check_folder,
    check_working_dir,
    command_of,
    environment,
    handle_ignored_signals,
    home_of_agent,
    hostfile,
)
from omega.nodes.agent.process_task import ProcessTask
from omega.nodes.agent.shell_script import SCRIPT, SHELL
from omega.nodes.agent.shells import free_shell, reap, shell_of, verified
from omega.nodes.agent.small_files import create_small
from omega.nodes.agent.task_cgroup import TaskCgroup, cgroup_name, group_name
from omega.nodes.agent.task_driver import DiskFull, Launch, NotStarted, Probe, Stream, TaskKey
from omega.nodes.agent.task_folder import Launched, Shell, TaskFolder
from omega.nodes.agent.trash import Trash
from omega.nodes.agent.trees import Trees

MIB: Final = 2**20
FULL: Final = (errno.ENOSPC, errno.EDQUOT)
WATCH_S: Final = 1.0
"""The time between two looks at memory and output."""
SWEEP_S: Final = 0.05
"""The time between two tries to kill the rest of a tree."""
KILL_S_MAX: Final = 10.0
"""How long an exit waits for processes that cannot be killed, such as those on a hung disk."""


class ProcessDriver:
    """A `TaskDriver` of processes."""

    def __init__(
        self,
        folder: Path,
        clock: Clock,
        *,
        env_dirs: Sequence[Path] = (),
        users: Set[str] = frozenset(),
        output_bytes_max: int = 64 * MIB,
        outputs_max: int = 1_000,
        cgroups: Cgroups | None = None,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Find what an earlier driver of this folder left. Call it from the main thread.

        Args:
            folder: holds a folder for each task.
            clock: times the looks at memory and output.
            env_dirs: where files of variables may lie.
            users: who may run programs besides the agent's own user.
            output_bytes_max: a longer output is cut.
            outputs_max: of so many forgotten tasks the output is kept.
            cgroups: makes those of the tasks to come; None: they have none.
            warn: receives a line for the operator, each once.
        """
        self._folder = folder.resolve()
        self._clock = clock
        self._env_dirs = tuple(env_dirs)
        self._users = users
        self._output_bytes_max = output_bytes_max
        self._outputs_max = outputs_max
        self._cgroups = cgroups
        self._warn = warn
        self._said: set[str] = set()
        self._folder.mkdir(mode=0o711, parents=True, exist_ok=True)
        handle_ignored_signals()
        self._trash = Trash(self._folder / ".trash")
        self._trees = Trees()
        self._running: dict[TaskKey, ProcessTask] = {}
        self._ended: dict[TaskKey, ProcessTask] = {}
        self._shown: dict[TaskKey, Exit | None] = {}
        self._forgotten: dict[TaskKey, None] = {}
        self._sweep_at = clock.now()
        self._watch_at = self._sweep_at + WATCH_S  # a watchdog's driver looks once, only to kill
        self._adopt()

    def start(self, launch: Launch) -> None:
        """Start a task. Raises NotStarted and DiskFull."""
        if launch.key in self._running:
            raise NotStarted("this task runs already")
        before = self._ended.get(launch.key)
        folder = TaskFolder(self._folder, launch.key)
        run = folder.next_run()
        cgroup = self._new_cgroup(launch, run)
        launched = Launched(
            run=run,
            boot=boot_id(),
            restarts=launch.restarts,
            memory_mib=launch.memory_mib,
            cgroup="" if cgroup is None else str(cgroup.path),
        )
        try:
            shell = self._start(launch, folder, launched, cgroup)
        except (NotStarted, OSError) as error:
            self._undo(launch.key, folder, before)
            if cgroup is not None:
                cgroup.remove()
            if isinstance(error, NotStarted):
                raise
            name = f" {error.filename!r}:" if error.filename else ""
            why = f"the operating system refused:{name} {error.strerror}"
            raise (DiskFull if error.errno in FULL else NotStarted)(why) from None
        self._ended.pop(launch.key, None)
        self._forgotten.pop(launch.key, None)
        self._running[launch.key] = ProcessTask(folder, launched, shell, cgroup)
        self._shown[launch.key] = None

    def look(self) -> Mapping[TaskKey, Exit | None]:
        """Return every task that was started and not forgotten: None if it runs, else its exit."""
        now = self._clock.now()
        for task in self._running.values():
            if task.end is None:
                task.end = task.end_of_shell()
        if now >= self._watch_at:
            self._watch_at = now + WATCH_S
            self._watch()
        self._sweep(now)
        return dict(self._shown)

    def signal(self, key: TaskKey, signal: str) -> None:
        """Send a signal of `SIGNALS` to all processes of a task; harmless if it has ended."""
        task = self._running.get(key)
        if task is not None:
            self._signal(task, signal)

    def forget(self, key: TaskKey) -> None:
        """Drop what is kept of a task that has ended, but its output; harmless if unknown."""
        if (task := self._ended.pop(key, None)) is None:
            return
        del self._shown[key]
        try:
            self._drop(key, task.folder)
            while len(self._forgotten) > self._outputs_max:
                oldest = next(iter(self._forgotten))
                del self._forgotten[oldest]
                folder = TaskFolder(self._folder, oldest)
                if not folder.remove():
                    self._trash.throw(folder.path)
        except OSError as error:
            self._warn_once("the folder of a task could not be deleted", error)

    def steps(self, key: TaskKey) -> int | None:
        """Return how many steps a task says that its job has made; None if it says nothing."""
        task = self._running.get(key) or self._ended.get(key)
        return None if task is None else task.folder.read_steps(task.launched.run)

    def output(self, key: TaskKey, stream: Stream, bytes_max: int) -> tuple[int, bytes]:
        """Return how many bytes a task has written so far, and the last of them."""
        return TaskFolder(self._folder, key).output(stream).read(bytes_max)

    def probe_of(self, launch: Launch, check: Check) -> Probe:
        """Return a probe of a task that runs; see `TaskDriver`."""
        timeout_s = check.timeout_ms / 1_000
        if check.port is not None:
            port, path = check.port, check.path
            if path is None:
                return lambda: connects(LOOPBACK, port, timeout_s)
            return lambda: answers(LOOPBACK, port, path, timeout_s)
        task = self._running.get(launch.key)
        if task is None:
            return lambda: "it does not run"
        try:
            it = self._surroundings(launch, task.folder, task.folder.run(task.launched.run))
            command = command_of(check.command, it.env["PATH"], it.working_dir)
        except (NotStarted, OSError) as error:  # also of a name that no file can have
            why = str(error)
            return lambda: why
        cgroup = task.cgroup
        return lambda: it.succeeds(command, timeout_s, cgroup)

    def _surroundings(self, launch: Launch, folder: TaskFolder, run: Path) -> Surroundings:
        """Return where and as whom a program runs. Raises NotStarted."""
        program = launch.program
        account = account_of(program.user, self._users)
        if account is not None:
            check_folder(self._folder, account)
        home = home_of_agent() if account is None else account.home
        from_file = variables_of_file(program.env_file, self._env_dirs)
        env = environment(launch, folder, run, home, from_file)
        if program.working_dir is not None:
            check_working_dir(program.working_dir)
        return Surroundings(account, env, Path(program.working_dir or folder.work))

    def _new_cgroup(self, launch: Launch, run: int) -> TaskCgroup | None:
        """Return a cgroup for a start; None, and a warning, where none can be made."""
        if self._cgroups is None:
            return None
        name = cgroup_name(launch.key, run)
        amounts = {"cpu_milli": launch.cpu_milli, "memory_mib": launch.memory_mib}
        try:
            return self._cgroups.make(name, **amounts)
        except OSError as error:
            self._warn_once("a task runs without a cgroup", error)
            return None

    def _start(
        self, launch: Launch, folder: TaskFolder, launched: Launched, cgroup: TaskCgroup | None
    ) -> Shell:
        run = folder.run(launched.run)
        if launch.program.image is not None:
            raise NotStarted("the program has an image, and this driver runs processes")
        it = self._surroundings(launch, folder, run)
        account = it.account
        command = command_of(launch.program.command, it.env["PATH"], it.working_dir)
        folder.path.mkdir(mode=0o700, exist_ok=True)
        folder.path.chmod(0o700 if account is None else 0o711)
        run.mkdir(mode=0o700)
        if launch.peers:
            create_small(folder.hostfile(run), hostfile(launch.peers))
        folder.work.mkdir(mode=0o700, exist_ok=True)
        if account is not None:
            for own in (folder.work, run, *run.iterdir()):
                os.chown(own, account.uid, account.gid, follow_symlinks=False)
        folder.write_launch(launched)
        words = [SHELL, "-c", SCRIPT, "omega-task", str(run), *command]
        outputs: list[int] = []
        try:
            outputs.extend(folder.output(stream).open() for stream in Stream)
            process = it.start(words, outputs, cgroup)
        finally:
            for output in outputs:
                os.close(output)
        process.returncode = 0  # its end is `look`'s to ask for, and it may outlive this object
        return shell_of(process.pid)

    def _drop(self, key: TaskKey, folder: TaskFolder) -> None:
        """Drop what is kept of a task but its outputs. Raises OSError."""
        self._forgotten[key] = None
        for path in folder.drop():
            self._trash.throw(path)

    def _undo(self, key: TaskKey, folder: TaskFolder, before: ProcessTask | None) -> None:
        """Let the next agent find what was there before a start that failed."""
        try:
            if before is not None:
                folder.write_launch(before.launched)
            elif folder.path.exists():
                self._drop(key, folder)
        except OSError as error:
            self._warn_once("a start that failed could not be undone", error)

    def _signal(self, task: ProcessTask, name: str) -> None:
        number = signal.Signals[f"SIG{name}"]
        if number is signal.SIGKILL:
            task.kill_all()
        reached = self._trees.signal(task.root, number)
        if number is signal.SIGKILL:
            task.killing = True  # until it has ended, whoever is forked meanwhile
        elif not reached:
            task.undelivered = number

    def _sweep(self, now: float) -> None:
        """Kill what is left of ended tasks; show the ends of those of whom nothing is left."""
        tasks = {
            key: task
            for key, task in self._running.items()
            if task.end is not None or task.killing or task.undelivered is not None
        }
        fresh = any(task.swept_since is None for task in tasks.values())
        if not tasks or (not fresh and now < self._sweep_at):
            return
        self._sweep_at = now + SWEEP_S
        trees = self._trees.find([task.root for task in tasks.values()])
        for key, task in tasks.items():
            if task.swept_since is None:
                task.swept_since = now
            tree = trees[task.root]
            is_overdue = now - task.swept_since > KILL_S_MAX
            if task.end is not None and (is_overdue or (not tree and task.is_empty())):
                self._show(key, task, task.end)
                continue
            number = task.undelivered
            if task.end is not None or task.killing:
                number = signal.SIGKILL
                task.kill_all()
                free_shell(task.shell, is_overdue=is_overdue)
            for process in tree:
                send(process, number or signal.SIGKILL)
            if tree and task.undelivered is not None:
                task.undelivered = None
                task.swept_since = None

    def _show(self, key: TaskKey, task: ProcessTask, end: Exit) -> None:
        try:
            task.folder.write_end(task.launched.run, end)
        except OSError as error:
            self._warn_once("the exit of a task could not be written", error)
        if task.shell is not None:
            reap(task.shell)
        if task.cgroup is not None:
            task.cgroup.remove()
        self._ended[key] = self._running.pop(key)
        self._shown[key] = end

    def _watch(self) -> None:
        """End tasks that use too much memory, cut long outputs, delete what was thrown away."""
        # Whoever was seen once stays the task's, so that all are looked at that have no cgroup.
        there = [
            task
            for task in self._running.values()
            if task.end is None and (task.cgroup is None or task.is_watched)
        ]
        trees = self._trees.find([task.root for task in there]) if there else {}
        for task in there:
            if not task.is_watched:
                continue
            limit_mib = task.launched.memory_mib
            if (used := memory_of(trees[task.root], limit_mib * MIB) // MIB) > limit_mib:
                self._end_for_memory(task, used)
        for task in self._running.values():
            for stream in Stream:
                try:
                    task.folder.output(stream).cut(self._output_bytes_max)
                except OSError as error:
                    self._warn_once("the output of a task could not be cut", error)
        try:
            self._trash.tidy()
        except OSError as error:
            self._warn_once("the folders of ended tasks could not be deleted", error)
        self._end_other_cgroups()

    def _end_other_cgroups(self) -> None:
        """Kill what runs in cgroups of tasks that nothing tells of."""
        if self._cgroups is not None:
            running = self._running.values()
            self._cgroups.end_others({it.cgroup.path.name for it in running if it.cgroup})

    def _end_for_memory(self, task: ProcessTask, used_mib: int) -> None:
        task.end = Exit(
            cause=ExitCause.OUT_OF_MEMORY,
            restarts=task.launched.restarts,
            detail=f"it used {used_mib} MiB and may use {task.launched.memory_mib} MiB",
        )
        try:  # before anybody is killed: the next agent is to know why
            task.folder.write_end(task.launched.run, task.end)
        except OSError as error:
            self._warn_once("the exit of a task could not be written", error)

    def _warn_once(self, what: str, error: OSError) -> None:
        line = f"{what}: {error.strerror}"
        if line not in self._said:
            self._said.add(line)
            self._warn(line)

    def _adopt(self) -> None:
        """Find all that an earlier driver of this folder started."""
        ended: list[tuple[float, TaskKey]] = []
        hierarchy, group = hierarchy_of_this_process(), group_name(self._folder)
        for path in self._folder.iterdir():
            try:
                key = TaskKey.of_text(path.name)
            except ValueError:
                continue
            folder = TaskFolder(self._folder, key)
            launched = folder.read_launch()
            if launched is None:
                ended.append((path.lstat().st_mtime, key))
                continue
            shell = folder.read_shell(launched.run)
            if shell is None and not folder.claim_start(launched.run):
                shell = folder.read_shell(launched.run)
            cgroup = None
            if hierarchy is not None and launched.cgroup:
                name = cgroup_name(key, launched.run)
                cgroup = TaskCgroup.taken_up(launched.cgroup, group, name, hierarchy.mount)
            task = ProcessTask(folder, launched, None, cgroup)
            task.shell = verified(shell, task.root.marker)
            task.end = folder.read_end(launched.run)
            self._running[key] = task
            self._shown[key] = None
        self._forgotten.update((key, None) for _, key in sorted(ended))
        self._end_other_cgroups()
