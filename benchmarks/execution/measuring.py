"""One system, started once: lone tasks, its memory at rest, short tasks, long tasks."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Final

from benchmarks.execution.systems import Running, memory_mib, processor_s, processor_times
from benchmarks.harness import Stage
from omega.errors import OmegaError

SHORT: Final = ("true",)
REST_S: Final = 1.0
"""Time between the last lone task and the look at the memory."""
OUTPUT_S_MAX: Final = 10.0
"""How long the output of a lone task that has ended is waited for."""


@dataclass(frozen=True)
class Work:
    """What a system is given in one round."""

    slots: int
    short_tasks: int
    long_tasks: int
    long_s: float
    lone: int


@dataclass
class Measured:
    """What a system took for it."""

    work: Work
    short_s: float = 0.0
    processor_s: dict[str, float] = field(default_factory=dict)
    """Processor time of the system during the short tasks, by part."""
    long_s: float | None = None
    long_failed: str | None = None
    """Why the long tasks did not end."""
    first_s: list[float] = field(default_factory=list)
    """From the submission of a lone task by the client to its output, by task."""
    typed_s: list[float] = field(default_factory=list)
    """The same by the command that a user types, to the output of that command."""
    memory_mib: float = 0.0
    memory_of: str = ""

    @property
    def done(self) -> int:
        """The number of tasks that the system has run."""
        work = self.work
        return work.short_tasks + work.long_tasks + work.lone + len(self.typed_s)

    @property
    def short_per_s(self) -> float:
        """Short tasks a second."""
        return self.work.short_tasks / self.short_s

    @property
    def short_overhead_s(self) -> float:
        """Time of a slot for a short task."""
        return self.short_s * self.work.slots / self.work.short_tasks

    @property
    def processor_ms(self) -> dict[str, float]:
        """Processor time for a short task by part."""
        return {part: 1_000 * it / self.work.short_tasks for part, it in self.processor_s.items()}

    @property
    def long_overhead_s(self) -> float | None:
        """Time of a slot for a long task, beyond its own length."""
        if self.long_s is None:
            return None
        return self.long_s * self.work.slots / self.work.long_tasks - self.work.long_s


def measured(stage: Stage, running: Running, folder: Path, work: Work) -> Measured:
    """Give a system its work; return what it took."""
    found, clock = Measured(work), stage.clock
    for _ in range(work.lone):
        stage.go_on()
        found.first_s.append(_first_output(stage, running, folder))
    for _ in range(work.lone):
        stage.go_on()
        if (took_s := _typed(stage, running)) is not None:
            found.typed_s.append(took_s)
    clock.sleep(REST_S)
    found.memory_mib, found.memory_of = memory_mib(running.processes())
    stage.go_on()
    before, began_s = processor_times(running.processes()), clock.now()
    running.run(SHORT, work.short_tasks)
    found.short_s = clock.now() - began_s
    found.processor_s = processor_s(before, processor_times(running.processes()))
    stage.go_on()
    if work.long_tasks:
        began_s = clock.now()
        try:
            running.run(("sleep", f"{work.long_s:g}"), work.long_tasks)
            found.long_s = clock.now() - began_s
        except OmegaError as error:
            found.long_failed = str(error)  # what was measured before is kept
    return found


def _first_output(stage: Stage, running: Running, folder: Path) -> float:
    """Submit one task, which writes to a named pipe; return when the first byte arrived."""
    told: list[float] = []

    def wait_for_output(pipe: int) -> None:
        os.read(pipe, 1)
        told.append(stage.clock.now())

    with _pipe(folder / "pipe") as (path, pipe):
        reader = Thread(target=wait_for_output, args=(pipe,))
        reader.start()
        began_s = stage.clock.now()
        try:
            running.run(("sh", "-c", f"echo >{path}"), 1)
            reader.join(OUTPUT_S_MAX)
            was_told = bool(told)
        finally:
            if reader.is_alive():
                os.write(pipe, b"\n")  # it would wait for ever
                reader.join()
        if not was_told:
            raise OmegaError("a lone task wrote nothing")
    return told[0] - began_s


def _typed(stage: Stage, running: Running) -> float | None:
    """Type the command for a line; return when its output arrived."""
    command = running.typed("echo x")
    if command is None:
        return None
    began_s = stage.clock.now()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as typed:
        assert typed.stdout is not None
        first = typed.stdout.read(1)
        took_s = stage.clock.now() - began_s
        typed.stdout.read()
    if first != b"x" or typed.returncode:
        raise OmegaError(f"{command[0]} ended with {typed.returncode}, and wrote {first!r}")
    return took_s


@contextmanager
def _pipe(path: Path) -> Iterator[tuple[Path, int]]:
    os.mkfifo(path)
    pipe = os.open(path, os.O_RDWR)  # so that neither end waits for the other to be opened
    try:
        yield path, pipe
    finally:
        os.close(pipe)
        path.unlink()
