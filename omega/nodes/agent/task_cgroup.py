"""The cgroup of one task: who is in it, whether memory ran out, and its end.

Goal     Watch and kill exactly the processes of a task, whatever they do to get away.
Promise  No method raises for a cgroup that is gone, which counts as empty. What a task's own folder
         says is believed only if it names a cgroup of this agent and of this very start.
Source   docs/decisions/0051-cgroups.md; Documentation/admin-guide/cgroup-v2.rst of Linux.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from omega.nodes.agent.task_driver import TaskKey

MEMBERS: Final = "cgroup.procs"
NO_LIMIT: Final = "max"


def group_name(folder: Path) -> str:
    """Return the name of the cgroup that holds those of all tasks of a folder."""
    return f"omega-{sha256(os.fsencode(folder)).hexdigest()[:16]}"


def cgroup_name(key: TaskKey, run: int) -> str:
    """Return the name of the cgroup of one start of a task."""
    return f"{key}.{run}"


@dataclass(frozen=True)
class TaskCgroup:
    """One cgroup, which the agent has made for one start of a task."""

    path: Path

    @classmethod
    def taken_up(cls, written: str, group: str, name: str, mount: Path) -> "TaskCgroup | None":
        """Return the cgroup that an earlier agent wrote down; None if it cannot be this one.

        Args:
            written: its path, from a file that the task may have changed.
            group: the name of the agent's cgroup of tasks.
            name: the name that the cgroup has for this start of the task.
            mount: where the hierarchy is mounted.
        """
        path = Path(written)
        is_ours = path.name == name and path.parent.name == group and path.is_relative_to(mount)
        return cls(path) if is_ours and ".." not in path.parts and path.is_dir() else None

    def open_members(self) -> int:
        """Return a descriptor; a process that writes 0 to it enters the cgroup. Raises OSError.

        The kernel asks who opened it, so a program of another user can be started with it.
        """
        return os.open(self.path / MEMBERS, os.O_WRONLY | os.O_CLOEXEC)

    @property
    def members(self) -> list[int]:
        """The pids of its processes."""
        return [int(word) for word in read_file(self.path / MEMBERS).split()]

    @property
    def is_empty(self) -> bool:
        """Whether no process runs in it or below it."""
        return _numbers(self.path / "cgroup.events").get("populated", 0) == 0

    @property
    def limits_memory(self) -> bool:
        """Whether the kernel holds it to an amount of memory."""
        return read_file(self.path / "memory.max").strip() not in ("", NO_LIMIT)

    def kill(self) -> None:
        """Kill all that runs in it, the task's shell as well, if the kernel can (Linux 5.14)."""
        with suppress(OSError):
            write_file(self.path / "cgroup.kill", "1")

    def why_out_of_memory(self, memory_mib: int) -> str | None:
        """Return why the kernel killed it for want of memory; None if it did not."""
        events = _numbers(self.path / "memory.events")
        if not events.get("oom_kill"):
            return None
        if events.get("oom"):
            return f"it needed more than the {memory_mib} MiB that it may use"
        return "the machine had no memory left"

    def remove(self) -> bool:
        """Remove it and what is below it; return whether it is gone. It stays while it is used."""
        for path in (*_below(self.path), self.path):
            with suppress(OSError):
                path.rmdir()
        return not self.path.exists()


def read_file(path: Path) -> str:
    """Return what the kernel shows; nothing if there is no such file."""
    try:
        return path.read_text("utf-8", "surrogateescape")  # a name may be of any bytes
    except OSError:
        return ""


def write_file(path: Path, text: str) -> None:
    """Write to a file of the kernel, in one call; never make one. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode("ascii"))
    finally:
        os.close(descriptor)


def _below(path: Path) -> Iterator[Path]:
    """Yield the cgroups that a program has made below this one, innermost first."""
    for folder, _, _ in os.walk(path, topdown=False):
        if Path(folder) != path:
            yield Path(folder)


def _numbers(path: Path) -> dict[str, int]:
    """Return what the lines `name number` of a file say."""
    words = read_file(path).split()
    return dict(zip(words[::2], map(int, words[1::2]), strict=True))
