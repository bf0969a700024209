"""A cell with one scheduler and one agent, each a process, on the tests' server; and cgroups."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from omega.clock import RealClock
from omega.lifecycle.states import FINAL
from omega.nodes.agent.cgroups import Cgroups, find_cgroups, hierarchy_of_this_process
from omega.nodes.agent.process_driver import ProcessDriver
from omega.nodes.agent.process_start import MARKER
from omega.nodes.agent.task_cgroup import group_name
from omega.store.postgres.store import PostgresStore
from tests.agent.in_cgroups import group_of, kill_all
from tests.agent.waiting import until
from tests.fixtures.command_line import Started, running

SOON = {
    "OMEGA_RESCUE_INTERVAL_MS": "100",
    "OMEGA_POLL_INTERVAL_MS": "20",
    "OMEGA_BACKOFF_MAX_MS": "200",
}
"""Settings by which whatever is due is done soon."""


@dataclass
class CellAtWork:
    """A scheduler, an agent with two cores, and what users do."""

    store: PostgresStore
    started: Started
    folder: Path
    agents: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start_agent(self, *options: str, name: str = "m1") -> subprocess.Popen[bytes]:
        """Start the agent of a machine; wait until its machine is in the cell."""
        folder = self.folder / name
        agent = self.started(
            *("node", "run", "--allow-root", f"--name={name}", f"--state-dir={folder}"),
            *("--cpu=2", "--memory=1GiB", *options),
        )
        self.agents.append(agent)
        self.started.wait_for(lambda: name in self.reporting())
        return agent

    def kill_agent(self) -> None:
        """End the newest agent as kill -9 does."""
        agent = self.agents.pop()
        self.started.processes.remove(agent)
        agent.kill()
        agent.wait()
        self.store.forget("agent", "m1")

    def reporting(self) -> set[str]:
        """Return the machines whose agents report."""
        return {it.replica for it in self.store.reports() if it.kind == "agent"}

    def run(self, *words: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
        """Run `omega run` with these words in a process of its own, to its end."""
        return subprocess.run(
            self.command("run", *words), capture_output=True, text=True, check=False, input=stdin
        )

    def command(self, *words: str) -> list[str]:
        """Return the command that runs `omega` with these words."""
        return [sys.executable, "-m", "omega.cli", *words]

    def submitted(self, *words: str) -> int:
        """Submit a command and return its job."""
        ran = self.run("--detach", *words)
        assert 0 == ran.returncode, ran.stderr
        return self.store.jobs()[0].id

    def wait_until_over(self, job: int) -> None:
        """Wait until a job has ended."""
        self.started.wait_for(lambda: self._is_over(job))

    def wait_for_file(self, path: Path) -> str:
        """Wait until a program has written a line to a file; return the line."""
        self.started.wait_for(lambda: path.exists() and path.read_text().endswith("\n"))
        return path.read_text().strip()

    def _is_over(self, job: int) -> bool:
        status = self.store.job(job)
        assert status is not None
        return status.state in FINAL

    def processes(self) -> list[psutil.Process]:
        """Return the processes of tasks below this test's folder."""
        return self.processes_below(self.folder)

    @staticmethod
    def processes_below(folder: Path) -> list[psutil.Process]:
        """Return the processes of tasks whose folders lie below this one."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARKER, "").startswith(str(folder)):
                    found.append(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
                continue
        return found


def remove_cgroups(tasks: Path) -> None:
    """Remove the cgroups that agents left that were killed, of tasks that have ended."""
    hierarchy = hierarchy_of_this_process()
    if hierarchy is not None:
        group = hierarchy.mount / group_name(tasks.resolve())
        cgroups = Cgroups(group, set())

        def are_gone() -> bool:
            cgroups.end_others(set())
            cgroups.close()
            return not group.exists()

        until(are_gone)


@contextmanager
def cell_in(folder: Path, url: str) -> Iterator[CellAtWork]:
    """Run a scheduler on a database; end it, and agents and tasks, when the block is over."""
    with pytest.MonkeyPatch.context() as patch, running(folder) as started:
        for name, value in {"OMEGA_DATABASE_URL": url, **SOON}.items():
            patch.setenv(name, value)
        store = PostgresStore(url)
        cell = CellAtWork(store, started, folder)
        started("scheduler", "run", "batch")
        yield cell
        for agent in cell.agents:
            agent.kill()
            agent.wait()
        for deadline in folder.glob("*/deadline"):
            deadline.unlink()  # which ends the watchdog
        for process in cell.processes():
            if process.pid != os.getpid():
                process.kill()
        for tasks in folder.glob("*/tasks"):
            remove_cgroups(tasks)
        violations = store.verify()
        store.close()
        assert [] == list(violations)


@pytest.fixture
def without_agents(database_url: str, tmp_path: Path) -> Iterator[CellAtWork]:
    """A cell that has a scheduler, to which a test adds its agents."""
    with cell_in(tmp_path, database_url) as cell:
        yield cell


@pytest.fixture
def at_work(without_agents: CellAtWork) -> CellAtWork:
    """A cell at work; its tasks' processes end with the test."""
    without_agents.start_agent()
    return without_agents


@pytest.fixture(scope="module")
def shared_cell(
    module_database_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[CellAtWork]:
    """The cell of `shared`."""
    with cell_in(tmp_path_factory.mktemp("shared"), module_database_url) as cell:
        cell.start_agent()
        yield cell


@pytest.fixture
def shared(shared_cell: CellAtWork) -> Iterator[CellAtWork]:
    """A cell at work, for all tests of a module that leave its processes alone."""
    yield shared_cell
    shared_cell.started.wait_for(lambda: not shared_cell.processes())
    assert [] == list(shared_cell.store.verify())


@pytest.fixture
def said() -> list[str]:
    """What was warned of."""
    return []


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of tasks."""
    return tmp_path / "tasks"


@pytest.fixture
def cgroups(folder: Path, said: list[str]) -> Iterator[Cgroups]:
    """The cgroups of a folder's tasks, directly below the hierarchy's root."""
    cgroups = find_cgroups(folder, cpu_milli=4_000, warn=said.append)
    assert cgroups is not None
    yield cgroups
    cgroups.close()
    assert not group_of(folder).exists(), "a test has left cgroups"


@pytest.fixture
def driver(folder: Path, cgroups: Cgroups, said: list[str]) -> Iterator[ProcessDriver]:
    """A driver; what it left running is killed."""
    driver = ProcessDriver(folder, RealClock(), cgroups=cgroups, warn=said.append)
    yield driver
    kill_all(driver)
