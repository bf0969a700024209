"""Types lines of a document as a user's shell would."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

TURN_S = 0.2
TURNS_MAX = 600
"""How often a step may be found at work before it counts as stuck: no step comes near it."""

Process = subprocess.Popen[str]


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
            (process.terminate if kind is None else process.kill)()
        ends = [(process.communicate()[0], process.returncode) for process in self._running]
        assert kind is not None or all(code == 0 for _, code in ends), ends

    def type(self, words: Sequence[str]) -> str:
        """Run a line; return what it said, or nothing of one that goes on in the background."""
        process = self._start([word for word in words if word != "&"])
        if words[-1] == "&":
            self._running.append(process)
            return ""
        for _ in range(TURNS_MAX):
            assert [] == [other.args for other in self._running if other.poll() is not None]
            try:
                said, _ = process.communicate(timeout=TURN_S)
            except subprocess.TimeoutExpired:
                continue
            assert process.returncode == 0, said
            return said
        process.kill()
        raise AssertionError(f"{' '.join(words)} is stuck: {process.communicate()[0]}")

    def _start(self, words: Sequence[str]) -> Process:
        at = words.index("omega")
        assignments = [word.partition("=") for word in words[:at]]
        said = {
            name: self._environment[value[1:]] if value.startswith("$") else value
            for name, _, value in assignments
        }
        return subprocess.Popen(
            [sys.executable, "-m", "omega.cli", *words[at + 1 :]],
            cwd=self._folder,
            env={**self._environment, **said},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
