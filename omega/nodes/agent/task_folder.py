"""The folder of one task: its output, who runs it, and how it ended.

Goal     Let an agent that was killed and started again find its tasks and their ends.
Promise  A task may write what it likes where it can: no method blocks, raises or reads much,
         whatever lies there. Who creates the file `shell` first decides whether the task starts.
Source   open(2); docs/decisions/0044-programs-and-agents.md.

KEY/            the agent's
├── launch      the current run; the task is forgotten when it is gone
├── end         how that run ended, once the agent knows
├── stdout, stderr, and what OutputFile keeps beside them
├── run-N/      of the N-th start, the task's user's
│   ├── hosts   the machines of its gang
│   ├── steps   how far its job is, as the program says
│   ├── shell   pid, start and boot of the shell that runs the command
│   └── exit    what the shell saw of its end, and whether it got SIGTERM itself
└── work/       the working directory, and TMPDIR
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from omega.limits import LIMITS
from omega.model.exits import CODE_MAX, Exit, ExitCause
from omega.nodes.agent.output_file import OutputFile
from omega.nodes.agent.small_files import create_small, read_small, remove_small, write_small
from omega.nodes.agent.task_driver import Stream, TaskKey

PID_MAX: Final = 2**22
ASKED_TO_END: Final = " TERM"
"""What a shell that got SIGTERM writes behind the code."""
KEPT: Final = tuple(stream.value for stream in Stream)
RUN_FILES: Final = ("shell", "exit")
"""What a shell leaves in the folder of a run."""
OUTPUT_FILES: Final = tuple(f"{name}{suffix}" for name in KEPT for suffix in ("", ".1", ".dropped"))


@dataclass(frozen=True, kw_only=True)
class Launched:
    """What the next agent needs to know of a task's current run."""

    run: int
    boot: str
    restarts: int
    memory_mib: int
    cgroup: str = ""
    """The path of its cgroup, if it has one."""


@dataclass(frozen=True)
class Shell:
    """The shell that runs a task's command and waits for its end."""

    pid: int
    ticks: int
    boot: str
    is_child: bool = False
    """Whether this agent started it."""


class TaskFolder:
    """Reads and writes the files of one task."""

    def __init__(self, parent: Path, key: TaskKey) -> None:
        self.path = parent / str(key)
        self.work = self.path / "work"
        self._launch = self.path / "launch"
        self._end = self.path / "end"

    def run(self, number: int) -> Path:
        """Return the folder of one start."""
        return self.path / f"run-{number}"

    @staticmethod
    def hostfile(run: Path) -> Path:
        """Return the list of a gang's machines, of one start."""
        return run / "hosts"

    @staticmethod
    def step_file(run: Path) -> Path:
        """Return where the program of one start writes how many steps its job has made."""
        return run / "steps"

    def read_steps(self, run: int) -> int | None:
        """Return how many steps the program says; None if it says nothing of sense."""
        text = (read_small(self.step_file(self.run(run))) or "").strip()
        is_sane = text.isascii() and text.isdecimal() and len(text) < len(str(LIMITS.steps_max))
        return int(text) if is_sane else None

    def next_run(self) -> int:
        """Return the number of the next start."""
        numbers = [0]
        for path in self.path.glob("run-*"):
            number = path.name.removeprefix("run-")
            if number.isdecimal() and len(number) < len(str(PID_MAX)):
                numbers.append(int(number))
        return max(numbers) + 1

    def output(self, stream: Stream) -> OutputFile:
        """Return the file of a stream."""
        return OutputFile(self.path / stream.value)

    def write_launch(self, launched: Launched) -> None:
        """Keep what the next agent needs. Raises OSError."""
        write_small(self._launch, json.dumps(asdict(launched)))

    def read_launch(self) -> Launched | None:
        """Return what `write_launch` kept; None if it is not there or unreadable."""
        values = _read_json(self._launch)
        try:
            launched = Launched(**values)
        except TypeError:
            return None
        numbers = (launched.run, launched.restarts, launched.memory_mib)
        sane = all(type(number) is int and number >= 0 for number in numbers)
        texts = (launched.boot, launched.cgroup)
        return launched if sane and all(isinstance(text, str) for text in texts) else None

    def write_end(self, run: int, end: Exit) -> None:
        """Keep how a run ended. Raises OSError."""
        write_small(self._end, json.dumps({**asdict(end), "cause": end.cause.value, "run": run}))

    def read_end(self, run: int) -> Exit | None:
        """Return how this run ended; None if nobody knew yet."""
        values = _read_json(self._end)
        try:
            if values.pop("run") != run:
                return None
            cause = ExitCause(values.pop("cause"))
            return Exit(cause=cause, **values)
        except (KeyError, TypeError, ValueError, AssertionError):
            return None

    def drop(self) -> list[Path]:
        """Forget the task; return what is left to be deleted besides its outputs. Raises OSError.

        What is small, as for most tasks all of it is, is deleted at once.
        """
        self._launch.unlink(missing_ok=True)
        there = [path for path in self.path.iterdir() if not path.name.startswith(KEPT)]
        return [path for path in there if not remove_small(path, RUN_FILES)]

    def remove(self) -> bool:
        """Delete the folder of a forgotten task if little is in it; return whether that was so."""
        return remove_small(self.path, OUTPUT_FILES)

    def read_shell(self, run: int) -> Shell | None:
        """Return who runs the task; None if no shell has said so."""
        words = (read_small(self.run(run) / "shell") or "").split()
        try:
            pid, ticks, boot = words
            shell = Shell(int(pid), int(ticks), boot)
        except ValueError:
            return None
        return shell if 1 < shell.pid <= PID_MAX else None

    def claim_start(self, run: int) -> bool:
        """See to it that a shell that has not begun never will; False if one has begun."""
        try:
            create_small(self.run(run) / "shell", "none\n")
        except OSError:
            return False
        return True

    def read_code(self, run: int) -> int | None:
        """Return what the shell saw as `$?`; None if it wrote nothing of sense."""
        text = read_small(self.run(run) / "exit") or ""
        digits = text[:-1].removesuffix(ASKED_TO_END)
        if text[-1:] != "\n" or not (digits.isascii() and digits.isdecimal()):
            return None
        if len(digits) > len(str(CODE_MAX)) or int(digits) > CODE_MAX:
            return None
        return int(digits)

    def was_asked_to_end(self, run: int) -> bool:
        """Return whether the shell got SIGTERM before it wrote what it saw."""
        return (read_small(self.run(run) / "exit") or "").endswith(f"{ASKED_TO_END}\n")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(read_small(path) or "{}")
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}
