"""Types lines of a document as a user's shell would."""

import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tests.docs.documents import Block
from tests.fixtures.command_line import Omega

CYCLE_S = 0.2
TURNS_MAX = 600
"""How often a step may be found at work before it counts as stuck: no step comes near it."""
ASSIGNMENT = re.compile(r"([A-Z_]+)=(.*)")
VARIABLE = re.compile(r"\$([A-Z_]+)")
SAVED_AS = re.compile(r"(?:Write|[Ss]ave\s(?:it|this)\sas|Beside\sit,\sin) `([\w.]+)`")
"""What a document says before a block that its reader saves."""
PYTHON = {"omega": [sys.executable, "-m", "omega.cli"], "python": [sys.executable]}
"""Programs that are run by this interpreter, whatever is on the path."""

Process = subprocess.Popen[str]


def steps(block: Block) -> list[list[str]]:
    """Return the words of each line; one that runs in the background ends in &."""
    lines = [shlex.split(line, comments=True) for line in block.text.splitlines()]
    return [words for words in lines if words]


def saved(block: Block, folder: Path, text: str) -> Path:
    """Write a block to the file that the text around it says it is to be saved as."""
    name: str = SAVED_AS.findall(text.partition(block.text)[0])[-1]
    path = folder / name
    path.write_text(block.text)
    return path


def run_here(omega: Omega, block: Block) -> dict[str, str]:
    """Run the lines of a block in this process, each to its end; return what each printed."""
    said = {}
    for words in steps(block):
        assert "omega" == words[0]
        ran = omega(*words[1:])
        assert 0 == ran.code, ran.err
        said[" ".join(words)] = ran.out
    return said


class Shell:
    """Runs lines as a user's shell would; whatever still runs in the end is told to stop."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = environment
        self._running: list[Process] = []

    def __enter__(self) -> "Shell":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for process in self._running:
            _terminate(process) if kind is None else process.kill()
        ends = [(process.communicate()[0], process.returncode) for process in self._running]
        assert kind is not None or all(code == 0 for _, code in ends), ends

    def type_all(self, block: Block) -> dict[str, str]:
        """Run the lines of a block; return what each said, by its words."""
        return {" ".join(words): self.type(words) for words in steps(block)}

    def type(self, words: Sequence[str]) -> str:
        """Run a line; return what it said, or nothing of one that goes on in the background."""
        if words[0] == "kill":
            return self._kill(words[1:])
        process = self._start([word for word in words if word != "&"])
        if words[-1] == "&":
            self._running.append(process)
            return ""
        for _ in range(TURNS_MAX):
            assert [] == [other.args for other in self._running if other.poll() is not None]
            try:
                said, _ = process.communicate(timeout=CYCLE_S)
            except subprocess.TimeoutExpired:
                continue
            assert process.returncode == 0, said
            return said
        process.kill()
        raise AssertionError(f"{' '.join(words)} is stuck: {process.communicate()[0]}")

    def _kill(self, jobs: Sequence[str]) -> str:
        """End the background processes of these numbers, as %1 %2; each has to end cleanly."""
        ended = [self._running[int(job.removeprefix("%")) - 1] for job in jobs]
        for process in ended:
            _terminate(process)
        said = [process.communicate()[0] for process in ended]
        assert [0] * len(ended) == [process.returncode for process in ended], said
        self._running = [process for process in self._running if process not in ended]
        return "".join(said)

    def _start(self, words: Sequence[str]) -> Process:
        # A variable that is not set here stands in quotes, for another shell.
        words = [
            VARIABLE.sub(lambda name: self._environment.get(name[1], name[0]), word)
            for word in words
        ]
        assigned = {}
        while match := ASSIGNMENT.fullmatch(words[0]):
            assigned[match[1]] = match[2]
            del words[0]
        return subprocess.Popen(
            [*PYTHON.get(words[0], [words[0]]), *words[1:]],
            cwd=self._folder,
            env={**self._environment, **assigned},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )


def _terminate(process: Process) -> None:
    """Send SIGTERM once the process handles it: one that still loads its code would just die."""
    for _ in range(TURNS_MAX):
        if process.poll() is not None or _handles_sigterm(process.pid):
            break
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=CYCLE_S)
    process.terminate()


def _handles_sigterm(pid: int) -> bool:
    """Say whether a process has a handler for SIGTERM; True where the system does not tell."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return True
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return bool(caught >> (signal.SIGTERM - 1) & 1)
