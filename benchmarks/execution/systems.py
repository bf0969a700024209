"""What the benchmark asks of a system that runs tasks, whichever system it is."""

import os
import signal
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Final, Protocol

import psutil

from benchmarks.harness import Stage
from omega.config import ENVIRONMENT_PREFIX
from omega.errors import OmegaError

END_S_MAX: Final = 60.0
"""Time from SIGTERM to SIGKILL: agents end their tasks first."""
START_S_MAX: Final = 120.0
OMEGA_MODULE: Final = "omega.cli"
POLL_S: Final = 0.01
PROGRAMS: Final = "programs"
"""The part of a system's processor time that ended children took: tasks, and what starts them."""


class Running(Protocol):
    """A system at work, with so many slots."""

    def run(self, command: Sequence[str], tasks: int) -> None:
        """Submit so many tasks of a command together; return once the system tells their ends.

        Raises OmegaError if one of them failed.
        """
        ...

    def typed(self, line: str) -> list[str] | None:
        """Return what a user types to see the output of a line of shell; None without such."""
        ...

    def processes(self) -> list[psutil.Process]:
        """Return the processes of the system itself: none of them is a task's."""
        ...


class System(Protocol):
    """A system that may be installed here."""

    @property
    def name(self) -> str:
        """The name in documents."""
        ...

    @property
    def label(self) -> str:
        """The name on screens and pictures."""
        ...

    def absence(self) -> str | None:
        """Return why it cannot run here; None if it can."""
        ...

    def version(self) -> str:
        """Return its version, if it can run here."""
        ...

    def started(self, folder: Path, stage: Stage, slots: int) -> AbstractContextManager[Running]:
        """Start it with all that it keeps in a folder, and end it with the block."""
        ...


def environment(**more: str) -> dict[str, str]:
    """Return the environment of a system's processes, without settings of our own."""
    ours = {key: it for key, it in os.environ.items() if not key.startswith(ENVIRONMENT_PREFIX)}
    return {**ours, **more}


@contextmanager
def process(
    command: Sequence[str], log: Path, env: Mapping[str, str], **pipes: int
) -> Iterator["subprocess.Popen[str]"]:
    """Run a process of a system for the block, and end what it has started with it."""
    with log.open("a") as told:
        child = subprocess.Popen(
            command,
            stdin=pipes.get("stdin", subprocess.DEVNULL),
            stdout=pipes.get("stdout", told),
            stderr=told,
            env=env,
            cwd=log.parent,
            text=True,
            start_new_session=True,  # Ctrl-C reaches only this process
        )
    try:
        yield child
    finally:
        below = tree(child.pid)
        child.terminate()
        try:
            child.wait(END_S_MAX)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        for pipe in filter(None, (child.stdin, child.stdout)):
            pipe.close()
        for one in psutil.wait_procs(below, timeout=1.0)[1]:
            with suppress(psutil.NoSuchProcess):
                one.send_signal(signal.SIGKILL)


def tree(pid: int) -> list[psutil.Process]:
    """Return a process and those below it; none if it has ended."""
    try:
        top = psutil.Process(pid)
        return [top, *top.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def said(command: Sequence[str], env: Mapping[str, str] | None = None) -> str:
    """Return what a command writes; raise OmegaError with its complaint if it fails."""
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    if ran.returncode:
        raise OmegaError(f"{command[0]} ended with {ran.returncode}: {ran.stderr.strip()}")
    return ran.stdout.strip()


def memory_mib(processes: Sequence[psutil.Process]) -> tuple[float, str]:
    """Return the memory of processes, and whether it is their pss or their rss."""
    pss = rss = 0
    is_pss = True
    for one in processes:
        with suppress(psutil.NoSuchProcess):
            rss += one.memory_info().rss
            try:
                pss += one.memory_full_info().pss
            except psutil.AccessDenied:
                is_pss = False
    return (pss if is_pss else rss) / 2**20, "pss" if is_pss else "rss"


@dataclass(frozen=True)
class ProcessorTime:
    """Seconds that a process has kept processors busy so far."""

    part: str
    """The process, as it is named in results: see `part_of`."""
    own_s: float
    children_s: float
    """Of its children that have ended."""


def processor_times(processes: Sequence[psutil.Process]) -> dict[psutil.Process, ProcessorTime]:
    """Return the processor times of those processes that are still there."""
    found = {}
    for one in processes:
        with suppress(psutil.NoSuchProcess):
            part, times = part_of(one.name(), one.cmdline()), one.cpu_times()
            children_s = times.children_user + times.children_system
            found[one] = ProcessorTime(part, times.user + times.system, children_s)
    return found


def processor_s(
    before: Mapping[psutil.Process, ProcessorTime], after: Mapping[psutil.Process, ProcessorTime]
) -> dict[str, float]:
    """Return by part what the processes that are in both have spent between the two."""
    spent: defaultdict[str, float] = defaultdict(float)
    for one in before.keys() & after.keys():
        spent[after[one].part] += after[one].own_s - before[one].own_s
        spent[PROGRAMS] += after[one].children_s - before[one].children_s
    return spent


def part_of(name: str, command: Sequence[str]) -> str:
    """Return the words of a process of `omega` after that name, or the name of the process."""
    if OMEGA_MODULE not in command:
        return name
    return " ".join(takewhile(str.isalpha, command[command.index(OMEGA_MODULE) + 1 :]))
