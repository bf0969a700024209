"""Commands that run in a cell: real processes, from `omega run` to the program and back."""

import gc
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from omega.config import TASK_VARIABLES
from omega.lifecycle.states import State
from omega.model.exits import ExitCause
from tests.agent.agent_processes import note_container
from tests.agent.conftest import CellAtWork
from tests.fixtures.command_line import Omega
from tests.fixtures.sessions import OpenStore

pytestmark = pytest.mark.postgres

OF_STEPS = {"OMEGA_STEPS", "OMEGA_STEPS_DONE", "OMEGA_STEP_FILE"}
"""Variables of jobs in steps alone."""
HUNGRY = "import time; held = b'x' * 300_000_000; time.sleep(60)"
"""A program that uses memory, and does not only ask for it."""


def test_a_command_runs_elsewhere_as_if_it_ran_here(shared: CellAtWork) -> None:
    ran = shared.run("--", "sh", "-c", "echo out; echo err >&2; exit 3")

    assert (3, "out\n", "err\n") == (ran.returncode, ran.stdout, ran.stderr)


def test_a_plan_is_run_as_it_is_or_not_at_all(
    shared: CellAtWork, omega: Omega, tmp_path: Path
) -> None:
    spec, plan = tmp_path / "job.yaml", tmp_path / "plan.json"
    group = "{tasks: 1, cpu: 1, run: 'echo $OMEGA_MACHINE; exit 4'}"
    spec.write_text(f"{{name: planned, scheduler: batch, groups: [{group}]}}")
    assert 0 == omega("plan", spec, "--json", plan).code

    ran = shared.run("--plan", str(plan))
    again = omega("run", "--plan", plan)

    assert (4, "m1\n") == (ran.returncode, ran.stdout), ran.stderr
    assert 1 == again.code
    assert "nothing was submitted" in again.err
    for words in (["--plan", plan, "true"], ["--plan", plan, "--cpu", 2], []):
        assert 2 == omega("run", *words).code


def test_each_task_knows_which_it_is(shared: CellAtWork, omega: Omega) -> None:
    ran = omega("run", "--tasks=20", "--cpu=100m", "--", "sh", "-c", "echo $OMEGA_TASK")

    assert 0 == ran.code, ran.err
    assert list(range(20)) == sorted(map(int, ran.out.split()))


def test_the_environment_is_the_jobs_and_not_the_agents(shared: CellAtWork, omega: Omega) -> None:
    ran = omega("run", "--gang", "--env=GREETING=hi there", "--", "env")

    said = dict(line.split("=", 1) for line in ran.out.splitlines())
    assert "hi there" == said["GREETING"]
    ours = {name for name in said if name.startswith("OMEGA_")}
    assert TASK_VARIABLES - OF_STEPS == ours


def test_a_job_of_which_nobody_reads_the_output_is_cancelled(shared: CellAtWork) -> None:
    command = shared.command("run", "--", "sh", "-c", "while sleep 0.1; do echo y; done")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert b"y\n" == running.stdout.readline()
        running.stdout.close()  # as `| head -1` does

        assert (b"", 128 + signal.SIGPIPE) == (running.stderr.read(), running.wait())

    assert State.CANCELLED is shared.store.jobs()[0].state


@pytest.mark.parametrize(
    ("words", "code", "cause", "sentence"),
    [
        (("no-such-program",), 127, ExitCause.NOT_STARTED, "no-such-program"),
        (("--timeout=200ms", "--", "sleep", "60"), 124, ExitCause.TIMEOUT, "longer than it may"),
        (("--", "sh", "-c", "kill -9 $$"), 137, ExitCause.SIGNALLED, "SIGKILL"),
        (
            ("--memory=32MiB", "--", sys.executable, "-c", HUNGRY),
            137,
            ExitCause.OUT_OF_MEMORY,
            "more memory than it asked for",
        ),
    ],
)
def test_a_command_that_fails_says_how(
    shared: CellAtWork,
    omega: Omega,
    words: tuple[str, ...],
    code: int,
    cause: ExitCause,
    sentence: str,
) -> None:
    ran = omega("run", *words)

    assert code == ran.code, ran.err
    assert sentence in ran.err
    (ended,) = shared.store.exits(shared.store.jobs()[0].id)
    assert cause is ended.exit.cause


