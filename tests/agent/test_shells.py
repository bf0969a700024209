"""What becomes of a task whose shell is stopped or killed, by its own program or from outside."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from omega.clock import RealClock
from omega.model.exits import Exit, ExitCause
from omega.nodes.agent.process_driver import ProcessDriver
from omega.nodes.agent.task_driver import Stream, TaskKey
from omega.reports.exits import sentence_of
from tests.agent.agent_processes import a_launch
from tests.agent.conftest import CellAtWork
from tests.agent.waiting import ended, runs, until
from tests.fixtures.command_line import Omega

KEY = TaskKey(1, 0, 1_000)
NAPS = "echo $$; exec sleep 1000"
SO = "so the agent ended what was left of the program"

Follow = Callable[[ProcessDriver], ProcessDriver]
"""Returns the driver that sees the end of what another has started."""


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    return tmp_path / "tasks"


@pytest.fixture
def driver(tasks: Path) -> Iterator[ProcessDriver]:
    """Yield a driver; kill what it left running."""
    driver = ProcessDriver(tasks, RealClock())
    yield driver
    for key in driver.look():
        driver.signal(key, "KILL")
        ended(driver, key)


def the_same(driver: ProcessDriver) -> ProcessDriver:
    return driver


def the_next(driver: ProcessDriver) -> ProcessDriver:
    """Return one as of an agent that was started after another was killed."""
    return ProcessDriver(driver._folder, RealClock())  # noqa: SLF001


BOTH = pytest.mark.parametrize("follow", [the_same, the_next])


def started(driver: ProcessDriver, line: str) -> int:
    """Start a line that first says its pid; return the pid of the shell above it."""
    driver.start(a_launch(line))
    until(lambda: driver.output(KEY, Stream.STDOUT, 10)[0])
    stated = driver._folder / str(KEY) / "run-1/shell"  # noqa: SLF001
    return int(stated.read_text().split()[0])


def program_of(driver: ProcessDriver) -> int:
    return int(driver.output(KEY, Stream.STDOUT, 10)[1])


@BOTH
@pytest.mark.parametrize("end", ["exit 3", "kill -KILL $$"])
def test_a_program_that_stops_its_shell_ends_as_any_other(
    driver: ProcessDriver, follow: Follow, end: str
) -> None:
    started(driver, f"echo $$; kill -STOP $PPID; {end}")
    until(lambda: not runs(program_of(driver)))

    words = "exited with code 3" if end == "exit 3" else "was killed by SIGKILL"
    assert words == sentence_of(ended(follow(driver), KEY))


@BOTH
def test_a_shell_that_is_stopped_from_outside_sees_the_end(
    driver: ProcessDriver, follow: Follow
) -> None:
    shell = started(driver, NAPS)
    os.kill(shell, signal.SIGSTOP)
    os.kill(program_of(driver), signal.SIGTERM)

    assert Exit(cause=ExitCause.SIGNALLED, signal=15) == ended(follow(driver), KEY)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGALRM])
def test_an_exit_says_that_the_shell_was_killed_and_nothing_is_left(
    driver: ProcessDriver, number: signal.Signals
) -> None:
    os.kill(started(driver, f"setsid sleep 1000 & {NAPS}"), number)
    words = sentence_of(ended(driver, KEY))

    shell = f"the shell above the program was killed by {number.name}"
    assert f"was killed by SIGKILL: {shell}, {SO}" == words
    assert [] == CellAtWork.processes_below(driver._folder)  # noqa: SLF001


def test_the_next_agent_says_that_the_shell_is_gone(driver: ProcessDriver) -> None:
    shell = started(driver, NAPS)
    after = the_next(driver)
    os.kill(shell, signal.SIGKILL)
    words = sentence_of(ended(after, KEY))

    gone = "the shell above the program is gone and left no exit code"
    assert f"was killed by SIGKILL: {gone}, {SO}" == words
    assert not runs(program_of(driver))


@pytest.mark.postgres
def test_a_user_is_told_of_a_killed_shell_once(
    shared: CellAtWork, omega: Omega, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    line = f"echo said; echo $PPID >{pids}; exec sleep 1000"
    job = shared.submitted("--name=orphan", "--", "sh", "-c", line)
    os.kill(int(shared.wait_for_file(pids)), signal.SIGKILL)
    shared.wait_until_over(job)

    (end,) = shared.store.exits(job)
    assert (ExitCause.SIGNALLED, 9, 0) == (end.exit.cause, end.exit.signal, end.exit.restarts)
    assert f"the shell above the program was killed by SIGKILL, {SO}" in " ".join(
        omega("job", "orphan").out.split()
    )
    assert "said\n" == omega("logs", "orphan").out
    assert not shared.processes()


@pytest.mark.postgres
def test_a_stopped_shell_holds_up_no_command(shared: CellAtWork, omega: Omega) -> None:
    ran = omega("run", "--timeout=60s", "--", "sh", "-c", "kill -STOP $PPID; exit 3")

    assert 3 == ran.code, ran.err
