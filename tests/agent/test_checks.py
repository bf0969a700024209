"""Programs that run and do not do their work, from a job's file to its exit."""

from pathlib import Path

import pytest

from omega.lifecycle.states import State
from omega.model.exits import ExitCause
from tests.agent.conftest import CellAtWork
from tests.fixtures.command_line import Omega

pytestmark = pytest.mark.postgres

JOB = """\
name: site
scheduler: batch
groups:
  - cpu: 1
    working_dir: {folder}
    run: |
      echo started >> starts
      [ $OMEGA_RESTARTS = 0 ] || touch healthy
      sleep 1000
    stop: {{grace: 100ms}}
    check: {{run: test -e healthy, interval: 200ms, failures: 2}}
    {more}
"""


def submit(omega: Omega, folder: Path, more: str = "") -> None:
    (folder / "site.yaml").write_text(JOB.format(folder=folder, more=more))
    assert 0 == omega("submit", folder / "site.yaml").code


def test_a_program_that_fails_its_check_is_restarted_until_it_passes(
    at_work: CellAtWork, omega: Omega, tmp_path: Path
) -> None:
    submit(omega, tmp_path, "restart: {attempts: 5, delay: 0}")
    at_work.wait_for_file(tmp_path / "starts")
    at_work.started.wait_for((tmp_path / "healthy").exists)
    (job,) = at_work.store.jobs()

    assert 2 == len((tmp_path / "starts").read_text().splitlines())
    assert 0 == omega("stop", "site").code
    at_work.wait_until_over(job.id)
    at_work.started.wait_for(lambda: not at_work.processes())
    assert [] == at_work.store.exits(job.id)


def test_a_job_says_that_its_program_failed_its_check(
    at_work: CellAtWork, omega: Omega, tmp_path: Path
) -> None:
    submit(omega, tmp_path)
    (job,) = at_work.store.jobs()
    at_work.wait_until_over(job.id)

    status = at_work.store.job(job.id)
    assert status is not None
    assert State.FAILED is status.state
    assert [ExitCause.UNHEALTHY] == [it.exit.cause for it in at_work.store.exits(job.id)]
    assert "failed its check, was killed by SIGTERM: the check exited with code 1" in " ".join(
        omega("job", "site").out.split()
    )
