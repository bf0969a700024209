"""A place to try mutants in."""

from pathlib import Path

import pytest

from tests.unit.mutants.small_project import write_small_project


@pytest.fixture
def original(tmp_path: Path) -> Path:
    """A small project without a fault."""
    write_small_project(tmp_path)
    return tmp_path
