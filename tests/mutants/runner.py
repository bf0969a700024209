"""Test a mutant: plant it in a copy of the project and run tests until the first fails."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory

import pytest

from omega.clock import Clock
from tests.fixtures.profiles import MUTANTS_PROFILE
from tests.fixtures.servers import GIVEN
from tests.mutants.kill_report import Failure, first_failure
from tests.mutants.mutant import Mutant

COPIED = ("omega", "schedulers", "migrations", "tests", "pyproject.toml")
"""What the tests of mutants need of the project."""
CYCLE_S = 0.5
"""How often a run of tests is checked for its time limit."""
GRACE_S = 20.0
"""How long tests that are told to stop may take to clean up."""


class Status(StrEnum):
    """What became of a mutant."""

    KILLED = "killed"
    """A test failed."""
    SURVIVED = "survived"
    """All passed."""
    TIMED_OUT = "timed out"
    """No test failed in time."""
    INVALID = "invalid"
    """No test could begin: an import, a fixture or the installation of functions failed."""


@dataclass(frozen=True)
class Selection:
    """Which tests to run."""

    paths: tuple[str, ...]
    """Files and folders of tests, in the order in which they are asked."""
    names: tuple[str, ...] = ()
    """Only tests with one of these words in their names; all tests if there are no words."""


@dataclass(frozen=True)
class Result:
    """What became of a mutant, and which test decided it."""

    mutant: Mutant
    status: Status
    test: str = ""
    """The test that killed it, or that could not begin."""
    message: str = ""
    """The message of that failure, or the last lines of the output."""
    took_s: float = 0.0


@dataclass(frozen=True)
class Run:
    """Tests that ran until the first failed."""

    exit_code: int | None
    """None if they had to be stopped."""
    failure: Failure | None
    output: str
    took_s: float

    @property
    def passed(self) -> bool:
        """Whether every test did; none at all is no pass."""
        return self.exit_code == pytest.ExitCode.OK


class MutantRunner:
    """Tests mutants, each in a copy of its own; as many at a time as there are servers.

    A run of tests is stopped after `limit_s` for each file or folder of it.
    """

    def __init__(
        self,
        original: Path,
        clock: Clock,
        servers: Iterable[str],
        *,
        stop: threading.Event,
        limit_s: float,
    ) -> None:
        self._original = original
        self._clock = clock
        self._stop = stop
        self._limit_s = limit_s
        self._free_servers: SimpleQueue[str] = SimpleQueue()
        for url in servers:
            self._free_servers.put(url)

    def unmutated(self, tests: Selection) -> Run:
        """Run tests on the original tree."""
        return self._run(self._original, tests)

    def test(self, mutant: Mutant, first: Selection | None = None) -> Result:
        """Plant a mutant and run its tests until one fails, those of `first` before the others."""
        took_s = 0.0
        with copied(self._original) as tree:
            mutant.plant(tree)
            for tests in (first, Selection(mutant.tests)):
                if tests is None:
                    continue
                run = self._run(tree, tests)
                took_s += run.took_s
                result = Result(mutant, *_status(run), took_s=took_s)
                if result.status is Status.KILLED or self._stop.is_set():
                    break
        return result

    def _run(self, tree: Path, tests: Selection) -> Run:
        began = self._clock.now()
        server = self._free_servers.get()
        try:
            with TemporaryDirectory(prefix="omega-kill-report-") as folder:
                report = Path(folder) / "failures"
                limit_s = self._limit_s * len(tests.paths)
                exit_code, output = self._watched(tree, server, _command(report, tests), limit_s)
                failure = first_failure(report)
        finally:
            self._free_servers.put(server)
        return Run(exit_code, failure, output, self._clock.now() - began)

    def _watched(
        self, tree: Path, server: str, command: Sequence[str], limit_s: float
    ) -> tuple[int | None, str]:
        """Run a command in a tree until it ends, its time is up, or the command is stopped."""
        until = self._clock.now() + limit_s
        with subprocess.Popen(
            command,
            cwd=tree,
            # The path comes before the installed packages, among which is the tree that we copied.
            env={**os.environ, GIVEN: server, "PYTHONPATH": str(tree)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            while not self._stop.is_set() and self._clock.now() < until:
                try:
                    output, _ = process.communicate(timeout=CYCLE_S)
                except subprocess.TimeoutExpired:
                    continue
                return process.returncode, output
            return None, _stopped(process)


def _command(report: Path, tests: Selection) -> list[str]:
    plugins = ("no:randomly", "no:cacheprovider", "tests.mutants.kill_report")
    return [
        *(sys.executable, "-m", "pytest", "--exitfirst", "--quiet"),
        *(word for plugin in plugins for word in ("-p", plugin)),
        *("--kill-report", str(report), "--hypothesis-profile", MUTANTS_PROFILE),
        *(("-k", " or ".join(tests.names)) if tests.names else ()),
        *tests.paths,
    ]


def _stopped(process: subprocess.Popen[str]) -> str:
    """Stop tests, as a user would, and then whatever is left of them; return their output."""
    process.send_signal(signal.SIGINT)
    try:
        output, _ = process.communicate(timeout=GRACE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
    return output


def _status(run: Run) -> tuple[Status, str, str]:
    """Return a mutant's status, the test that decided it, and its message."""
    last_words = "\n".join(run.output.splitlines()[-5:])
    match run:
        case Run(exit_code=None):
            return Status.TIMED_OUT, "", last_words
        case Run(exit_code=pytest.ExitCode.OK):
            return Status.SURVIVED, "", ""
        case Run(pytest.ExitCode.TESTS_FAILED, Failure(when="call" | "teardown") as failure):
            return Status.KILLED, failure.test, failure.message
        case Run(failure=Failure() as failure):
            return Status.INVALID, failure.test, failure.message
    return Status.INVALID, "", last_words


@contextmanager
def copied(root: Path) -> Iterator[Path]:
    """Yield a copy of what tests need; compiled files go with it, as old as their sources."""
    with TemporaryDirectory(prefix="omega-mutant-") as folder:
        for name in COPIED:
            source, to = root / name, Path(folder) / name
            if source.is_dir():
                shutil.copytree(source, to)
            elif source.exists():
                shutil.copy2(source, to)
        yield Path(folder)
