"""The folder of one task: its output, who runs it, and how it ended.

Goal     Let an agent that was killed and started again find its tasks and their ends.
Promise  A task may write what it likes where it can: no method blocks, raises or reads much,
         whatever lies there. Who creates the file `shell` first decides whether the task starts.
Source   open(2); docs/decisions/0044-programs-and-agents.md.

KEY/            the agent's
├── launch      the start of the current run: JSON, written before its shell is started
├── stdout, stderr, and stdout.1 …
├── forgotten   is there once the end was reported; the output stays
├── run-N/      of the N-th start, the task's user's
│   ├── shell   pid, start and boot of the shell that runs the command
│   └── exit    what the shell saw of its end
└── work/       the working directory, and TMPDIR
"""

import json
import os
import stat
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from omega.nodes.agent.task_driver import TaskKey

CONTROL_BYTES_MAX: Final = 4096
NOT_STARTED: Final = "none\n"


@dataclass(frozen=True, kw_only=True)
class Launched:
    """What the next agent needs to know of a task's current run."""

    run: int
    boot: str
    restarts: int
    memory_mib: int
    rotated: int = 0


@dataclass(frozen=True)
class Shell:
    """The shell that runs a task's command and waits for its end."""

    pid: int
    ticks: int
    boot: str


class TaskFolder:
    """Reads and writes the files of one task."""

    def __init__(self, parent: Path, key: TaskKey) -> None:
        self.path = parent / str(key)
        self.work = self.path / "work"
        self.launch = self.path / "launch"
        self.forgotten = self.path / "forgotten"

    def run(self, number: int) -> Path:
        """Return the folder of one start."""
        return self.path / f"run-{number}"

    def write_launch(self, launched: Launched) -> None:
        """Keep what the next agent needs. Raises OSError."""
        aside = self.path / "launch.new"
        aside.write_text(json.dumps(asdict(launched)), "utf-8")
        aside.rename(self.launch)

    def read_launch(self) -> Launched | None:
        """Return what `write_launch` kept; None if it is not there or unreadable."""
        text = read_small(self.launch)
        try:
            return Launched(**json.loads(text)) if text is not None else None
        except (ValueError, TypeError):
            return None

    def read_shell(self, run: int) -> Shell | None:
        """Return who runs the task; None if no shell has said so."""
        words = (read_small(self.run(run) / "shell") or "").split()
        try:
            pid, ticks, boot = words
            return Shell(int(pid), int(ticks), boot)
        except ValueError:
            return None

    def claim_start(self, run: int) -> bool:
        """See to it that a shell that has not begun never will; False if one has begun."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(self.run(run) / "shell", flags, 0o600)
        except OSError:
            return False
        with suppress(OSError):
            os.write(descriptor, NOT_STARTED.encode())
        os.close(descriptor)
        return True

    def read_exit(self, run: int) -> int | None:
        """Return what the shell saw as `$?`; None if it wrote nothing of sense."""
        text = read_small(self.run(run) / "exit")
        if text is None or not text.endswith("\n") or not text[:-1].isdecimal():
            return None
        code = int(text) if len(text) <= len("255\n") else -1
        return code if 0 <= code <= 255 else None  # noqa: PLR2004 - a status is a byte


def read_small(path: Path) -> str | None:
    """Return the text of a small regular file, and None for whatever else lies there."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        content = os.read(descriptor, CONTROL_BYTES_MAX + 1)
        return content.decode("ascii") if len(content) <= CONTROL_BYTES_MAX else None
    except (OSError, ValueError):
        return None
    finally:
        os.close(descriptor)
