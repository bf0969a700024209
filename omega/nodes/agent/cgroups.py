"""Limits of processes by cgroup v2, on machines where the agent may write the hierarchy.

Goal     Hold each task to its memory, and give it its share of processors when they are short.
Promise  One cgroup for each start of a task. Where the agent may not make any, or lacks
         controllers, one warning says what is missing and what follows, and tasks run as without.
         The agent moves no process but itself.
Source   docs/decisions/0051-cgroups.md; Documentation/admin-guide/cgroup-v2.rst of Linux; systemd's
         "Control Group APIs and Delegation".
"""

import os
from collections.abc import Callable, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from omega.nodes.agent.task_cgroup import (
    MEMBERS,
    TaskCgroup,
    group_name,
    read_file,
    write_file,
)

LEAF: Final = "omega-agent"
"""Where the agent itself is while cgroups beside it have controllers: the kernel lets no process be
in a cgroup that hands controllers on. systemd puts it there by DelegateSubgroup=omega-agent."""
MIB: Final = 2**20
WEIGHT_MAX: Final = 10_000
MILLI_OF_WEIGHT: Final = 10
"""One processor weighs 100, which is what the kernel gives every cgroup that says nothing."""
PROCESSES_SHARE: Final = 0.15
"""How much of all processes and threads of the machine one task may have, as systemd's default."""
PROCESSES_MIN: Final = 256
LIMITED: Final = {"memory": "memory", "cpu": "CPU", "pids": "number of processes"}
"""What the controllers limit that are used."""
CONTROL: Final = "cgroup.subtree_control"


@dataclass(frozen=True)
class Hierarchy:
    """The cgroup v2 hierarchy, as a process sees it."""

    mount: Path
    own: Path
    """The cgroup of the process."""


class Cgroups:
    """Makes the cgroups of the tasks of one folder."""

    def __init__(self, group: Path, controllers: Set[str]) -> None:
        """`controllers` are those that the cgroup `group` hands on."""
        self._group = group
        self.controllers = frozenset(controllers)

    def make(self, name: str, *, cpu_milli: int, memory_mib: int) -> TaskCgroup:
        """Return a new cgroup with the limits of a task. Raises OSError."""
        path = self._group / name
        path.mkdir()
        try:
            for file, value in self._limits(cpu_milli, memory_mib).items():
                if (path / file).exists():  # a kernel without swap has no file for it
                    write_file(path / file, value)
        except OSError:
            path.rmdir()
            raise
        return TaskCgroup(path)

    def end_others(self, names: Set[str]) -> None:
        """Kill and remove all but the cgroups of these names; what still ends goes next time."""
        with suppress(OSError):
            for entry in os.scandir(self._group):
                if entry.is_dir() and entry.name not in names:
                    left = TaskCgroup(self._group / entry.name)
                    left.kill()
                    left.remove()

    def close(self) -> None:
        """Remove the cgroup of all tasks, unless some of them run."""
        with suppress(OSError):
            self._group.rmdir()

    def _limits(self, cpu_milli: int, memory_mib: int) -> dict[str, str]:
        limits: dict[str, str] = {}
        if "memory" in self.controllers and memory_mib:
            # Without swap, or a task would slow the machine down in place of being ended. With the
            # whole group, or what is left of a program would go on without its parts.
            limits = {
                "memory.max": str(memory_mib * MIB),
                "memory.swap.max": "0",
                "memory.oom.group": "1",
            }
        if "cpu" in self.controllers:
            limits["cpu.weight"] = weight_of(cpu_milli)
        if "pids" in self.controllers:
            limits["pids.max"] = str(processes_max())
        return limits


def find_cgroups(folder: Path, *, cpu_milli: int, warn: Callable[[str], None]) -> Cgroups | None:
    """Return what makes the cgroups of a folder's tasks; None where the agent may make none.

    It may move this process into a cgroup of its own.

    Args:
        folder: the tasks' folder, which names their cgroup.
        cpu_milli: the share of the machine that all tasks together may hold.
        warn: receives one line if anything is not limited.
    """
    hierarchy = hierarchy_of_this_process()
    if hierarchy is None:
        warn(_warning(LIMITED.keys(), "no cgroup v2 hierarchy is mounted"))
        return None
    whys = []
    for base in _bases(hierarchy):
        try:
            cgroups = _prepare(base, hierarchy.own, group_name(folder.resolve()), cpu_milli)
        except OSError as error:
            whys.append(f"{error.filename or base}: {error.strerror}")
            continue
        if missing := LIMITED.keys() - cgroups.controllers:
            warn(_warning(missing, f"{base} has not the controllers {', '.join(sorted(missing))}"))
        return cgroups
    warn(_warning(LIMITED.keys(), "; ".join(whys)))
    return None


