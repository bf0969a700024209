"""One mutant on trial: planted in a copy of the project, whose tests run until the first fails."""

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
from tests.fixtures.servers import GIVEN
from tests.mutants.mutant import Mutant
from tests.mutants.witness import Failure, first_failure

COPIED = ("omega", "schedulers", "migrations", "tests", "pyproject.toml")
"""What the tests of mutants need of the project."""
PROFILE = "mutants"
"""Of hypothesis: the same examples each time, and no search for a smaller one."""
TURN_S = 0.5
"""How often a run of tests is looked after."""
GRACE_S = 20.0
"""How long tests that are told to stop may take to clean up."""


class Disposition(StrEnum):
    """What became of a mutant."""

    CAUGHT = "caught"
    """A test failed."""
    SURVIVED = "survived"
    """All passed."""
    HUNG = "hung"
    """No test failed in time: to hang is no message."""
    STILLBORN = "stillborn"
    """No test got to judge it: it could not be imported, installed or set up."""


@dataclass(frozen=True)
class Trial:
    """How it went."""

    mutant: Mutant
    fate: Disposition
    by: str = ""
    """The test that caught it, or that could not begin."""
    said: str = ""
    """What that said, or the last words of a run that said nothing else."""
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


class Court:
    """Tries mutants, each in a copy of its own; as many at a time as there are servers."""

    def __init__(
        self,
        sound: Path,
        clock: Clock,
        servers: Iterable[str],
        *,
        stop: threading.Event,
        limit_s: float,
    ) -> None:
        self._sound = sound
        self._clock = clock
        self._stop = stop
        self._limit_s = limit_s
        self._free_servers: SimpleQueue[str] = SimpleQueue()
        for url in servers:
            self._free_servers.put(url)

    def unmutated(self, tests: Sequence[str]) -> Run:
        """Run tests on the sound tree."""
        return self._run(self._sound, tests)

    def trial(self, mutant: Mutant) -> Trial:
        """Plant a mutant and see whether a test notices."""
        with copied(self._sound) as tree:
            mutant.plant(tree)
            run = self._run(tree, mutant.tests)
        return Trial(mutant, *_judged(run), took_s=run.took_s)

    def _run(self, tree: Path, tests: Sequence[str]) -> Run:
        began = self._clock.now()
        server = self._free_servers.get()
        try:
            with TemporaryDirectory(prefix="omega-witness-") as folder:
                witness = Path(folder) / "failures"
                exit_code, output = self._watched(tree, server, _command(witness, tests))
                failure = first_failure(witness)
        finally:
            self._free_servers.put(server)
        return Run(exit_code, failure, output, self._clock.now() - began)

    def _watched(self, tree: Path, server: str, command: Sequence[str]) -> tuple[int | None, str]:
        """Run a command in a tree until it ends, its time is up, or nobody waits for it."""
        until = self._clock.now() + self._limit_s
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
                    output, _ = process.communicate(timeout=TURN_S)
                except subprocess.TimeoutExpired:
                    continue
                return process.returncode, output
            return None, _stopped(process)


def _command(witness: Path, tests: Sequence[str]) -> list[str]:
    plugins = ("no:randomly", "no:cacheprovider", "tests.mutants.witness")
    return [
        *(sys.executable, "-m", "pytest", "--exitfirst", "--quiet"),
        *(word for plugin in plugins for word in ("-p", plugin)),
        *("--witness", str(witness), "--hypothesis-profile", PROFILE),
        *tests,
    ]


def _stopped(process: subprocess.Popen[str]) -> str:
    """Stop tests, as a user would, and then whatever is left of them; return what they said."""
    process.send_signal(signal.SIGINT)
    try:
        output, _ = process.communicate(timeout=GRACE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
    return output


def _judged(run: Run) -> tuple[Disposition, str, str]:
    """Return a mutant's fate, the test that decided it, and what that said."""
    last_words = "\n".join(run.output.splitlines()[-5:])
    match run:
        case Run(exit_code=None):
            return Disposition.HUNG, "", last_words
        case Run(exit_code=pytest.ExitCode.OK):
            return Disposition.SURVIVED, "", ""
        case Run(pytest.ExitCode.TESTS_FAILED, Failure(when="call" | "teardown") as failure):
            return Disposition.CAUGHT, failure.test, failure.said
        case Run(failure=Failure() as failure):
            return Disposition.STILLBORN, failure.test, failure.said
    return Disposition.STILLBORN, "", last_words


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
