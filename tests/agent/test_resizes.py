"""A machine that shrinks and grows again under a training, and one that grows beyond its agent."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from omega.lifecycle.states import State
from omega.model.arrays import integers
from tests.agent.conftest import CellAtWork
from tests.fixtures.command_line import Omega

pytestmark = pytest.mark.postgres

WANTED = 60
TRAINING = Path(__file__).with_name("training.py")
JOB = """\
name: training
scheduler: batch
minimum: all
work: {{kind: tiny, steps: {wanted}}}
groups:
  - cpu: 2
    working_dir: {folder}
    env: {{GATE: gate}}
    stop: {{grace: 60s}}
    command: [{python}, {training}]
"""
MEETS = """
touch {folder}/$OMEGA_TASK
while [ ! -e {folder}/0 ] || [ ! -e {folder}/1 ]; do sleep 0.05; done
"""
"""A program that ends once both of its tasks have run at a time."""

Size = Callable[[int], None]
"""Makes the machine one of so many cores."""


def by_resize(at_work: CellAtWork, omega: Omega) -> Size:
    """Return what an operator types."""

    def size(cores: int) -> None:
        assert 0 == omega("cell", "resize", "m1", "--cpu", cores, "--notice", "1s").code

    return size


def by_agent(at_work: CellAtWork, omega: Omega) -> Size:
    """Return what ends the agent, and starts one that offers another size; tasks go on."""

    def size(cores: int) -> None:
        at_work.kill_agent()
        at_work.start_agent(f"--cpu={cores}")

    return size


@pytest.mark.parametrize("change", [by_resize, by_agent])
def test_a_training_goes_on_when_its_machine_has_shrunk_and_grown(
    at_work: CellAtWork,
    omega: Omega,
    tmp_path: Path,
    change: Callable[[CellAtWork, Omega], Size],
) -> None:
    """Half of the steps are made before the machine shrinks, the rest after it has grown."""
    size = change(at_work, omega)
    job_file = tmp_path / "training.yaml"
    job_file.write_text(
        JOB.format(wanted=WANTED, folder=tmp_path, python=sys.executable, training=TRAINING)
    )
    assert 0 == omega("submit", job_file).code
    (job,) = at_work.store.jobs()
    half = WANTED // 2
    at_work.started.wait_for(lambda: steps_on_record(at_work, job.id) == half)

    size(1)
    at_work.started.wait_for(lambda: not at_work.processes())
    assert f"{half}" == (tmp_path / "checkpoint").read_text(), "SIGTERM came, and time to save"
    assert State.PARKED is wait_for_state(at_work, job.id, State.PARKED)
    assert [] == list(at_work.store.exits(job.id)), "an eviction is no end"
    size(2)
    starts = tmp_path / "starts"
    at_work.started.wait_for(lambda: 2 == len(starts.read_text().splitlines()))
    (tmp_path / "gate").touch()
    at_work.wait_until_over(job.id)

    assert ["m1 0 0", f"m1 {half} {half}"] == starts.read_text().splitlines()
    status = at_work.store.job(job.id)
    assert status is not None
    assert State.SUCCEEDED is status.state
    assert WANTED == steps_on_record(at_work, job.id)
    (ended,) = at_work.store.exits(job.id)
    assert ended.exit.is_success


def test_tasks_start_on_a_machine_that_has_grown_beyond_what_its_agent_offered(
    at_work: CellAtWork, omega: Omega, tmp_path: Path
) -> None:
    assert 0 == omega("cell", "resize", "m1", "--cpu", 4).code
    line = MEETS.format(folder=tmp_path)
    ran = omega("run", "--tasks=2", "--cpu=2", "--timeout=60s", "--", "sh", "-c", line)

    assert 0 == ran.code, ran.err


def steps_on_record(at_work: CellAtWork, job: int) -> int:
    (done,) = at_work.store.progress(integers([job])).done.tolist()
    return int(done)


def wait_for_state(at_work: CellAtWork, job: int, wanted: State) -> State:
    """Wait until a job is in a state; return it."""

    def state() -> State:
        status = at_work.store.job(job)
        assert status is not None
        return status.state

    at_work.started.wait_for(lambda: state() is wanted)
    return state()
