"""The watchdog as a process: it kills what runs here, whatever engine does not answer."""

import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from omega.clock import RealClock
from omega.model.exits import Exit, ExitCause
from omega.model.programs import Program, shell_line
from omega.nodes.agent.container_driver import ContainerDriver
from omega.nodes.agent.container_engine import TIMEOUT_S
from omega.nodes.agent.machine_lease import Deadline
from omega.nodes.agent.process_driver import ProcessDriver
from omega.nodes.agent.task_driver import Launch, Stream
from tests.agent.agent_processes import OF_CONTAINER, a_launch, note_container
from tests.agent.engines import IMAGE, podman_service
from tests.agent.in_cgroups import kill_all
from tests.agent.waiting import ended, until

KILLED = Exit(cause=ExitCause.SIGNALLED, signal=9)
AWAY = "unix:///no-such"


@contextmanager
def watchdog_of(folder: Path, containers: str) -> "Iterator[subprocess.Popen[str]]":
    """Have a watchdog of a folder whose deadline has passed; it ends with the block."""
    folder.mkdir(exist_ok=True)
    Deadline(folder).write(0.0)
    words = ("node", "watch", str(folder), f"--containers={containers}")
    with subprocess.Popen(
        [sys.executable, "-m", "omega.cli", *words], stderr=subprocess.PIPE, text=True
    ) as watchdog:
        yield watchdog
        watchdog.kill()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of an agent that is gone."""
    return tmp_path / "agent"


@pytest.fixture
def processes(folder: Path) -> Iterator[ProcessDriver]:
    """The driver of processes of that agent, which has started one."""
    driver = ProcessDriver(folder / "tasks", RealClock())
    driver.start(a_launch("exec sleep 1000"))
    yield driver
    kill_all(driver)


def test_processes_are_killed_though_the_engine_of_the_option_is_away(
    folder: Path, processes: ProcessDriver
) -> None:
    with watchdog_of(folder, AWAY) as watchdog:
        assert KILLED == ended(processes, a_launch("").key)
        assert 0 == watchdog.wait(TIMEOUT_S)


def test_processes_are_killed_while_an_engine_hangs_and_a_signal_ends_the_watchdog(
    folder: Path, processes: ProcessDriver
) -> None:
    with tempfile.TemporaryDirectory() as short, socket.socket(socket.AF_UNIX) as engine:
        path = f"{short}/engine.sock"
        engine.bind(path)
        engine.listen()
        engine.settimeout(TIMEOUT_S)
        note_container(folder, f"unix://{path}")
        with watchdog_of(folder, f"unix://{path}") as watchdog:
            while True:
                connection, _ = engine.accept()
                with connection:
                    if connection.recv(1):  # a request, which has no answer
                        assert KILLED == ended(processes, a_launch("").key)
                        watchdog.terminate()
                        assert 0 == watchdog.wait(TIMEOUT_S / 2)
                        break


@pytest.mark.slow
def test_containers_are_killed_once_their_engine_answers(folder: Path) -> None:
    with podman_service() as address:
        driver = ContainerDriver(
            folder / "containers", RealClock(), agent=str(folder), engine=address
        )
        with closing(driver):
            program = Program(command=shell_line("echo up; exec sleep 1000"), image=IMAGE)
            launch = Launch(key=OF_CONTAINER, program=program, env={}, cpu_milli=0, memory_mib=0)
            driver.start(launch)
            until(lambda: driver.output(OF_CONTAINER, Stream.STDOUT, 10)[1])
            note_container(folder, address)
            file = Path(address.removeprefix("unix://"))
            aside = file.rename(file.with_name("aside"))
            with watchdog_of(folder, "none") as watchdog:
                assert watchdog.stderr is not None
                assert "does not answer" in watchdog.stderr.readline()
                assert watchdog.poll() is None
                aside.rename(file)
                assert 0 == watchdog.wait(TIMEOUT_S)
                assert "has killed 1 task" in watchdog.stderr.read()
            assert KILLED == ended(driver, OF_CONTAINER)
