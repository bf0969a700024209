"""The process driver, with real processes."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from omega.clock import RealClock
from omega.model.exits import Exit, ExitCause
from omega.model.programs import Program, shell_line
from omega.nodes.agent.process_driver import ProcessDriver
from omega.nodes.agent.task_driver import Launch, NotStarted, Stream, TaskKey
from tests.agent.waiting import ended, until

KEY = TaskKey(1, 0, 1_000)


def a_launch(line: str, key: TaskKey = KEY) -> Launch:
    return Launch(
        key=key, program=Program(command=shell_line(line)), env={}, cpu_milli=0, memory_mib=0
    )


@pytest.fixture
def driver(tmp_path: Path) -> Iterator[ProcessDriver]:
    """Yield a driver; kill what it left running."""
    driver = ProcessDriver(tmp_path / "tasks", RealClock())
    yield driver
    for key in driver.look():
        driver.signal(key, "KILL")
        ended(driver, key)


@pytest.mark.parametrize("code", [0, 1, 3, 126, 127, 128, 193, 255])
def test_a_code_is_reported(driver: ProcessDriver, code: int) -> None:
    driver.start(a_launch(f"exit {code}"))

    assert Exit(cause=ExitCause.EXITED, code=code) == ended(driver, KEY)


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2", "KILL"])
def test_a_signal_that_ends_a_program_is_reported(driver: ProcessDriver, name: str) -> None:
    driver.start(a_launch("echo up; exec sleep 1000"))
    until(lambda: driver.output(KEY, Stream.STDOUT, 10) == (3, b"up\n"))
    driver.signal(KEY, name)

    number = signal.Signals[f"SIG{name}"]
    assert Exit(cause=ExitCause.SIGNALLED, signal=number) == ended(driver, KEY)
    assert driver.output(KEY, Stream.STDERR, 10) == (0, b"")


@pytest.mark.parametrize("name", ["INT", "HUP", "QUIT"])
def test_a_program_gets_signals_that_the_agent_was_started_to_ignore(
    tmp_path: Path, name: str
) -> None:
    number = signal.Signals[f"SIG{name}"]
    before = signal.signal(number, signal.SIG_IGN)
    try:
        driver = ProcessDriver(tmp_path / "tasks", RealClock())
        driver.start(a_launch("echo up; exec sleep 1000"))
        until(lambda: driver.output(KEY, Stream.STDOUT, 10) == (3, b"up\n"))
        driver.signal(KEY, name)

        assert Exit(cause=ExitCause.SIGNALLED, signal=number) == ended(driver, KEY)
        os.kill(os.getpid(), number)
    finally:
        signal.signal(number, before)


def test_what_a_command_left_running_is_killed(driver: ProcessDriver, tmp_path: Path) -> None:
    left = "sleep 1000 & echo $!; setsid sh -c 'echo $$; sleep 1000' &"
    both_run = "while [ $(wc -l <../stdout) -lt 2 ]; do sleep 0.01; done"
    driver.start(a_launch(f"{left}\n{both_run}"))
    ended(driver, KEY)

    pids = driver.output(KEY, Stream.STDOUT, 1_000)[1].split()
    assert len(pids) == 2
    assert not [pid for pid in pids if _runs(int(pid))]


def _runs(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("ascii")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def test_a_command_that_does_not_exist_is_not_started(driver: ProcessDriver) -> None:
    launch = Launch(
        key=KEY, program=Program(command=("no-such",)), env={}, cpu_milli=0, memory_mib=0
    )

    with pytest.raises(NotStarted, match="'no-such' was not found"):
        driver.start(launch)
    assert not driver.look()


def test_a_program_sees_nothing_of_the_agents_environment(
    driver: ProcessDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", "postgresql://secret")
    driver.start(a_launch("env"))
    ended(driver, KEY)

    names = {line.split(b"=")[0] for line in driver.output(KEY, Stream.STDOUT, 10_000)[1].split()}
    assert {b"PATH", b"HOME", b"LANG", b"TMPDIR", b"OMEGA_TASK_FOLDER"} <= names
    assert b"OMEGA_DATABASE_URL" not in names
    assert os.environ["OMEGA_DATABASE_URL"]
