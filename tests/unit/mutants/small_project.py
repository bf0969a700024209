"""A project of one function, with tests, and mutants of it."""

from pathlib import Path

from tests.architecture.tree import ROOT
from tests.mutants.mutant import Mutant

ADD = """
def add(a, b):
    return a + b
"""
TEST = """
import pytest
from omega.sums import add

@pytest.fixture
def two():
    assert add(1, 1) < 100, "a fixture that goes wrong is no test that fails"
    yield 2
    assert add(1, 1) < 50, "the teardown checks too"

def test_a_sum(two):
    assert add(2, 2) == 4

def test_a_sum_with_nothing(two):
    assert add(0, 3) == 3
"""

PROFILE = """
from hypothesis import settings

settings.register_profile("mutants")
"""


def write_small_project(root: Path) -> None:
    """Write a project as small as one can be, and without a fault."""
    mutants = root / "tests/mutants"
    mutants.mkdir(parents=True)
    (root / "omega").mkdir()
    (root / "omega/__init__.py").touch()
    (root / "omega/sums.py").write_text(ADD)
    (root / "tests/test_sums.py").write_text(TEST)
    (root / "tests/conftest.py").write_text(PROFILE)
    (mutants / "kill_report.py").write_text((ROOT / "tests/mutants/kill_report.py").read_text())
    (root / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n')


def mutant(after: str, *, before: str = "a + b", name: str = "sums.wrong") -> Mutant:
    """Return a mutant of the function."""
    return Mutant(
        name=name,
        file="omega/sums.py",
        function="add",
        before=before,
        after=after,
        why="A sum is wrong.",
        tests=("tests/test_sums.py",),
    )
