"""Starts of processes: what must hold before one, and the environment of the program.

Goal     Refuse a program that cannot start, with a sentence for its user.
Promise  A program sees no variable of the agent's own, which holds passwords. It gets every signal,
         whatever the agent was started from.
Source   docs/decisions/0044-programs-and-agents.md.
"""

import os
import pwd
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from omega.nodes.agent.shell_script import ENTER, SHELL
from omega.nodes.agent.task_cgroup import TaskCgroup
from omega.nodes.agent.task_driver import Launch, NotStarted, why_of_check
from omega.nodes.agent.task_folder import TaskFolder
from omega.task import STEP_FILE, STEPS_DONE

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LANG: Final = "C.UTF-8"
MARKER: Final = "OMEGA_TASK_FOLDER"
"""The variable by which processes are found that left their task's session."""
HOSTFILE: Final = "OMEGA_HOSTFILE"
"""The variable that names the list of a gang's machines."""


@dataclass(frozen=True)
class Account:
    """A user of the machine and the groups that come with it."""

    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str


@dataclass(frozen=True)
class Surroundings:
    """Where, as whom and with which variables the processes of a task run."""

    account: Account | None
    """None: the agent's own."""
    env: Mapping[str, str]
    working_dir: Path

    def start(
        self, command: Sequence[str], outputs: Sequence[int], cgroup: TaskCgroup | None
    ) -> "subprocess.Popen[bytes]":
        """Start a process in a session of its own. Raises OSError.

        With a cgroup, its standard input leads there: it has to write 0 to it.
        """
        stdout, stderr = outputs
        account = self.account
        members = None if cgroup is None else cgroup.open_members()
        try:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL if members is None else members,
                stdout=stdout,
                stderr=stderr,
                cwd=self.working_dir,
                env=self.env,
                start_new_session=True,
                user=None if account is None else account.uid,
                group=None if account is None else account.gid,
                extra_groups=None if account is None else account.groups,
            )
        finally:
            if members is not None:
                os.close(members)

    def succeeds(
        self, command: Sequence[str], timeout_s: float, cgroup: TaskCgroup | None
    ) -> str | None:
        """Run a command to its end, or until its time is up; return why it failed, or None."""
        words = command if cgroup is None else [SHELL, "-c", ENTER, "omega-check", *command]
        try:
            process = self.start(words, (subprocess.DEVNULL, subprocess.DEVNULL), cgroup)
        except OSError as error:
            return f"the check could not be started: {error.strerror}"
        code: int | None = None
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        return why_of_check(code, timeout_s)


def handle_ignored_signals() -> None:
    """Replace the setting "ignored" of every signal by a handler that does nothing.

    Programs inherit ignored signals, but not handlers, and a shell cannot undo it (POSIX `trap`).
    Without this, the tasks of an agent that `nohup` or a script's `&` started could not be
    interrupted. Call it from the main thread. Python itself ignores SIGPIPE and SIGXFSZ, and
    `subprocess` sees to those two.
    """
    for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda _number, _frame: None)


def account_of(user: str | None, allowed: Set[str]) -> Account | None:
    """Return the user who is to run a program; None: the agent's own. Raises NotStarted."""
    if user is None:
        return None
    if user not in allowed:
        raise NotStarted(f"the agent of this machine does not run programs as user {user!r}")
    try:
        entry = pwd.getpwnam(user)
    except KeyError:
        raise NotStarted(f"this machine has no user {user!r}") from None
    if entry.pw_uid == os.geteuid():
        return None
    if os.geteuid() != 0:
        raise NotStarted(f"the agent is not root, so it cannot run programs as user {user!r}")
    groups = tuple(os.getgrouplist(user, entry.pw_gid))
    return Account(entry.pw_uid, entry.pw_gid, groups, entry.pw_dir)


def home_of_agent() -> str:
    """Return the home of the user who runs the agent, whatever its environment says."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_dir
    except KeyError:  # a container may run under a number that no user has
        return "/"


def environment(
    launch: Launch, folder: TaskFolder, run: Path, home: str, from_file: Mapping[str, str]
) -> dict[str, str]:
    """Return all variables of a program; what its user wrote wins over what is always there.

    `run` is the folder of this start.
    """
    gpus = ",".join(map(str, launch.gpus))
    return {
        "PATH": PATH,
        "HOME": home,
        "LANG": LANG,
        "TMPDIR": str(folder.work),
        **launch.defaults,
        **from_file,
        **dict(launch.program.env),
        **launch.env,
        "CUDA_VISIBLE_DEVICES": gpus,
        "NVIDIA_VISIBLE_DEVICES": gpus,
        **({HOSTFILE: str(folder.hostfile(run))} if launch.peers else {}),
        **({STEP_FILE: str(folder.step_file(run))} if STEPS_DONE in launch.env else {}),
        MARKER: str(folder.path),
    }


def hostfile(peers: Sequence[str]) -> str:
    """Return the machines of a gang as Open MPI's launcher reads them: its tasks are slots."""
    slots = Counter(peer for peer in peers if peer)
    return "".join(f"{address} slots={number}\n" for address, number in slots.items())


def command_of(command: Sequence[str], path: str, folder: Path) -> list[str]:
    """Return a command with the full path of its program. Raises NotStarted.

    With its path, because the shell that runs it has commands of its own, such as `exit`.
    """
    name, *arguments = command
    if "/" not in name:
        found = shutil.which(name, path=path) if name else None
        if found is None:
            raise NotStarted(f"the command {name!r} was not found on this machine")
        return [str(folder / found), *arguments]
    file = folder / name
    if not file.exists():
        raise NotStarted(f"the command {name!r} was not found on this machine")
    if file.is_dir() or not os.access(file, os.X_OK):
        raise NotStarted(f"the command {name!r} may not be executed on this machine")
    return [str(file), *arguments]


def check_folder(folder: Path, account: Account) -> None:
    """Raise NotStarted if another user cannot reach the folders of tasks."""
    for path in (folder, *folder.parents):
        entry = path.stat()
        shut = not entry.st_mode & 0o001
        theirs = entry.st_uid == account.uid and entry.st_mode & 0o100
        if shut and not theirs and not (entry.st_gid in account.groups and entry.st_mode & 0o010):
            raise NotStarted(f"the program's user cannot enter the agent's folder {str(path)!r}")


def check_working_dir(name: str) -> None:
    """Raise NotStarted if a program cannot run in this folder."""
    if not Path(name).is_dir():
        raise NotStarted(f"this machine has no folder {name!r}, the working directory")
