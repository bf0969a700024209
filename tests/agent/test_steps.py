"""A training of real processes: it reports its steps, is moved, and goes on from its checkpoint."""

import sys
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
  - cpu: 1
    working_dir: {folder}
    env: {{GATE: gate}}
    command: [{python}, {training}]
"""


def test_a_training_is_moved_and_resumes(at_work: CellAtWork, omega: Omega, tmp_path: Path) -> None:
    """Half of the steps are made on the first machine, and the gate lets it make the rest."""
    job_file = tmp_path / "training.yaml"
    job_file.write_text(
        JOB.format(wanted=WANTED, folder=tmp_path, python=sys.executable, training=TRAINING)
    )
    assert 0 == omega("submit", job_file).code
    (job,) = at_work.store.jobs()

    def steps_on_record() -> int:
        (done,) = at_work.store.progress(integers([job.id])).done.tolist()
        return int(done)

    at_work.started.wait_for(lambda: steps_on_record() == WANTED // 2)
    at_work.start_agent(name="m2")
    assert 0 == omega("cell", "down", "m1").code
    at_work.started.wait_for(lambda: len((tmp_path / "starts").read_text().splitlines()) == 2)
    (tmp_path / "gate").touch()
    at_work.wait_until_over(job.id)

    half = WANTED // 2
    starts = (tmp_path / "starts").read_text().splitlines()
    assert "m1 0 0" == starts[0]
    machine, checkpoint, on_record = starts[1].split()
    assert ("m2", half) == (machine, int(on_record))
    assert int(checkpoint) in (0, half), "the first copy may still be at its checkpoint"
    status = at_work.store.job(job.id)
    assert status is not None
    assert (State.SUCCEEDED, WANTED) == (status.state, steps_on_record())
    (run_ms,) = at_work.store.progress(integers([job.id])).run_ms.tolist()
    assert run_ms > 0
