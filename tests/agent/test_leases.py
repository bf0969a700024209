"""Agents that are silent for longer than their leases: no task runs twice at a time."""

import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from omega.lifecycle.states import State
from tests.agent.conftest import CellAtWork

pytestmark = pytest.mark.postgres

SHORT = "--lease=6"
"""Seconds; tasks are asked to stop at half of it, and killed at three quarters, so that a process
that gets no processor for a second is not yet late."""
MEETS = """
exec 9> {folder}/$OMEGA_TASK.lock
flock -n 9 || echo $OMEGA_TASK >> {folder}/met
echo $OMEGA_MACHINE >> {folder}/$OMEGA_TASK.began
while [ ! -e {folder}/gate ]; do sleep 0.05; done
"""
"""A program that holds a lock of its task, and writes down if another copy holds it."""


def wait_for_lines(at_work: CellAtWork, path: Path, lines: int) -> list[str]:
    """Wait until programs have written so many lines; return them."""
    at_work.started.wait_for(lambda: path.exists() and len(path.read_text().split()) >= lines)
    return path.read_text().split()


@pytest.fixture
def two(without_agents: CellAtWork) -> CellAtWork:
    """A cell whose agents have short leases, on two machines."""
    without_agents.start_agent(SHORT, name="m1")
    without_agents.start_agent(SHORT, name="m2")
    return without_agents


def submitted(at_work: CellAtWork, folder: Path) -> int:
    return at_work.submitted("--tasks=2", "--cpu=1", "--", "sh", "-c", MEETS.format(folder=folder))


@pytest.mark.parametrize("how", [signal.SIGSTOP, signal.SIGKILL])
def test_tasks_of_a_silent_agent_run_elsewhere_and_never_twice(
    two: CellAtWork, tmp_path: Path, how: signal.Signals
) -> None:
    job = submitted(two, tmp_path)
    (on,) = wait_for_lines(two, tmp_path / "0.began", 1)
    silent = two.agents[0 if on == "m1" else 1]
    silent.send_signal(how)
    if how is signal.SIGKILL:
        two.agents.remove(silent)
        two.started.processes.remove(silent)
        silent.wait()
    first = tmp_path / "0.began"
    two.started.wait_for(lambda: 2 == len(set(first.read_text().split())))
    if how is signal.SIGSTOP:
        silent.send_signal(signal.SIGCONT)
    (tmp_path / "gate").touch()
    two.wait_until_over(job)

    assert not (tmp_path / "met").exists()
    status = two.store.job(job)
    assert status is not None
    assert State.SUCCEEDED is status.state
    two.started.wait_for(lambda: not two.processes())


def test_a_machine_that_was_silent_is_open_again(two: CellAtWork, tmp_path: Path) -> None:
    silent = two.agents[0]
    silent.send_signal(signal.SIGSTOP)
    two.started.wait_for(lambda: 1 == two.store.use().open)
    silent.send_signal(signal.SIGCONT)
    two.started.wait_for(lambda: 2 == two.store.use().open)


def test_a_watchdog_is_started_again_and_ends_when_its_agent_is_gone_and_nothing_runs(
    two: CellAtWork,
) -> None:
    def watchdogs() -> list[psutil.Process]:
        folder = str(two.folder / "m1")
        found = psutil.process_iter(["cmdline"])
        return [it for it in found if {"watch", folder} <= set(it.info["cmdline"] or ())]

    two.started.wait_for(lambda: 1 == len(watchdogs()))
    (first,) = watchdogs()
    first.kill()
    two.started.wait_for(lambda: [first.pid] != [it.pid for it in watchdogs()] != [])
    killed = two.agents.pop(0)
    two.started.processes.remove(killed)
    killed.kill()
    killed.wait()
    two.started.wait_for(lambda: not watchdogs())


def test_an_agent_that_keeps_its_tasks_opens_a_machine_whose_lease_had_run_out(
    two: CellAtWork, tmp_path: Path
) -> None:
    silent = two.agents.pop(0)
    silent.send_signal(signal.SIGSTOP)
    two.started.wait_for(lambda: 1 == two.store.use().open)
    two.started.processes.remove(silent)
    silent.kill()
    silent.wait()

    two.start_agent("--on-silence=keep", name="m1")

    two.started.wait_for(lambda: 2 == two.store.use().open)
    assert [] == two.store.expire_machines()
    job = two.submitted("--tasks=2", "--cpu=2", "--", "sh", "-c", MEETS.format(folder=tmp_path))
    on = [wait_for_lines(two, tmp_path / f"{task}.began", 1) for task in (0, 1)]
    assert [["m1"], ["m2"]] == sorted(on)
    (tmp_path / "gate").touch()
    two.wait_until_over(job)


def test_an_agent_elsewhere_is_refused_while_the_lease_holds(
    two: CellAtWork, tmp_path: Path
) -> None:
    ran = subprocess.run(
        [
            *two.command("node", "run", "--allow-root", "--name=m1"),
            f"--state-dir={tmp_path / 'other'}",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert 1 == ran.returncode
    assert "another agent holds the machine m1" in ran.stderr
