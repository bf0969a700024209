"""The image holds what omega needs to run, and runs as nobody in particular."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.tree import ROOT

INSTRUCTION = re.compile(r"^([A-Z]+) (.*)$", re.MULTILINE)
IMPORT_ALL = """
import importlib, pkgutil, omega, schedulers
for package in (omega, schedulers):
    for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)
print(omega.__file__)
from omega.store.postgres import revision
print(revision.head())
"""


@pytest.fixture
def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions, each with its first line's rest."""
    return INSTRUCTION.findall((ROOT / "Dockerfile").read_text())


@pytest.fixture
def copied(instructions: list[tuple[str, str]]) -> set[str]:
    """What is copied from the project."""
    sources = [rest.split()[:-1] for name, rest in instructions if name == "COPY"]
    return {source for some in sources for source in some}


def test_what_is_copied_is_enough_to_run(copied: set[str], tmp_path: Path) -> None:
    for source in copied:
        path = ROOT / source
        if path.is_dir():
            shutil.copytree(path, tmp_path / source, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(path, tmp_path / source)
    ran = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert 0 == ran.returncode, ran.stderr
    where, head = ran.stdout.split()
    assert Path(where).is_relative_to(tmp_path)
    assert head


def test_docker_lets_through_what_is_copied(copied: set[str]) -> None:
    lines = (ROOT / ".dockerignore").read_text().splitlines()

    assert "*" in lines
    assert copied == {line.removeprefix("!") for line in lines if line.startswith("!")}


def test_it_runs_as_a_user_without_rights(instructions: list[tuple[str, str]]) -> None:
    last_user = [rest for name, rest in instructions if name == "USER"][-1]
    after = [name for name, _ in instructions][::-1].index("USER")

    assert last_user not in {"root", "0"}
    assert "RUN" not in [name for name, _ in instructions[len(instructions) - after :]]