def hierarchy_of_this_process() -> Hierarchy | None:
    """Return the mounted cgroup v2 hierarchy and this process's place in it; None if neither is."""
    lines = read_file(Path("/proc/self/cgroup")).splitlines()
    own = next((line[3:] for line in lines if line.startswith("0::")), None)
    for line in read_file(Path("/proc/self/mountinfo")).splitlines():
        mounted, _, kind = line.partition(" - ")
        if own is not None and kind.startswith("cgroup2 "):
            _, _, _, root, mount, *_ = mounted.split()
            if Path(own).is_relative_to(root):
                return Hierarchy(Path(mount), Path(mount) / Path(own).relative_to(root))
    return None


def weight_of(cpu_milli: int) -> str:
    """Return the weight of a task, or of all tasks, with this share of the processors."""
    return str(max(1, min(WEIGHT_MAX, cpu_milli // MILLI_OF_WEIGHT)))


def processes_max() -> int:
    """Return how many processes and threads one task may have."""
    limits = [int(read_file(Path("/proc/sys/kernel") / it)) for it in ("pid_max", "threads-max")]
    return max(PROCESSES_MIN, int(min(limits) * PROCESSES_SHARE))


def _bases(hierarchy: Hierarchy) -> list[Path]:
    """Return below which cgroups those of tasks may be, the best first."""
    own = hierarchy.own
    bases = [own.parent if own.name == LEAF else own]
    if os.geteuid() == 0 and hierarchy.mount not in bases:
        bases.append(hierarchy.mount)
    return bases


def _prepare(base: Path, own: Path, group: str, cpu_milli: int) -> Cgroups:
    """Make the cgroup of all tasks below a base, with controllers. Raises OSError."""
    path = base / group
    path.mkdir(exist_ok=True)
    try:
        _hand_on(base, own)
        controllers = _enable(path)
        if "cpu" in controllers:  # each cgroup beside this one counts as one processor
            write_file(path / "cpu.weight", weight_of(cpu_milli))
    except OSError:
        with suppress(OSError):  # tasks of an earlier agent may run there
            path.rmdir()
        raise
    return Cgroups(path, controllers)


def _hand_on(base: Path, own: Path) -> None:
    """Let the cgroups below a base have its controllers, which no process may be in then."""
    is_root = not (base / "cgroup.type").exists()
    offered = LIMITED.keys() & read_file(base / "cgroup.controllers").split()
    if offered <= set(read_file(base / CONTROL).split()):
        return
    moves = base == own and not is_root
    if not is_root:
        others = {int(pid) for pid in read_file(base / MEMBERS).split()} - {os.getpid()}
        if others:
            raise OSError(0, "other processes are in this cgroup", str(base))
    if moves:
        (base / LEAF).mkdir(exist_ok=True)
        write_file(base / LEAF / MEMBERS, "0")
    if not _enable(base):
        if moves:
            write_file(base / MEMBERS, "0")
            (base / LEAF).rmdir()
        raise OSError(0, "no controller can be handed on", str(base))


def _enable(path: Path) -> Set[str]:
    """Hand on the controllers that a cgroup has; return those that it hands on."""
    for controller in LIMITED.keys() & read_file(path / "cgroup.controllers").split():
        with suppress(OSError):  # one that is busy does not hold up the others
            write_file(path / CONTROL, f"+{controller}")
    return LIMITED.keys() & read_file(path / CONTROL).split()


def _warning(missing: Set[str], why: str) -> str:
    what = [name for controller, name in LIMITED.items() if controller in missing]
    unlimited = f"{', '.join(what[:-1])} and {what[-1]}" if what[1:] else what[0]
    watched = ", and memory is looked at once a second" if "memory" in missing else ""
    return f"nothing limits the {unlimited} of tasks{watched}: {why}"
