"""Programs of other users than the agent's; only root may start them."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from omega.clock import RealClock
from omega.model.exits import Exit, ExitCause
from omega.model.programs import Program, shell_line
from omega.nodes.agent.process_driver import ProcessDriver
from omega.nodes.agent.task_driver import Launch, NotStarted, Stream, TaskKey
from tests.agent.waiting import ended

KEY = TaskKey(1, 0, 1_000)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield a folder that others may enter; pytest's own are shut to them."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o711)
        yield Path(name)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may run programs as another user")
def test_a_program_runs_as_a_user_who_is_allowed(folder: Path) -> None:
    driver = ProcessDriver(folder / "tasks", RealClock(), users={"nobody"})
    line = "id -un; id -G; pwd; touch mine && ls; (cat ../launch || echo shut) 2>/dev/null; exit 5"
    driver.start(_launch(line))

    assert Exit(cause=ExitCause.EXITED, code=5) == ended(driver, KEY)
    text = driver.output(KEY, Stream.STDOUT, 1_000)[1].decode().split()
    assert ["nobody", str(folder / "tasks" / str(KEY) / "work"), "mine", "shut"] == [
        text[0],
        *text[-3:],
    ]
    assert "0" not in text[1:-3]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may run programs as another user")
def test_a_folder_that_the_user_cannot_enter_is_refused(folder: Path) -> None:
    driver = ProcessDriver(folder / "tasks", RealClock(), users={"nobody"})
    folder.chmod(0o700)

    with pytest.raises(NotStarted, match="cannot enter"):
        driver.start(_launch("true"))


def test_a_user_who_is_not_allowed_is_refused(folder: Path) -> None:
    driver = ProcessDriver(folder, RealClock())

    with pytest.raises(NotStarted, match="does not run programs as user 'nobody'"):
        driver.start(_launch("true"))


def _launch(line: str) -> Launch:
    program = Program(command=shell_line(line), user="nobody")
    return Launch(key=KEY, program=program, env={}, cpu_milli=0, memory_mib=0)