def test_ctrl_c_cancels_the_job_and_ends_its_processes(shared: CellAtWork, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    trap = f"trap 'echo stopped >> {marks}; exit' TERM"
    line = f"{trap}; echo ready > {marks}; while :; do sleep 0.1; done"
    command = [sys.executable, "-m", "omega.cli", "run", "--", "sh", "-c", line]
    waiting = subprocess.Popen(command)
    shared.wait_for_file(marks)
    waiting.send_signal(signal.SIGINT)

    assert 130 == waiting.wait()
    shared.started.wait_for(lambda: not shared.processes())
    assert ["ready", "stopped"] == marks.read_text().split()
    assert State.CANCELLED is shared.store.jobs()[0].state


def test_outputs_stream_while_the_program_runs(shared: CellAtWork, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    line = f"echo first; while [ ! -e {gate} ]; do sleep 0.05; done; echo second"
    command = [sys.executable, "-m", "omega.cli", "run", "--", "sh", "-c", line]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as waiting:
        assert waiting.stdout is not None
        assert "first\n" == waiting.stdout.readline()
        gate.touch()
        assert "second\n" == waiting.stdout.read()
    assert 0 == waiting.returncode


def test_logs_and_exits_stay_after_the_end(shared: CellAtWork, omega: Omega) -> None:
    ran = omega(
        "run", "--name=talks", "--tasks=2", "--cpu=1", "--", "sh", "-c", "echo $OMEGA_TASK; exit 4"
    )
    assert 4 == ran.code

    assert {"0", "1"} == set(omega("logs", "talks").out.split())
    assert "1\n" == omega("logs", "talks", "--task", 1).out
    shown = omega("job", "talks").out
    assert "exited with code 4" in shown
    assert 1 == omega("logs", "nobody").code
    assert 1 == omega("logs", "talks", "--task", 2).code


def test_escapes_of_programs_do_not_reach_a_terminal(shared: CellAtWork, omega: Omega) -> None:
    """What `omega logs` writes to a pipe is what the program wrote; a terminal gets it escaped."""
    omega("run", "--name=rude", "--", "printf", r"\033[2Jgone\n")
    script = (
        "import pty, sys; sys.exit(pty.spawn([sys.executable, '-m', 'omega.cli', 'logs', 'rude']))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, check=False, stdin=subprocess.DEVNULL
    )

    assert b"\x1b[2J" not in ran.stdout
    assert rb"\x1b[2Jgone" in ran.stdout


def test_tasks_outlive_their_agent_and_their_ends_are_reported_once(
    at_work: CellAtWork, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    begun = tmp_path / "begun"
    line = f"echo $$ >> {begun}; while [ ! -e {gate} ]; do sleep 0.05; done; exit 5"
    job = at_work.submitted("--", "sh", "-c", line)
    at_work.wait_for_file(begun)
    at_work.kill_agent()
    gate.touch()
    at_work.started.wait_for(lambda: not at_work.processes())
    assert State.RUNNING is at_work.store.jobs()[0].state, "nobody can have reported it"
    at_work.start_agent()
    at_work.wait_until_over(job)

    (ended,) = at_work.store.exits(job)
    assert 5 == ended.exit.code
    assert 1 == len(begun.read_text().split()), "it was started once"


def test_a_second_agent_of_the_same_folder_is_refused(shared: CellAtWork, omega: Omega) -> None:
    folder = shared.folder / "m1"
    ran = omega("node", "run", "--allow-root", "--name=m1", f"--state-dir={folder}")

    assert 2 == ran.code
    assert "another agent" in ran.err


def test_an_agent_that_is_told_to_ends_its_tasks_which_run_again_later(
    without_agents: CellAtWork, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    gate = tmp_path / "gate"
    agent = without_agents.start_agent("--end-tasks")
    line = f"echo $$ >> {begun}; while [ ! -e {gate} ]; do sleep 0.05; done"
    job = without_agents.submitted("--", "sh", "-c", line)
    without_agents.wait_for_file(begun)
    without_agents.agents.remove(agent)
    without_agents.started.processes.remove(agent)
    agent.send_signal(signal.SIGTERM)
    assert 0 == agent.wait()
    assert [] == without_agents.processes()
    status = without_agents.store.job(job)
    assert status is not None
    assert status.state in (State.PENDING, State.PLANNING, State.PARKED)

    gate.touch()
    without_agents.start_agent()
    without_agents.wait_until_over(job)
    assert State.SUCCEEDED is without_agents.store.jobs()[0].state
    assert 2 == len(begun.read_text().split())


def test_root_must_be_allowed(omega: Omega, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    for words in (("node", "run"), ("up",)):
        ran = omega(*words)
        assert 2 == ran.code
        assert "--allow-root" in ran.err


AWAY = (
    "the container engine at 'unix:///no-such' does not answer: No such file or directory;"
    " containers of tasks may run there: start the engine, or give them up with --containers none"
)


@pytest.mark.parametrize(
    ("containers", "sentence"),
    [
        ("auto", AWAY),
        ("unix:///no-such", AWAY),
        (
            "unix:///other",
            "it is 'unix:///other', and containers of tasks may run in the engine"
            " 'unix:///no-such': say auto to take them up, or none to give them up",
        ),
    ],
)
def test_an_agent_whose_containers_may_run_in_an_engine_that_it_cannot_ask_does_not_start(
    omega: Omega,
    database_url: str,
    open_store: OpenStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    containers: str,
    sentence: str,
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)
    note_container(tmp_path, "unix:///no-such")

    ran = omega(
        *("node", "run", "--allow-root", f"--state-dir={tmp_path}", f"--containers={containers}")
    )

    assert 2 == ran.code
    assert sentence in " ".join(ran.err.split())
    with closing(open_store(database_url)) as store:
        assert not store.use().machines_by_state


NO_ENGINES = {
    "unix:///no-such": "No such file or directory",
    # The SDK takes these for paths, too, and would leave the socket open: a ResourceWarning.
    "UNIX:///no-such": "No such file or directory",
    "http+unix://no-such": "No such file or directory",
    "unix:no-such": "No such file or directory",
    f"unix:///{'x' * 200}": "path too long",
    "\x1b[2J": "",
}


@pytest.mark.parametrize(("address", "reason"), NO_ENGINES.items())
def test_an_engine_that_is_away_is_refused_before_the_machine_is_in_the_cell(
    omega: Omega,
    database_url: str,
    open_store: OpenStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    address: str,
    reason: str,
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)
    options = ("--allow-root", f"--state-dir={tmp_path}", f"--containers={address}")

    ran = omega("node", "run", *options)

    assert 2 == ran.code
    assert "does not answer" in ran.err
    assert reason in " ".join(ran.err.split())
    gc.collect()
    with closing(open_store(database_url)) as store:
        assert not store.use().machines_by_state
