"""What a task leaves is found without reading every process of the machine after each end."""

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from omega.clock import ManualClock
from omega.nodes.agent import process_table, shells
from omega.nodes.agent.linux_processes import LinuxProcess, process_of
from omega.nodes.agent.process_driver import WATCH_S, ProcessDriver
from omega.nodes.agent.process_start import MARKER
from omega.nodes.agent.task_driver import Stream, TaskKey
from omega.nodes.agent.task_folder import Shell
from omega.nodes.agent.trees import Root, Trees
from tests.agent.agent_processes import a_launch
from tests.agent.waiting import runs, until

LONG, SHORT = TaskKey(1, 0, 1_000), TaskKey(2, 0, 1_000)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def driver(tmp_path: Path, clock: ManualClock) -> Iterator[ProcessDriver]:
    """Yield a driver; kill what it left running."""
    driver = ProcessDriver(tmp_path / "tasks", clock)
    yield driver
    for key in driver.look():
        driver.signal(key, "KILL")
        wait_for_end(driver, clock, key)


def wait_for_end(driver: ProcessDriver, clock: ManualClock, key: TaskKey) -> None:
    def has_ended() -> bool:
        clock.advance(0.001)
        return driver.look()[key] is not None

    until(has_ended)


def test_the_end_of_a_task_does_not_read_who_was_there_before_it(
    driver: ProcessDriver, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []

    def note(pid: int) -> LinuxProcess | None:
        read.append(pid)
        return process_of(pid)

    monkeypatch.setattr(process_table, "process_of", note)
    with a_sleep(None) as stranger:
        until(lambda: Path(f"/proc/{stranger.pid}/environ").read_bytes())
        driver.start(a_launch("exit 0", LONG.job))
        wait_for_end(driver, clock, LONG)
        assert stranger.pid in read
        read.clear()
        driver.start(a_launch("sleep 1000 & exit 0", SHORT.job))
        wait_for_end(driver, clock, SHORT)

    assert read
    assert stranger.pid not in read


def test_who_was_seen_once_stays_a_tasks_while_others_end(
    driver: ProcessDriver, clock: ManualClock, tmp_path: Path
) -> None:
    """It drops its environment, its session and its parent, and is passed over at another end."""
    go, over = tmp_path / "go", tmp_path / "over"
    wait = "while ! test -e {}; do sleep 0.01; done"
    escape = f"(env -i setsid sh -c 'echo $$; exec sleep 1000' & {wait.format(go)})"
    driver.start(a_launch(f"{escape}; {wait.format(over)}", LONG.job))
    until(lambda: driver.output(LONG, Stream.STDOUT, 10)[0])
    pid = int(driver.output(LONG, Stream.STDOUT, 10)[1])
    until(lambda: (it := process_of(pid)) is not None and it.session == pid)
    clock.advance(WATCH_S)
    driver.look()  # sees it below the command
    go.touch()
    until(lambda: (it := process_of(pid)) is not None and it.parent == 1)

    driver.start(a_launch("exit 0", SHORT.job))
    wait_for_end(driver, clock, SHORT)
    assert runs(pid)
    over.touch()
    wait_for_end(driver, clock, LONG)
    assert not runs(pid)


def test_what_an_earlier_start_of_a_task_left_is_its_own(tmp_path: Path) -> None:
    """It began before the shell of this start, and was seen."""
    trees = Trees()
    with a_sleep({**os.environ, MARKER: str(tmp_path)}) as left:
        until(lambda: [left.pid] == pids(trees, Root(tmp_path, None)))
        until(lambda: ticks_now() > left.ticks)
        with a_sleep(None) as again:
            assert [left.pid] == pids(trees, Root(tmp_path, again))


@contextmanager
def a_sleep(env: Mapping[str, str] | None) -> Iterator[Shell]:
    """Run a process for the block, in a session of its own; yield it as a shell."""
    with subprocess.Popen(["sleep", "1000"], env=env, start_new_session=True) as process:
        try:
            yield shells.shell_of(process.pid)
        finally:
            process.kill()


def pids(trees: Trees, root: Root) -> list[int]:
    return [process.pid for process in trees.find([root])[root]]


def ticks_now() -> int:
    """Return the tick at which a process begins now."""
    with a_sleep(None) as process:
        return process.ticks
