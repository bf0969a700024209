"""What a new agent finds of one that was killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from omega.clock import RealClock
from omega.model.exits import Exit, ExitCause
from omega.nodes.agent import process_driver, process_task, shells
from omega.nodes.agent.process_driver import ProcessDriver
from omega.nodes.agent.shell_script import SCRIPT
from omega.nodes.agent.task_driver import Stream, TaskKey
from tests.agent.agent_processes import a_launch
from tests.agent.waiting import ended, runs, until

ROOT = Path(__file__).parents[2]
KEY = TaskKey(1, 0, 1_000)


def _start_and_die(folder: Path, *lines: str, before_death: Callable[[], object]) -> None:
    """Have another process start tasks, and kill it as the kernel would."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.agent.agent_processes", str(folder), *lines],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as agent:
        assert agent.stdout is not None
        assert agent.stdout.readline() == b"started\n"
        until(before_death)
        agent.send_signal(signal.SIGKILL)
        assert agent.wait() == -signal.SIGKILL


def test_tasks_outlive_the_agent_that_started_them(tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    lines = ("exit 7", f"echo up; read word <{go}; echo $word; exit 4", "sleep 1000")
    exit_file = tmp_path / "tasks/1-0-1000/run-1/exit"
    up = tmp_path / "tasks/2-0-1000/stdout"
    begun = tmp_path / "tasks/3-0-1000/run-1/shell"
    _start_and_die(
        tmp_path / "tasks",
        *lines,
        before_death=lambda: _is_written(exit_file) and _is_written(up) and _is_written(begun),
    )

    driver = ProcessDriver(tmp_path / "tasks", RealClock())
    keys = [TaskKey(number, 0, 1_000) for number in (1, 2, 3)]
    assert set(keys) == set(driver.look())
    assert Exit(cause=ExitCause.EXITED, code=7) == ended(driver, keys[0])
    assert driver.look()[keys[1]] is None
    assert driver.look()[keys[2]] is None

    go.write_text("on\n")
    assert Exit(cause=ExitCause.EXITED, code=4) == ended(driver, keys[1])
    assert driver.output(keys[1], Stream.STDOUT, 100) == (6, b"up\non\n")
    driver.signal(keys[2], "TERM")
    assert Exit(cause=ExitCause.SIGNALLED, signal=15) == ended(driver, keys[2])

    again = ProcessDriver(tmp_path / "tasks", RealClock())
    assert driver.look() == {key: ended(again, key) for key in keys}
    for key in keys:
        again.forget(key)
    assert not again.look()
    assert not ProcessDriver(tmp_path / "tasks", RealClock()).look()
    assert again.output(keys[1], Stream.STDOUT, 100) == (6, b"up\non\n")


def test_a_pid_that_is_used_again_is_not_the_task(tmp_path: Path) -> None:
    _start_and_die(tmp_path, "exec sleep 1000", before_death=lambda: _is_written(_shell(tmp_path)))
    pid, ticks, boot = _shell(tmp_path).read_text().split()
    os.kill(int(pid), signal.SIGKILL)
    until(lambda: not runs(int(pid)))
    stranger = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    try:
        theirs = shells.shell_of(stranger.pid)
        for forged in (ticks, str(theirs.ticks)):
            _shell(tmp_path).write_text(f"{stranger.pid} {forged} {boot}\n")
            driver = ProcessDriver(tmp_path, RealClock())
            driver.signal(KEY, "KILL")
            end = ended(driver, KEY)

            assert (ExitCause.SIGNALLED, 9) == (end.cause, end.signal)
            assert stranger.poll() is None
            (tmp_path / str(KEY) / "end").unlink()
    finally:
        stranger.kill()
        stranger.wait()


def test_after_another_boot_a_task_is_lost_unless_it_wrote_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    until_up = tmp_path / "2-0-1000/run-1/exit"
    _start_and_die(
        tmp_path,
        "exec sleep 1000",
        "exit 3",
        before_death=lambda: _is_written(_shell(tmp_path)) and _is_written(until_up),
    )
    for module in (process_driver, process_task, shells):
        monkeypatch.setattr(module, "boot_id", lambda: "another")
    driver = ProcessDriver(tmp_path, RealClock())

    assert ended(driver, KEY).cause is ExitCause.LOST
    assert Exit(cause=ExitCause.EXITED, code=3) == ended(driver, TaskKey(2, 0, 1_000))


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        ("echo up; exec sleep 1000", "143 TERM"),
        ("trap 'exit 0' TERM; echo up; while :; do sleep 0.01; done", "0 TERM"),
    ],
)
def test_what_the_shutdown_of_the_machine_ended_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, seen: str
) -> None:
    """It sends SIGTERM to all processes, and the shell lives long enough to write what it saw."""
    up = tmp_path / str(KEY) / "stdout"

    def shut_down() -> bool:
        os.killpg(int(_shell(tmp_path).read_text().split()[0]), signal.SIGTERM)
        return True

    _start_and_die(tmp_path, line, before_death=lambda: _is_written(up) and shut_down())
    until(lambda: _is_written(_shell(tmp_path).with_name("exit")))
    assert f"{seen}\n" == _shell(tmp_path).with_name("exit").read_text()
    same = ended(ProcessDriver(tmp_path, RealClock()), KEY)
    assert same.cause is not ExitCause.LOST, "the machine was not restarted yet"

    (tmp_path / str(KEY) / "end").unlink()
    for module in (process_driver, process_task, shells):
        monkeypatch.setattr(module, "boot_id", lambda: "another")
    end = ended(ProcessDriver(tmp_path, RealClock()), KEY)
    assert (ExitCause.LOST, "the machine was restarted") == (end.cause, end.detail)


def test_a_shell_that_was_not_begun_when_the_agent_was_killed_never_begins(tmp_path: Path) -> None:
    driver = ProcessDriver(tmp_path, RealClock())
    driver.start(a_launch("exit 0"))
    ended(driver, KEY)
    for name in ("run-1/shell", "run-1/exit", "end"):
        (tmp_path / str(KEY) / name).unlink()
    after = ProcessDriver(tmp_path, RealClock())

    assert ended(after, KEY).cause is ExitCause.LOST
    late = subprocess.run(
        ["/bin/sh", "-c", SCRIPT, "x", _shell(tmp_path).parent, "/bin/echo"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert (125, b"", b"") == (late.returncode, late.stdout, late.stderr)


def _shell(folder: Path) -> Path:
    return folder / str(KEY) / "run-1" / "shell"


def _is_written(path: Path) -> bool:
    return path.exists() and path.read_bytes().endswith(b"\n")
