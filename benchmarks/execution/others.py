"""Systems whose client is a Python program, which a process of its own hosts; and xargs."""

import importlib.metadata
import importlib.util
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks.execution.systems import environment, process, said, tree
from benchmarks.harness import Stage
from omega.errors import OmegaError


@dataclass(frozen=True)
class Hosted:
    """A package, with the program of the folder `hosts` that starts it and submits to it."""

    name: str
    label: str
    package: str
    install: str
    """Where its version is pinned."""

    def absence(self) -> str | None:
        """Return that the package is missing."""
        if importlib.util.find_spec(self.package) is None:
            return f"not installed: no package {self.package} ({self.install})"
        return None

    def version(self) -> str:
        """Return the installed version."""
        return importlib.metadata.version(self.package)

    @contextmanager
    def started(self, folder: Path, stage: Stage, slots: int) -> Iterator["RunningHost"]:
        """Run the host for the block; it says when the system is ready."""
        program = Path(__file__).parent / "hosts" / f"{self.name}_host.py"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        log, env = folder / "host.log", environment(RAY_USAGE_STATS_ENABLED="0")
        command = [sys.executable, str(program), str(slots), str(folder)]
        with process(command, log, env, **pipes) as host:
            running = RunningHost(host, log)
            running.answer()
            yield running


@dataclass(frozen=True)
class RunningHost:
    """A host that takes an order a line, and answers with a line."""

    host: "subprocess.Popen[str]"
    log: Path

    def run(self, command: Sequence[str], tasks: int) -> None:
        """Have the host submit the tasks and gather their exit codes."""
        assert self.host.stdin is not None
        self.host.stdin.write(json.dumps({"command": list(command), "tasks": tasks}) + "\n")
        self.host.stdin.flush()
        told = self.answer()
        if (told["ended"], told["failed"]) != (tasks, 0):
            raise OmegaError(f"{told['failed']} of {tasks} tasks failed, {told['ended']} ended")

    def answer(self) -> dict[str, Any]:
        """Return the next answer; raise OmegaError if the host has ended."""
        assert self.host.stdout is not None
        if line := self.host.stdout.readline():
            answer: dict[str, Any] = json.loads(line)
            return answer
        raise OmegaError(f"{self.log.parent.name}: {self.log.read_text()[-2_000:]}")

    def typed(self, line: str) -> list[str] | None:
        """Return None: these have no such command."""
        return None

    def processes(self) -> list[psutil.Process]:
        """Return the host, which holds the client, and what it has started."""
        return tree(self.host.pid)


@dataclass(frozen=True)
class Xargs:
    """The floor: a program that starts the next process when one ends, and keeps nothing."""

    name: str = "xargs"
    label: str = "xargs -P"

    def absence(self) -> str | None:
        """Return that it is missing."""
        return None if shutil.which("xargs") else "not installed: no xargs"

    def version(self) -> str:
        """Return what it says."""
        return said(["xargs", "--version"]).splitlines()[0]

    @contextmanager
    def started(self, folder: Path, stage: Stage, slots: int) -> Iterator["RunningXargs"]:
        """Yield a way to run it: there is nothing to start."""
        yield RunningXargs(slots)


@dataclass(frozen=True)
class RunningXargs:
    """One xargs for each submission."""

    slots: int

    def run(self, command: Sequence[str], tasks: int) -> None:
        """Run xargs over so many lines; it names no line to the command."""
        words = ["xargs", f"-P{self.slots}", "-I{}", *command]
        lines = "".join(f"{number}\n" for number in range(tasks))
        ran = subprocess.run(words, input=lines, text=True, check=False)
        if ran.returncode:
            raise OmegaError(f"xargs ended with {ran.returncode}")

    def typed(self, line: str) -> list[str] | None:
        """Return the shell: without a system this is how a line is run."""
        return ["sh", "-c", line]

    def processes(self) -> list[psutil.Process]:
        """Return nothing: it keeps no process."""
        return []
